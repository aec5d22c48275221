"""Amounts of memory that follow the pool's factor: where they stand, and what they become when it changes.

The rule of this package: an amount is the value of a key that is named as the memory resource (`requests.` or `limits.`
before it), wherever it stands outside metadata and status, in an object or in a text; a new factor keeps its MiB,
rounded up to whole units, and changes nothing else.
"""
