"""What can be wrong with a host, a cluster, a pool.

The rule of this package: a check is a record and a pure function from Facts to a Result. It imports only the
model; it neither reads nor prints, and a fact that is missing makes it unknown, never passed.
"""
