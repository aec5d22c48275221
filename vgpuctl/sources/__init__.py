"""One module per outside thing: the cluster, the driver, region files, the host, metrics, bundles, the demo.

The rule of this package: reads give Readings (or deltas), never raise for what the outside does; writes carry
out one Change and raise a Problem. Nothing here decides what a value means: that is the model's.
"""
