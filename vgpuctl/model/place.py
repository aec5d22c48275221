"""Where a text stands: offsets of a text mapped to lines and columns of the file that the user sees.

A text may be embedded in another one (a literal block or a string of a ConfigMap); its positions are then those of
the outer file.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property
from typing import Protocol

import msgspec

_BREAK = re.compile(r"\r\n|\n|\r")
_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_SURROGATES = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")


class Position(msgspec.Struct, frozen=True, order=True):
    """A place in a file: line and column, 1-based."""

    line: int
    column: int = 1


class Place(Protocol):
    """Maps an offset of a text to a position of the file."""

    def at(self, offset: int) -> Position: ...


class Lines(msgspec.Struct, frozen=True, dict=True):
    """A whole file. Lines end as editors end them: LF, CRLF or CR."""

    text: str

    @cached_property
    def starts(self) -> list[int]:
        return [0, *(match.end() for match in _BREAK.finditer(self.text))]

    def at(self, offset: int) -> Position:
        offset = max(0, min(offset, len(self.text)))
        line = bisect_right(self.starts, offset) - 1
        return Position(line + 1, offset - self.starts[line] + 1)

    def row(self, line: int) -> str:
        """The text of a line (1-based) without its end; "" beyond the last."""
        if not 1 <= line <= len(self.starts):
            return ""
        end = self.starts[line] if line < len(self.starts) else len(self.text)
        return self.text[self.starts[line - 1] : end].rstrip("\r\n")


class Block(msgspec.Struct, frozen=True, dict=True):
    """A block scalar: each line of `text` has its line and its shift of columns in the file."""

    text: str
    rows: tuple[tuple[int, int], ...]

    @cached_property
    def lines(self) -> Lines:
        return Lines(self.text)

    def at(self, offset: int) -> Position:
        inner = self.lines.at(offset)
        line, shift = self.rows[min(inner.line, len(self.rows)) - 1]
        return Position(line, inner.column + shift)


class Escaped(msgspec.Struct, frozen=True):
    """A double-quoted string: `offsets` has the outer offset of each character."""

    outer: Place
    offsets: tuple[int, ...]

    def at(self, offset: int) -> Position:
        return self.outer.at(self.offsets[max(0, min(offset, len(self.offsets) - 1))])


class Point(msgspec.Struct, frozen=True):
    """A text without a finer map: all of it is where it begins."""

    position: Position

    def at(self, offset: int) -> Position:
        return self.position


def block_place(inner: str, lines: Lines, header: int, folded: bool) -> Place:
    """The place of a block scalar whose `|` or `>` stands on line `header` of a file."""
    rows: list[tuple[int, int]] = []
    line = header
    for text in inner.split("\n"):
        line += 1
        if folded:
            line = _unfolded(text, lines, line)
        outer = lines.row(line)
        rows.append((line, len(outer) - len(outer.lstrip(" ")) - (len(text) - len(text.lstrip(" ")))))
    last = len(lines.starts)
    shifts = [shift for (_, shift), text in zip(rows, inner.split("\n"), strict=True) if text.strip()]
    usual = shifts[0] if shifts else 0
    return Block(
        inner,
        tuple(
            (min(line, last), max(shift, 0) if text.strip() else usual)
            for (line, shift), text in zip(rows, inner.split("\n"), strict=True)
        ),
    )


def _unfolded(text: str, lines: Lines, line: int) -> int:
    """The line, from `line` on, at which a line of a folded block begins."""
    wanted = text.strip()
    for candidate in range(line, min(line + 1000, len(lines.starts) + 1)):
        found = lines.row(candidate).strip()
        if found and wanted.startswith(found):
            return candidate
    return line


def string_place(inner: str, lines: Lines, offset: int) -> Place:
    """The place of a quoted string whose opening quote is at `offset` of a file."""
    source = lines.text
    offsets: list[int] = []
    index = offset + 1
    while len(offsets) < len(inner) and index < len(source):
        if source[index] in "\r\n":
            break
        escape = _SURROGATES.match(source, index) or _ESCAPE.match(source, index)
        offsets.append(index)
        index = escape.end() if escape else index + 1
    if len(offsets) != len(inner) or not inner:
        return Point(lines.at(offset))
    return Escaped(lines, tuple(offsets))
