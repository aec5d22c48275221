"""Outside text made safe to show.

Names, annotations, command lines and driver strings are untrusted: control bytes (and the escapes that begin
with one), line separators, bidirectional overrides and unpaired surrogates are replaced; nothing is ever read as
markup.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any

_REPLACEMENT = "\ufffd"
_UNSAFE_CATEGORIES = {"Cc", "Cs", "Cf", "Zl", "Zp"}
_ESCAPED = re.compile("[\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]")
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


def escaped(document: str) -> str:
    """A JSON or YAML document in which what a terminal could act on stands as `\\uXXXX`, the same to its readers."""
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", document)


def valid(value: Any) -> Any:
    """Plain data in which texts that are no Unicode (unpaired surrogates) are made so."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {valid(key): valid(item) for key, item in value.items()}
    return [valid(item) for item in value] if isinstance(value, list) else value
