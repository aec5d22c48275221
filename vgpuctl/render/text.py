"""Outside text made safe to show.

Names, annotations, command lines and driver strings are untrusted: control bytes (and the escapes that begin
with one), line separators, bidirectional overrides and unpaired surrogates are replaced; nothing is ever read as
markup.
"""

from __future__ import annotations

import unicodedata

_REPLACEMENT = "\ufffd"
_UNSAFE_CATEGORIES = {"Cc", "Cs", "Cf", "Zl", "Zp"}
_JOINERS = {"\u200d", "\u200c"}


def clean(text: object) -> str:
    """The text on one line, with every byte that a terminal could act on replaced by U+FFFD."""
    line = str(text)
    return line if line.isprintable() else "".join(map(_safe, line))


def _safe(char: str) -> str:
    if char in "\t\n":
        return " "
    if char.isascii() and char.isprintable():
        return char
    if unicodedata.category(char) in _UNSAFE_CATEGORIES and char not in _JOINERS:
        return _REPLACEMENT
    return char
