"""The command line: one module per command.

The rule of this package: parse, call a task, render, exit code. Nothing here knows what a pool is.
"""
