"""What a command does: loads the parts of the facts that it needs, asks checks and model, yields results or Changes.

The rule of this package: no printing and no parsing of arguments; only `apply` writes.
"""
