"""Text to values with line and column: YAML and JSON, also when one is embedded in the other.

`read_yaml` and `read_json` give a `Document`: the root `Node` and the faults met on the way (duplicate keys, tabs,
a byte order mark, invisible characters, later documents). A Node keeps the text it was written as, so that a rule
can tell `"10"` from `10` and `010` from `8`. A literal block inside a ConfigMap is read in place by `embedded`,
and its positions are those of the outer file.

JSON has its own reader, since tabs are legal there and its errors must be those of Go's encoding/json.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_INVISIBLE = {
    "\u00a0": "U+00A0 NO-BREAK SPACE",
    "\u200b": "U+200B ZERO WIDTH SPACE",
    "\u2003": "U+2003 EM SPACE",
    "\u3000": "U+3000 IDEOGRAPHIC SPACE",
    "\u2028": "U+2028 LINE SEPARATOR",
    "\ufeff": "U+FEFF BYTE ORDER MARK",
}


@dataclass(frozen=True, order=True)
class Position:
    """A place in a text: line and column, 1-based."""

    line: int
    column: int = 1


@dataclass(frozen=True)
class Fault:
    """Something wrong with the text itself. kind: a rule id (`yaml-syntax`, `yaml-tab`, `json-syntax`,
    `duplicate-key`, `invisible-character`, `extra-document`). path: keys down to the place, if known.
    fatal: the text has no value because of it."""

    kind: str
    message: str
    position: Position
    remedy: str = ""
    path: str = ""
    fatal: bool = False


@dataclass(frozen=True)
class Node:
    """A value in a text, with its position. Base of Scalar, Mapping and Sequence."""

    position: Position

    def plain(self) -> Any:
        """The value as plain Python data, duplicate keys resolved as upstream does: the last wins."""
        raise NotImplementedError


@dataclass(frozen=True)
class Scalar(Node):
    """A single value. text: as written, without quotes. quoted: it had quotes or was a block, so it is a string.
    style: `'`, `"`, `|`, `>` or "" for plain."""

    value: Any
    text: str
    style: str = ""

    @property
    def quoted(self) -> bool:
        return self.style != ""

    def plain(self) -> Any:
        return self.value


@dataclass(frozen=True)
class Entry:
    """One `key: value` of a mapping."""

    key: Scalar
    value: Node

    @property
    def name(self) -> str:
        return self.key.text

    @property
    def position(self) -> Position:
        return self.key.position


@dataclass(frozen=True)
class Mapping(Node):
    """Keys and values in the order written; a key written twice is there twice."""

    entries: tuple[Entry, ...]

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


@dataclass(frozen=True)
class Sequence(Node):
    """A list."""

    items: tuple[Node, ...]

    def __iter__(self) -> Iterator[Node]:
        return iter(self.items)

    def plain(self) -> list[Any]:
        return [item.plain() for item in self.items]


@dataclass(frozen=True)
class Document:
    """A text that was read. root: None when it is empty or a fault was fatal."""

    root: Node | None
    faults: tuple[Fault, ...] = ()
    text: str = field(default="", repr=False)


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


def read_yaml(text: str, start: Position | None = None, indent: int = 0) -> list[Document]:
    """The documents of a YAML stream; always at least one.

    start: the position of the text's first character in an outer file, indent: by how much each of its later lines
    is indented there. A fault that stops the reader is kept in the document it happened in.
    """
    place = _Place(start or Position(1), indent)
    faults = list(_invisible(text, place))
    body = text[1:] if text.startswith("\ufeff") else text
    documents: list[Document] = []
    try:
        loader = _Loader(body)
        try:
            while loader.check_node():
                built = _Build(loader, place)
                root = built.node(loader.get_node(), "")
                documents.append(Document(root, (*faults, *built.faults), text))
                faults = []
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        documents.append(Document(None, (*faults, _yaml_fault(error, body, place)), text))
    return documents or [Document(None, tuple(faults), text)]


def read_json(text: str, start: Position | None = None, indent: int = 0) -> Document:
    """A JSON text with positions; strict as Go's encoding/json (no comments, no trailing commas, no BOM)."""
    place = _Place(start or Position(1), indent)
    reader = _JsonReader(text, place)
    try:
        root = reader.document()
    except _JsonError as error:
        kind = "invisible-character" if text.startswith("\ufeff") else "json-syntax"
        fault = Fault(kind, error.message, place.at(text, error.index), error.remedy, fatal=True)
        return Document(None, (fault,), text)
    return Document(root, tuple(reader.faults), text)


