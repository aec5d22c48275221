"""The work of `vgpuctl quota`: from facts and wishes to Changes, and back to what teams have.

The rule of this package: a plan is made from facts alone (`plan`), so it is the same for a live cluster, a dry run and
a test; only `tasks.apply` carries it out.
"""
