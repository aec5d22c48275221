"""The pool's configuration files: what upstream's loaders make of them, and the rules that they break.

Each format has one module: the types of its loader as data, then its rules as a table. A rule never flags what works
upstream. `validate` finds out what a text is, `generate` writes one that breaks no rule.
"""