def embedded(scalar: Scalar, outer: str, form: str) -> Document | list[Document]:
    """The YAML or JSON (`form`) inside a string of `outer`, with positions in `outer`.

    A literal block (`|`) maps exactly; a quoted or folded text maps to the line where it begins.
    """
    start, indent = _block_place(scalar, outer)
    return read_json(scalar.text, start, indent) if form == "json" else read_yaml(scalar.text, start, indent)


def _block_place(scalar: Scalar, outer: str) -> tuple[Position, int]:
    if scalar.style != "|":
        return scalar.position, -1
    lines = outer.splitlines()
    for number in range(scalar.position.line, len(lines)):
        if lines[number].strip():
            first = scalar.position.line + 1
            width = len(lines[number]) - len(lines[number].lstrip(" "))
            lead = len(scalar.text.split("\n")[number - scalar.position.line]) - len(
                scalar.text.split("\n")[number - scalar.position.line].lstrip(" ")
            )
            return Position(first, width - lead + 1), width - lead
    return Position(scalar.position.line + 1), 0


@dataclass(frozen=True)
class _Place:
    """Where a text stands in its outer file. indent -1: everything maps to the start (no exact map exists)."""

    start: Position
    indent: int

    def map(self, line: int, column: int) -> Position:
        """The outer position of a 0-based line and column of the text."""
        if self.indent < 0:
            return self.start
        offset = self.start.column - 1 if line == 0 else self.indent
        return Position(self.start.line + line, column + 1 + offset)

    def at(self, text: str, index: int) -> Position:
        before = text[:index]
        return self.map(before.count("\n"), index - (before.rfind("\n") + 1))


def _invisible(text: str, place: _Place) -> Iterator[Fault]:
    for match in re.finditer(f"^ *([{''.join(_INVISIBLE)}])", text, re.MULTILINE):
        if match.group(1) == "\ufeff" and match.start(1) == 0:
            continue  # a byte order mark at the start is legal YAML
        yield Fault(
            "invisible-character",
            f"{_INVISIBLE[match.group(1)]} is not indentation",
            place.at(text, match.start(1)),
            "use plain spaces",
        )


def _yaml_fault(error: yaml.YAMLError, text: str, place: _Place) -> Fault:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = str(getattr(error, "problem", None) or error)
    line, column = (mark.line, mark.column) if mark else (0, 0)
    lines = text.splitlines()
    tab = next((n for n, row in enumerate(lines) if re.match(r" *\t", row) and row.strip()), None)
    if tab is not None and ("\\t" in problem or "tab" in problem or tab <= line):
        position = place.map(tab, lines[tab].index("\t"))
        return Fault("yaml-tab", "a tab cannot indent YAML", position, "indent with spaces", fatal=True)
    context = getattr(error, "context", None)
    message = f"{problem} ({context})" if context else problem
    return Fault("yaml-syntax", message, place.map(line, column), fatal=True)


class _Build:
    """Turns PyYAML's node graph into ours, collecting duplicate keys."""

    def __init__(self, loader: Any, place: _Place) -> None:
        self.loader = loader
        self.place = place
        self.faults: list[Fault] = []

    def node(self, node: Any, path: str) -> Node:
        position = self.place.map(node.start_mark.line, node.start_mark.column)
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, position, path)
        if isinstance(node, yaml.SequenceNode):
            items = tuple(self.node(item, f"{path}[{i}]") for i, item in enumerate(node.value))
            return Sequence(position, items)
        return self.scalar(node, position)

    def mapping(self, node: Any, position: Position, path: str) -> Mapping:
        entries: list[Entry] = []
        seen: dict[str, Position] = {}
        for key_node, value_node in node.value:
            key_position = self.place.map(key_node.start_mark.line, key_node.start_mark.column)
            text = str(key_node.value) if isinstance(key_node, yaml.ScalarNode) else "?"
            key = Scalar(key_position, text, text, _style(key_node))
            below = f"{path}.{text}" if path else text
            if text in seen:
                message = f"{text} is written twice (first on line {seen[text].line}); the last one wins"
                self.faults.append(Fault("duplicate-key", message, key_position, "keep one of the two", below))
            seen.setdefault(text, key_position)
            entries.append(Entry(key, self.node(value_node, below)))
        return Mapping(position, tuple(entries))

    def scalar(self, node: Any, position: Position) -> Scalar:
        try:
            value = self.loader.construct_object(node, deep=True)
        except (yaml.YAMLError, ValueError):
            value = node.value
        if not isinstance(value, (str, int, float, bool, type(None))):
            value = node.value  # dates and binary stay the text they were
        return Scalar(position, value, node.value, _style(node))


