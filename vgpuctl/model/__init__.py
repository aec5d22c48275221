"""What things are and which rules hold.

The rule of this package: pure. No I/O, no clock, no environment, no printing; a function's result depends on
its arguments only. It imports no other package of vgpuctl but `resources`: tables that ship with the tool are
program, not input.
"""
