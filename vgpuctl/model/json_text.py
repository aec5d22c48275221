"""JSON to nodes with positions, as strict as Go's encoding/json, with errors that say what to write instead."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from vgpuctl.model.document import MAX_DEPTH, Document, Entry, Fault, Mapping, Node, Scalar, Sequence
from vgpuctl.model.place import Lines, Place, Position

_scan_string: Callable[[str, int, bool], tuple[str, int]] = json.decoder.scanstring  # type: ignore[attr-defined]
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_SPACE = re.compile(r"[ \t\r\n]*")
_WORDS = {"true": True, "false": False, "null": None}
_REMEDIES = {
    "'": 'JSON strings have double quotes: "…"',
    "#": "JSON has no comments: remove it",
    "/": "JSON has no comments: remove it",
    ",": "remove the comma",
}
_LONGEST_NUMBER = 400


def read(text: str, place: Place | None) -> Document:
    """See document.read_json."""
    where = place or Lines(text)
    if text.startswith("\ufeff"):
        message = "the file begins with a byte order mark, which JSON does not allow"
        fault = Fault("invisible-character", message, where.at(0), "save it without BOM", fatal=True)
        return Document(None, (fault,), text, where.at(0), where)
    reader = _Reader(text, where)
    try:
        root = reader.document()
    except _Stop as stop:
        offset = min(stop.offset, len(text.rstrip()) - 1)
        fault = Fault("json-syntax", stop.message, where.at(max(offset, 0)), stop.remedy, fatal=True)
        return Document(None, (fault,), text, where.at(0), where)
    return Document(root, tuple(reader.faults), text, root.position, where)


class _Stop(Exception):
    def __init__(self, message: str, offset: int, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
        self.remedy = remedy


class _Reader:
    """A recursive-descent reader that keeps positions."""

    def __init__(self, text: str, place: Place) -> None:
        self.text = text
        self.place = place
        self.index = 0
        self.depth = 0
        self.faults: list[Fault] = []

    def document(self) -> Node:
        root = self.value("")
        self.space()
        if self.index < len(self.text):
            raise _Stop("there is text after the end of the value", self.index, "keep one JSON value")
        return root

    def space(self) -> None:
        match = _SPACE.match(self.text, self.index)
        self.index = match.end() if match else self.index

    def peek(self) -> str:
        self.space()
        if self.index >= len(self.text):
            raise _Stop("the text ends too early", self.index, "close every bracket and quote")
        return self.text[self.index]

    def value(self, path: str) -> Node:
        char = self.peek()
        start = self.index
        position = self.place.at(start)
        if char in "{[":
            if self.depth >= MAX_DEPTH:
                raise _Stop(f"nested more than {MAX_DEPTH} levels deep", start)
            self.depth += 1
            node = self.mapping(position, path) if char == "{" else self.sequence(position, path)
            self.depth -= 1
            return node
        if char == '"':
            text = self.string()
            return Scalar(position, text, text, '"', start)
        for word, value in _WORDS.items():
            if self.text.startswith(word, start):
                self.index += len(word)
                return Scalar(position, value, word, "", start)
        match = _NUMBER.match(self.text, start)
        if match:
            if len(match.group()) > _LONGEST_NUMBER:
                raise _Stop(f"a number of more than {_LONGEST_NUMBER} digits", start, "shorten it")
            self.index = match.end()
            number: Any = float(match.group()) if match.group(1) or match.group(2) else int(match.group())
            return Scalar(position, number, match.group(), "", start)
        raise _Stop(f"{char!r} cannot begin a JSON value", start, _REMEDIES.get(char, ""))

    def string(self) -> str:
        try:
            text, self.index = _scan_string(self.text, self.index + 1, True)
        except json.JSONDecodeError as error:
            raise _Stop(error.msg, error.pos) from None
        return text

    def mapping(self, position: Position, path: str) -> Mapping:
        self.index += 1
        entries: list[Entry] = []
        seen: dict[str, Position] = {}
        if self.peek() == "}":
            self.index += 1
            return Mapping(position, ())
        while True:
            key = self.key(seen, path)
            below = f"{path}.{key.text}" if path else key.text
            entries.append(Entry(key, self.value(below)))
            if not self.more("}"):
                return Mapping(position, tuple(entries))

    def key(self, seen: dict[str, Position], path: str) -> Scalar:
        char = self.peek()
        start = self.index
        if char == "}":
            raise _Stop("a comma before } is not allowed in JSON", start, "remove the comma before it")
        if char != '"':
            remedy = _REMEDIES.get(char, 'write "key": value')
            raise _Stop(f"a key must begin with a double quote, not {char!r}", start, remedy)
        position = self.place.at(start)
        name = self.string()
        if self.peek() != ":":
            raise _Stop(f"a colon is missing after the key {name!r}", self.index, 'write "key": value')
        self.index += 1
        if name in seen:
            below = f"{path}.{name}" if path else name
            message = f"{name} is written twice (first on line {seen[name].line}); the last one wins"
            self.faults.append(Fault("duplicate-key", message, position, "keep one of the two", below))
        seen.setdefault(name, position)
        return Scalar(position, name, name, '"', start)

    def sequence(self, position: Position, path: str) -> Sequence:
        self.index += 1
        items: list[Node] = []
        if self.peek() == "]":
            self.index += 1
            return Sequence(position, ())
        while True:
            if self.peek() == "]":
                raise _Stop("a comma before ] is not allowed in JSON", self.index, "remove the comma before it")
            items.append(self.value(f"{path}[{len(items)}]"))
            if not self.more("]"):
                return Sequence(position, tuple(items))

    def more(self, end: str) -> bool:
        char = self.peek()
        if char not in (",", end):
            remedy = _REMEDIES.get(char, "")
            raise _Stop(f"a comma or {end} is missing before {char!r}", self.index, remedy)
        self.index += 1
        return char == ","
