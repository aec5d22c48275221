"""The work of `vgpuctl config`: validate, explain, compare, apply and migrate the pool's configuration.

The rule of this package: what a value means is in model.config, what an amount becomes is in model.migrate; here it is
brought together with what a cluster or a directory holds, and the outcome is Changes.
"""
