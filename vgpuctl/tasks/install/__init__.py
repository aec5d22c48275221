"""The work of `vgpuctl install`, `upgrade` and `uninstall`.

The rule of this package: the record of the installation is written first and deleted last. It says what is under way,
who is at it and what others had there before, so a command that was cut off is taken to the same end by running it
again, and of two at once one is refused. What is done follows from the record and the live objects alone.
"""
