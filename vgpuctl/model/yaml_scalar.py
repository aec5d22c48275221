"""Plain YAML scalars as Go's yaml.v2 reads them: the loader of Volcano, of the vGPU plugin and, below, of kubectl.

It is YAML 1.1 with Go's number syntax: `010` is 8, `1_000` is 1000, `yes` and `on` are true, `1:30` is text.
"""

from __future__ import annotations

import re
from typing import Final

Value = str | int | float | bool | None

_WORDS: Final[dict[str, Value]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
}
_INT = re.compile(r"([-+]?)(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_BASES = {"x": 16, "b": 2, "o": 8}
_LONGEST = 400


def resolve(text: str) -> Value:
    """The value of a plain (unquoted) scalar; text that is no number, word or null is a string."""
    if text in _WORDS:
        return _WORDS[text]
    if not text or text[0] not in "+-.0123456789" or len(text) > _LONGEST:
        return text
    plain = text if text[0] == "." else text.replace("_", "")
    whole = _INT.fullmatch(plain)
    if whole:
        number = _integer(whole.group(2)) * (-1 if whole.group(1) == "-" else 1)
        if -(2**63) <= number < 2**64:
            return number
    return float(plain) if _FLOAT.fullmatch(plain) else text


def needs_quotes(text: str) -> bool:
    """The text would not stay one if it were written plain: PyYAML writes `1e3` and `y` without quotes."""
    return not isinstance(resolve(text), str)


def is_octal(text: str) -> bool:
    """A number whose leading zero makes it another one: `012` is 10."""
    return bool(re.fullmatch(r"[-+]?0[0-7]+", text)) and int(text) != resolve(text)


def _integer(digits: str) -> int:
    base = _BASES.get(digits[1:2].lower())
    if base:
        return int(digits[2:], base)
    return int(digits, 8 if digits.startswith("0") else 10)
