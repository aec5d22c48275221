"""Numbers as people read them: GiB, percent, times ago. Unknown is a dash."""

from __future__ import annotations

_GIB = 1 << 30
_TIB = 1 << 40
_SPANS = ((86400 * 2, 86400, "d"), (3600 * 2, 3600, "h"), (60 * 2, 60, "m"))


def gib(size: int) -> str:
    """Bytes as GiB with one decimal, as TiB from 10,000 GiB on."""
    if size >= 10_000 * _GIB:
        return f"{size / _TIB:.1f} TiB"
    return f"{size / _GIB:.1f} GiB" if size else "0 GiB"


def pair(part: int | None, whole: int | None, unknown: str = "–") -> str:
    """`18.2/20.0 GiB`, both in the unit of the larger; a side that is unknown is a dash."""
    if part is None and whole is None:
        return unknown
    scale, unit = (_TIB, "TiB") if max(part or 0, whole or 0) >= 10_000 * _GIB else (_GIB, "GiB")
    left = unknown if part is None else f"{part / scale:.1f}"
    right = unknown if whole is None else f"{whole / scale:.1f}"
    return f"{left}/{right} {unit}"


def percent(ratio: float) -> str:
    """A ratio as whole percent; something that is not nothing is at least `<1%`."""
    return "<1%" if 0 < ratio < 0.005 else f"{ratio * 100:.0f}%"


def span(seconds: float) -> str:
    """A length of time: `5s`, `3m`, `7h`, `12d`."""
    for least, length, letter in _SPANS:
        if seconds >= least:
            return f"{seconds // length:.0f}{letter}"
    return f"{max(seconds, 0):.0f}s"
