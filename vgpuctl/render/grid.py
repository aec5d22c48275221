"""Columns of text for terminals and pipes: measured, fitted to the width, padded, coloured.

It writes plain lines itself instead of building rich objects: a table of 40,000 rows takes a fraction of a second.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from vgpuctl.render.terminal import Terminal
from vgpuctl.render.text import clean
from vgpuctl.render.view import Cell, Column

GAP = "  "
SGR = {
    "good": "32",
    "info": "36",
    "warn": "33",
    "bad": "1;31",
    "dim": "2",
    "strong": "1",
    "title": "1;36",
    "cursor": "7",
}
"""Styles of Cells as the numbers of the terminal's escape sequence."""
_ESCAPE = re.compile(r"(\x1b\[[0-9;]*m)")
_BAR = 8
_BAR_FROM = 100
"""Columns below which a terminal has no room for bars."""
_SPARKS = "▁▂▃▄▅▆▇"
ASCII_MARKS = str.maketrans({"–": "-", "≥": ">=", "…": "~", "·": "-", "×": "x", "→": "->"})
"""Our own marks, and what stands for them."""
_ASCII_SPARKS = ".:-=+*#"


def width(text: str) -> int:
    """How many columns of a terminal a text takes: wide characters take two, combining ones none."""
    return len(text) if text.isascii() else _wide(text)


@lru_cache(maxsize=65536)
def _wide(text: str) -> int:
    return sum(map(_char_width, text))


def _char_width(char: str) -> int:
    if char.isascii():
        return 1
    if unicodedata.east_asian_width(char) in "WF":
        return 2
    return 0 if unicodedata.category(char) in ("Mn", "Me", "Cf") else 1


def cut(text: str, columns: int, ascii_only: bool = False) -> str:
    """The text in at most so many columns; what is lost is marked."""
    if width(text) <= columns:
        return text
    mark = "~" if ascii_only else "…"
    kept, used = [], 1
    for char in text:
        used += _char_width(char)
        if used > columns:
            break
        kept.append(char)
    return "".join(kept) + mark if columns > 0 else ""


def clip(text: str, columns: int) -> str:
    """A painted line in at most so many columns."""
    kept, used = [], 0
    for part in _ESCAPE.split(text):
        if part.startswith("\x1b"):
            kept.append(part)
            continue
        for char in part:
            used += _char_width(char)
            if used > columns:
                break
            kept.append(char)
    return "".join(kept)


def paint(text: str, style: str, terminal: Terminal) -> str:
    """The text in a style, if the terminal may be coloured."""
    return f"\x1b[{SGR[style]}m{text}\x1b[0m" if style and terminal.colour and text else text


def bar(ratio: float, terminal: Terminal, columns: int = _BAR) -> str:
    """A bar of a fixed width; more than all is all."""
    filled = round(max(0.0, min(ratio, 1.0)) * columns)
    full, rest = "#." if terminal.ascii else "━─"
    return full * filled + rest * (columns - filled)


def spark(ratios: Iterable[float | None], terminal: Terminal) -> str:
    """One character for each ratio, a blank for unknown."""
    levels = _ASCII_SPARKS if terminal.ascii else _SPARKS
    return "".join(" " if r is None else levels[int(max(0.0, min(r, 1.0)) * (len(levels) - 1) + 0.5)] for r in ratios)


def lines(
    columns: Sequence[Column], rows: Sequence[Any], terminal: Terminal, least: dict[str, int] | None = None
) -> Iterator[str]:
    """The header and the rows, fitted to the terminal's width, without blanks at the end.

    least: by header, how wide columns were; it is kept up to date, so that a table drawn again does not jump.
    """
    drawings = [_drawing(column, rows, terminal) for column in columns]
    natural = [max(drawing.sizes) for drawing in drawings]
    if least is not None:
        natural = [max(size, least.get(column.header, 0)) for size, column in zip(natural, columns, strict=True)]
        least |= {column.header: size for size, column in zip(natural, columns, strict=True)}
    kept, widths = fit(columns, natural, terminal.width)
    padded = [_padded(drawings[i], size, columns[i].right, terminal) for i, size in zip(kept, widths, strict=True)]
    for parts in zip(*padded, strict=True):
        yield GAP.join(parts).rstrip()


@dataclass(frozen=True)
class _Drawing:
    """A column, its header first: texts (cleaned, with bars), their styles, their widths."""

    texts: list[str]
    styles: list[str]
    sizes: list[int]


def _drawing(column: Column, rows: Iterable[Any], terminal: Terminal) -> _Drawing:
    texts, styles = [column.header], ["strong"]
    for cell in map(column.cell, rows):
        if type(cell) is str:
            texts.append(cell)
            styles.append("")
        else:
            texts.append(_text(cell, terminal))  # type: ignore[arg-type]
            styles.append(cell.style)  # type: ignore[union-attr]
    whole = "".join(texts)
    if not whole.isprintable():
        texts = list(map(clean, texts))
    if terminal.ascii:
        texts = [text.translate(ASCII_MARKS) for text in texts]
    return _Drawing(texts, styles, list(map(len if whole.isascii() else width, texts)))


def _text(cell: Cell, terminal: Terminal) -> str:
    if cell.bar is None or (terminal.width or 0) < _BAR_FROM:
        return cell.text
    return f"{bar(cell.bar, terminal)} {cell.text:>5}"


def _padded(drawing: _Drawing, size: int, right: bool, terminal: Terminal) -> list[str]:
    """Texts cut and filled up to a width, painted where the terminal may be coloured."""
    texts, sizes = drawing.texts, drawing.sizes
    if max(sizes) > size:
        texts = [cut(text, size, terminal.ascii) for text in texts]
        sizes = list(map(width, texts))
    if terminal.colour:
        texts = [paint(text, style, terminal) for text, style in zip(texts, drawing.styles, strict=True)]
    blanks = [" " * n for n in range(size + 1)]
    if right:
        return [blanks[size - length] + text for text, length in zip(texts, sizes, strict=True)]
    return [text + blanks[size - length] for text, length in zip(texts, sizes, strict=True)]


def plain(text: str, terminal: Terminal) -> str:
    """Outside text cleaned, and our own marks as this terminal can show them."""
    text = clean(text)
    return text.translate(ASCII_MARKS) if terminal.ascii and not text.isascii() else text


def fit(columns: Sequence[Column], natural: Sequence[int], limit: int | None) -> tuple[list[int], list[int]]:
    """Which columns stay, and how wide: the ones that matter least go first, then those that may shrink are cut."""
    kept = list(range(len(columns)))
    if limit is None:
        return kept, list(natural)

    def least(i: int) -> int:
        return min(natural[i], columns[i].shrink) if columns[i].shrink else natural[i]

    def total(sizes: Iterable[int]) -> int:
        return sum(sizes) + len(GAP) * (len(kept) - 1)

    while total(map(least, kept)) > limit:
        worst = max(kept, key=lambda i: columns[i].drop)
        if not columns[worst].drop:
            break
        kept.remove(worst)
    sizes = {i: least(i) for i in kept}
    spare = limit - total(sizes.values())
    for i in sorted(kept, key=lambda i: columns[i].drop):
        more = max(0, min(spare, natural[i] - sizes[i]))
        sizes[i] += more
        spare -= more
    return kept, [sizes[i] for i in kept]
