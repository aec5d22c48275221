"""One module per form of output: table, wide, json, yaml, csv, junit, name.

The rule of this package: a form draws any Output from what `views` says about its kind; it imports only the
model, and treats every text as untrusted.
"""
