"""The live screen of `top`: what the keys do to what is looked at, and the frames that show it.

The rule of this package: pure functions. Reading keys and writing to the terminal is cli.screen's.
"""