def _style(node: Any) -> str:
    return getattr(node, "style", None) or ""


class _JsonError(Exception):
    def __init__(self, message: str, index: int, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.index = index
        self.remedy = remedy


_scan_string: Callable[[str, int, bool], tuple[str, int]] = json.decoder.scanstring  # type: ignore[attr-defined]
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?")
_WORDS = {"true": True, "false": False, "null": None}


class _JsonReader:
    """A recursive-descent reader that keeps positions."""

    def __init__(self, text: str, place: _Place) -> None:
        self.text = text
        self.place = place
        self.index = 0
        self.faults: list[Fault] = []

    def document(self) -> Node:
        if self.text.startswith("\ufeff"):
            raise _JsonError(
                "the file begins with a byte order mark, which JSON does not allow", 0, "save it without BOM"
            )
        root = self.value("")
        self.space()
        if self.index < len(self.text):
            raise _JsonError("there is text after the end of the value", self.index, "keep one JSON value")
        return root

    def space(self) -> None:
        while self.index < len(self.text) and self.text[self.index] in " \t\r\n":
            self.index += 1

    def peek(self) -> str:
        self.space()
        if self.index >= len(self.text):
            raise _JsonError("the text ends too early", self.index, "close every bracket and quote")
        return self.text[self.index]

    def value(self, path: str) -> Node:
        char = self.peek()
        position = self.place.at(self.text, self.index)
        if char == "{":
            return self.mapping(position, path)
        if char == "[":
            return self.sequence(position, path)
        if char == '"':
            text = self.string()
            return Scalar(position, text, text, '"')
        for word, value in _WORDS.items():
            if self.text.startswith(word, self.index):
                self.index += len(word)
                return Scalar(position, value, word)
        match = _NUMBER.match(self.text, self.index)
        if match:
            self.index = match.end()
            number: Any = float(match.group()) if match.group(1) or match.group(2) else int(match.group())
            return Scalar(position, number, match.group())
        raise self.unexpected(char)

    def unexpected(self, char: str) -> _JsonError:
        remedies = {
            "'": 'JSON strings have double quotes: "…"',
            "#": "JSON has no comments: remove it",
            "/": "JSON has no comments: remove it",
        }
        return _JsonError(f"{char!r} cannot begin a JSON value", self.index, remedies.get(char, ""))

    def string(self) -> str:
        try:
            text, self.index = _scan_string(self.text, self.index + 1, True)
        except json.JSONDecodeError as error:
            raise _JsonError(error.msg, error.pos) from None
        return text

    def mapping(self, position: Position, path: str) -> Mapping:
        self.index += 1
        entries: list[Entry] = []
        seen: dict[str, Position] = {}
        if self.peek() == "}":
            self.index += 1
            return Mapping(position, ())
        while True:
            char = self.peek()
            if char == "}":
                raise _JsonError("a comma before } is not allowed in JSON", self.index, "remove the comma before it")
            if char != '"':
                raise _JsonError(
                    f"a key must begin with a double quote, not {char!r}", self.index, 'write "key": value'
                )
            key_position = self.place.at(self.text, self.index)
            name = self.string()
            if self.peek() != ":":
                raise _JsonError(f"a colon is missing after the key {name!r}", self.index, 'write "key": value')
            self.index += 1
            below = f"{path}.{name}" if path else name
            if name in seen:
                message = f"{name} is written twice (first on line {seen[name].line}); the last one wins"
                self.faults.append(Fault("duplicate-key", message, key_position, "keep one of the two", below))
            seen.setdefault(name, key_position)
            entries.append(Entry(Scalar(key_position, name, name, '"'), self.value(below)))
            if not self.more("}"):
                return Mapping(position, tuple(entries))

    def sequence(self, position: Position, path: str) -> Sequence:
        self.index += 1
        items: list[Node] = []
        if self.peek() == "]":
            self.index += 1
            return Sequence(position, ())
        while True:
            if self.peek() == "]":
                raise _JsonError("a comma before ] is not allowed in JSON", self.index, "remove the comma before it")
            items.append(self.value(f"{path}[{len(items)}]"))
            if not self.more("]"):
                return Sequence(position, tuple(items))

    def more(self, end: str) -> bool:
        char = self.peek()
        if char not in (",", end):
            raise _JsonError(f"a comma or {end} is missing before {char!r}", self.index)
        self.index += 1
        return char == ","
