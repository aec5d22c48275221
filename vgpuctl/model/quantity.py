"""Amounts: Kubernetes quantities, sizes as people write them, and the pool's memory units.

A pool counts memory in units of `gpuMemoryFactor` MiB. The API server keeps quantities exactly; Volcano cuts them to
a signed 32-bit number, so `4Gi` memory units become 0 there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final

MIB: Final = 1024 * 1024
GIB: Final = 1024 * MIB

_MOST = (1 << 63) - 1
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_QUANTITY = re.compile(r"([+-]?(?:\d{1,64}(?:\.\d{0,64})?|\.\d{1,64}))(?:[eE]([+-]?\d{1,3})|([numkMGTPE]|[KMGTPE]i)?)")
_SIZE = re.compile(r"(\d{1,18}(?:\.\d{1,18})?)\s*([A-Za-z%]*)")
_SIZES = {
    **{
        name: 1024**power
        for power, names in enumerate((("b",), ("ki", "kib"), ("mi", "mib"), ("gi", "gib"), ("ti", "tib")))
        for name in names
    },
    **{
        name: 1000**power
        for power, names in enumerate(((), ("k", "kb"), ("m", "mb"), ("g", "gb"), ("t", "tb")))
        for name in names
    },
}


@dataclass(frozen=True)
class Quantity:
    """A Kubernetes quantity. value: exact. suffix: as written (`Gi`, `k`, `m`, `e3`, or "")."""

    value: Fraction
    suffix: str = ""

    @property
    def whole(self) -> bool:
        """Extended resources must be whole numbers; `2000m` is one."""
        return self.value.denominator == 1

    @property
    def number(self) -> int:
        """The value as an integer, rounded up as the API's Value() does."""
        return -(-self.value.numerator // self.value.denominator)


def quantity(text: object) -> Quantity:
    """A quantity as the API server reads it, from text or from a JSON number. Raises ValueError for what it refuses."""
    found = _parsed(_written(text))
    if found is None:
        raise ValueError(f"{text!r} is not a Kubernetes quantity")
    return found


@lru_cache(maxsize=4096)
def _parsed(text: str) -> Quantity | None:
    """The same few texts come again and again in a pool."""
    match = _QUANTITY.fullmatch(text)
    if not match:
        return None
    number, exponent, suffix = match.group(1), match.group(2), match.group(3) or ""
    value = Fraction(number.rstrip(".") if not number.startswith(".") else f"0{number}")
    if exponent is not None:
        return Quantity(_capped(value * Fraction(10) ** int(exponent)), f"e{exponent}")
    scale = Fraction(1 << _BINARY[suffix]) if suffix in _BINARY else Fraction(10) ** _DECIMAL[suffix]
    return Quantity(_capped(value * scale), suffix)


def _capped(value: Fraction) -> Fraction:
    """What does not fit into 64 bits becomes the largest that does, as the API server makes it."""
    return max(Fraction(-_MOST), min(value, Fraction(_MOST)))


def _written(text: object) -> str:
    if isinstance(text, bool) or not isinstance(text, (str, int, float)):
        raise ValueError(f"{text!r} is not a Kubernetes quantity")
    return str(text)


def integer(text: object) -> int | None:
    """The whole number that a quantity stands for; None for anything else."""
    try:
        amount = quantity(text)
    except ValueError:
        return None
    return amount.number if amount.whole else None


def int32(number: int) -> int:
    """The number as Volcano keeps it: cut to 32 bits, signed."""
    return (number + (1 << 31)) % (1 << 32) - (1 << 31)


def units_of(mib: int, factor: int) -> int:
    """How many memory units a card of `mib` MiB has: whole ones only, so 24564 MiB are 23 units of 1024 MiB.

    Raises ZeroDivisionError for factor 0, as the plugin does.
    """
    return mib // factor


def units_for(mib: int, factor: int) -> int:
    """The least number of memory units that hold `mib` MiB."""
    return -(-mib // factor)


@dataclass(frozen=True)
class Size:
    """An amount of memory as a person wrote it. mib: in MiB, None for a percentage. percent: of a card.
    units: a bare number, taken as memory units of the pool."""

    mib: int | None = None
    percent: Fraction | None = None
    units: int | None = None


def size(text: str) -> Size:
    """`8Gi`, `8GiB`, `8192Mi`, `8GB` (10⁹), `20%`, or a bare number of memory units.

    Raises ValueError naming what is understood. A size is rounded up to whole MiB.
    """
    match = _SIZE.fullmatch(text.strip())
    suffix = match.group(2) if match else ""
    if match and suffix == "%" and Fraction(match.group(1)) <= 100:
        return Size(percent=Fraction(match.group(1)))
    if match and not suffix and "." not in match.group(1):
        return Size(units=int(match.group(1)))
    if match and suffix.lower() in _SIZES:
        value = Fraction(match.group(1)) * _SIZES[suffix.lower()]
        return Size(mib=-(-value.numerator // (value.denominator * MIB)))
    raise ValueError(f"{text!r} is not a size: write 8Gi, 8192Mi, 20% or a whole number of memory units")


def show_mib(mib: int) -> str:
    """An amount of MiB for people: `20 GiB`, `19.5 GiB`, `512 MiB`."""
    if mib < 1024:
        return f"{mib} MiB"
    gib = mib / 1024
    return f"{gib:.0f} GiB" if mib % 1024 == 0 else f"{gib:.1f} GiB"
