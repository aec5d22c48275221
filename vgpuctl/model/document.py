"""Text to values with line and column: YAML and JSON, also when one is embedded in the other.

`read_yaml` and `read_json` give a `Document`: the root `Node` and the faults met on the way (duplicate keys, tabs,
a byte order mark, invisible characters). A Node keeps the text it was written as, so that a rule can tell `"10"`
from `10` and `010` from `8`. Values are those that Go's loaders see, which Kubernetes and Volcano use. A string of
a ConfigMap is read at its `place_of`, and its positions are those of the outer file.

No text crashes or hangs a reader: nesting is limited, aliases are shared and never expanded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from vgpuctl.model.place import Lines, Place, Point, Position, block_place, string_place

__all__ = ["Document", "Entry", "Fault", "Mapping", "Node", "Position", "Scalar", "Sequence", "find", "place_of"]

MAX_DEPTH = 100
"""Deeper nesting is refused; no file that Kubernetes knows comes near."""


class Fault(msgspec.Struct, frozen=True):
    """Something wrong with the text itself. kind: a rule id (`yaml-syntax`, `yaml-tab`, `json-syntax`,
    `duplicate-key`, `invisible-character`). path: keys down to the place, if known.
    fatal: the text has no value because of it."""

    kind: str
    message: str
    position: Position
    remedy: str = ""
    path: str = ""
    fatal: bool = False


class Node(msgspec.Struct, frozen=True):
    """A value in a text, with its position. Base of Scalar, Mapping and Sequence."""

    position: Position

    def plain(self) -> Any:
        """The value as plain Python data, duplicate keys resolved as upstream does: the last wins."""
        raise NotImplementedError


class Scalar(Node, frozen=True):
    """A single value. text: as written, without quotes. quoted: it had quotes or was a block, so it is a string.
    style: `'`, `"`, `|`, `>` or "" for plain. offset: of its first character (the quote, the `|`) in the text."""

    value: Any
    text: str
    style: str = ""
    offset: int = -1

    @property
    def quoted(self) -> bool:
        return self.style != ""

    def plain(self) -> Any:
        return self.value


class Entry(msgspec.Struct, frozen=True):
    """One `key: value` of a mapping."""

    key: Scalar
    value: Node

    @property
    def name(self) -> str:
        return self.key.text

    @property
    def position(self) -> Position:
        return self.key.position


class Mapping(Node, frozen=True):
    """Keys and values in the order written; a key written twice is there twice. What `<<` merges in comes first."""

    entries: tuple[Entry, ...]

    @property
    def names(self) -> set[str]:
        """The keys."""
        return {entry.name for entry in self.entries}

    def entry(self, name: str) -> Entry | None:
        """The entry that counts for `name`: the last one written."""
        return next((entry for entry in reversed(self.entries) if entry.name == name), None)

    def get(self, name: str) -> Node | None:
        entry = self.entry(name)
        return entry.value if entry else None

    def __iter__(self) -> Iterator[Entry]:
        """The entries that count, each name once (the last written), in order of appearance."""
        last = {entry.name: entry for entry in self.entries}
        return iter(last.values())

    def plain(self) -> dict[str, Any]:
        return {entry.name: entry.value.plain() for entry in self.entries}


class Sequence(Node, frozen=True):
    """A list. marks: where each item begins: its dash in a block list, else the item itself."""

    items: tuple[Node, ...]
    marks: tuple[Position, ...] = ()

    def __iter__(self) -> Iterator[Node]:
        return iter(self.items)

    def mark(self, index: int) -> Position:
        """Where an item begins, its dash included."""
        return self.marks[index] if index < len(self.marks) else self.items[index].position

    def plain(self) -> list[Any]:
        return [item.plain() for item in self.items]


class Document(msgspec.Struct, frozen=True):
    """A text that was read. root: None when it is empty or a fault was fatal. start: its `---`, or its first
    character."""

    root: Node | None
    faults: tuple[Fault, ...] = ()
    text: str = ""
    start: Position = Position(1)
    place: Place = Point(Position(1))

    @property
    def broken(self) -> bool:
        """The text could not be read at all."""
        return any(fault.fatal for fault in self.faults)

    def at(self, offset: int) -> Position:
        """The position of an offset of `text`."""
        return self.place.at(offset)


def find(node: Node | None, *keys: str | int) -> Node | None:
    """The node under a path of mapping keys and list indexes; None where it ends."""
    for key in keys:
        if isinstance(node, Mapping) and isinstance(key, str):
            node = node.get(key)
        elif isinstance(node, Sequence) and isinstance(key, int) and 0 <= key < len(node.items):
            node = node.items[key]
        else:
            return None
    return node


def read_yaml(text: str, place: Place | None = None) -> list[Document]:
    """The documents of a YAML stream; always at least one.

    place: where the text stands, if it is part of a file. A fault that stops the reader is kept in the document
    that it happened in.
    """
    from vgpuctl.model.yaml_text import read

    return read(text, place)


def read_json(text: str, place: Place | None = None) -> Document:
    """A JSON text with positions; strict as Go's encoding/json (no comments, no trailing commas, no BOM)."""
    from vgpuctl.model.json_text import read

    return read(text, place)


def place_of(scalar: Scalar, outer: str) -> Place:
    """Where the text of a string stands in its file.

    Blocks and double-quoted strings on one line map exactly; other texts map to the line where they begin.
    """
    lines = Lines(outer.removeprefix("\ufeff"))
    if scalar.style in ("|", ">"):
        return block_place(scalar.text, lines, scalar.position.line, folded=scalar.style == ">")
    if scalar.style == '"' and scalar.offset >= 0:
        return string_place(scalar.text, lines, scalar.offset)
    return Point(scalar.position)
