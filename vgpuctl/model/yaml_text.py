"""YAML to nodes, from the parser's events: no recursion, aliases shared, positions kept."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import yaml

from vgpuctl.model.document import MAX_DEPTH, Document, Entry, Fault, Mapping, Node, Scalar, Sequence
from vgpuctl.model.place import Lines, Place, Position
from vgpuctl.model.yaml_scalar import resolve

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MAX_NODES = 1_000_000
_SPACES = {
    "\u00a0": "U+00A0 NO-BREAK SPACE",
    "\u2002": "U+2002 EN SPACE",
    "\u2003": "U+2003 EM SPACE",
    "\u2009": "U+2009 THIN SPACE",
    "\u202f": "U+202F NARROW NO-BREAK SPACE",
    "\u3000": "U+3000 IDEOGRAPHIC SPACE",
    "\u0085": "U+0085 NEXT LINE",
    "\u2028": "U+2028 LINE SEPARATOR",
    "\u2029": "U+2029 PARAGRAPH SEPARATOR",
}
_ZERO_WIDTH = {
    "\u200b": "U+200B ZERO WIDTH SPACE",
    "\u00ad": "U+00AD SOFT HYPHEN",
    "\u2060": "U+2060 WORD JOINER",
    "\ufeff": "U+FEFF BYTE ORDER MARK",
}
_NAMES = {**_SPACES, **_ZERO_WIDTH}
_ANY = re.compile(f"[{''.join(_NAMES)}]")
_AT_EDGE = re.compile(f"^[{''.join(_SPACES)}]|[{''.join(_SPACES)}]$|[{''.join(_ZERO_WIDTH)}]")
_INDENT = re.compile(f"^ *([{''.join(_NAMES)}])", re.MULTILINE)


def read(text: str, place: Place | None) -> list[Document]:
    """See document.read_yaml."""
    body = text.removeprefix("\ufeff")
    reader = _Reader(body, place or Lines(body))
    try:
        reader.run()
    except yaml.reader.ReaderError:
        reader.end(_control(body, reader.place))
    except yaml.YAMLError as error:
        reader.end(_syntax(error, body, reader.place))
    except _Refused as error:
        reader.end(error.fault)
    return reader.documents or [Document(None, (), body, reader.start, reader.place)]


class _Refused(Exception):
    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


@dataclass
class _Open:
    """A collection that is being read. depth and size: of what it holds, aliases counted in full."""

    offset: int
    anchor: str | None
    is_mapping: bool
    flow: bool
    path: str
    items: list[Node] = field(default_factory=list)
    marks: list[Position] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    seen: dict[str, Position] = field(default_factory=dict)
    key: Scalar | None = None
    depth: int = 0
    size: int = 1


class _Reader:
    def __init__(self, text: str, place: Place) -> None:
        self.text = text
        self.place = place
        self.lines = Lines(text)
        self.documents: list[Document] = []
        self.faults: list[Fault] = []
        self.open: list[_Open] = []
        self.anchors: dict[str, tuple[Node, int, int]] = {}
        self.root: Node | None = None
        self.start = self.place.at(0)

    def run(self) -> None:
        for event in yaml.parse(self.text, Loader=_LOADER):
            assert event.start_mark is not None
            offset = event.start_mark.index
            if isinstance(event, yaml.ScalarEvent):
                self.add(self.scalar(event, offset), event.anchor, offset, 0, 1)
            elif isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
                self.begin(event, offset)
            elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
                self.finish()
            elif isinstance(event, yaml.AliasEvent):
                self.alias(event, offset)
            elif isinstance(event, yaml.DocumentStartEvent):
                self.root, self.anchors, self.faults, self.start = None, {}, [], self.place.at(offset)
            elif isinstance(event, yaml.DocumentEndEvent):
                nothing = isinstance(self.root, Scalar) and not self.root.text and not self.root.quoted
                root = None if nothing else self.root
                self.documents.append(Document(root, tuple(self.faults), self.text, self.start, self.place))

    def end(self, fault: Fault) -> None:
        """The document ends here, with a fault that stops the reader."""
        self.documents.append(Document(None, (fault,), self.text, self.start, self.place))

    def scalar(self, event: Any, offset: int) -> Scalar:
        text, style, tag = event.value, event.style or "", event.tag or ""
        if style and tag.endswith((":int", ":float", ":bool", ":null")):
            style = ""
        value = text if style or tag.endswith(":str") else resolve(text)
        return Scalar(self.place.at(offset), value, text, style, offset)

    def begin(self, event: Any, offset: int) -> None:
        if len(self.open) >= MAX_DEPTH:
            raise self.refuse(f"nested more than {MAX_DEPTH} levels deep", offset)
        is_mapping = isinstance(event, yaml.MappingStartEvent)
        self.open.append(_Open(offset, event.anchor, is_mapping, bool(event.flow_style), self.path()))

    def finish(self) -> None:
        top = self.open.pop()
        position = self.place.at(top.offset)
        node: Node
        if top.is_mapping:
            node = Mapping(position, _merged(top.entries))
        else:
            node = Sequence(position, tuple(top.items), tuple(top.marks))
        self.add(node, top.anchor, top.offset, top.depth, top.size)

    def alias(self, event: Any, offset: int) -> None:
        if event.anchor not in self.anchors:
            raise self.refuse(f"*{event.anchor} refers to nothing before it", offset)
        node, depth, size = self.anchors[event.anchor]
        self.add(node, None, offset, depth, size)

    def add(self, node: Node, anchor: str | None, offset: int, depth: int, size: int) -> None:
        """A node is complete: it goes into the collection that is open, as key, value or item."""
        if anchor:
            self.anchors[anchor] = (node, depth, size)
        if not self.open:
            self.root = node
            return
        top = self.open[-1]
        top.depth, top.size = max(top.depth, depth + 1), top.size + size
        if top.size > _MAX_NODES or top.depth > MAX_DEPTH:
            raise self.refuse("the aliases expand to too much", top.offset, "write the values out")
        if top.is_mapping and top.key is None:
            top.key = self.key(node, top)
            return
        self.invisible(node, _AT_EDGE)
        if top.key is None:
            top.items.append(node)
            top.marks.append(self.place.at(offset) if top.flow else self.dash(top.offset, offset))
        else:
            top.entries.append(Entry(top.key, node))
            top.key = None

    def key(self, node: Node, top: _Open) -> Scalar:
        self.invisible(node, _ANY)
        key = node if isinstance(node, Scalar) else Scalar(node.position, "?", "?")
        if key.text in top.seen and key.text != "<<":
            first = top.seen[key.text].line
            path = f"{top.path}.{key.text}" if top.path else key.text
            message = f"{key.text} is written twice (first on line {first}); the last one wins"
            self.faults.append(Fault("duplicate-key", message, key.position, "keep one of the two", path))
        top.seen.setdefault(key.text, key.position)
        return key

    def path(self) -> str:
        """The path of the node that comes next."""
        if not self.open:
            return ""
        top = self.open[-1]
        if not top.is_mapping:
            return f"{top.path}[{len(top.items)}]"
        name = top.key.text if top.key else "?"
        return f"{top.path}.{name}" if top.path else name

    def invisible(self, node: Node, pattern: re.Pattern[str]) -> None:
        if not isinstance(node, Scalar) or node.style in ("|", ">"):
            return
        match = pattern.search(node.text)
        if match:
            message = f"{_NAMES[match.group()]} is part of {node.text!r}"
            self.faults.append(Fault("invisible-character", message, node.position, "remove it, or use a plain space"))

    def dash(self, first: int, item: int) -> Position:
        """Where the dash of an item of a block list stands; `first` is the offset of the list's first dash."""
        column = self.lines.at(first).column
        line = self.lines.at(item).line
        for candidate in range(line, max(line - 1000, 0), -1):
            if self.lines.row(candidate)[column - 1 : column] == "-":
                return self.place.at(self.lines.starts[candidate - 1] + column - 1)
        return self.place.at(item)

    def refuse(self, message: str, offset: int, remedy: str = "") -> _Refused:
        return _Refused(Fault("yaml-syntax", message, self.place.at(offset), remedy, fatal=True))


def _merged(entries: list[Entry]) -> tuple[Entry, ...]:
    """The entries with those that `<<` names put first, as far as they are not written out."""
    if not any(entry.name == "<<" and not entry.key.quoted for entry in entries):
        return tuple(entries)
    own = [entry for entry in entries if entry.name != "<<" or entry.key.quoted]
    names = {entry.name for entry in own}
    merged: dict[str, Entry] = {}
    for entry in entries:
        if entry.name == "<<":
            sources = entry.value.items if isinstance(entry.value, Sequence) else (entry.value,)
            for source in sources:
                for inner in source if isinstance(source, Mapping) else ():
                    if inner.name not in names:
                        merged.setdefault(inner.name, inner)
    return (*merged.values(), *own)


def _control(text: str, place: Place) -> Fault:
    match = yaml.reader.Reader.NON_PRINTABLE.search(text)
    offset = match.start() if match else 0
    name = f"U+{ord(match.group()):04X}" if match else "a control character"
    return Fault("invisible-character", f"{name} is not allowed in YAML", place.at(offset), "remove it", fatal=True)


def _syntax(error: yaml.YAMLError, text: str, place: Place) -> Fault:
    """The fault behind a parser's error; its cause often stands before the place where the parser stopped."""
    problem = str(getattr(error, "problem", None) or error)
    context = str(getattr(error, "context", None) or "")
    stopped = getattr(error, "problem_mark", None)
    begun = getattr(error, "context_mark", None)
    mark = stopped or begun
    offset = min(mark.index if mark else 0, len(text.rstrip()))
    lines = Lines(text)
    line = lines.at(offset).line
    tab = _tab(lines, line, "tab" in problem or text[offset : offset + 1] == "\t")
    if tab is not None:
        return Fault("yaml-tab", "a tab cannot indent YAML", place.at(tab), "indent with spaces", fatal=True)
    for match in _INDENT.finditer(text):
        if lines.at(match.start(1)).line <= line:
            message = f"{_NAMES[match.group(1)]} is not indentation"
            return Fault("invisible-character", message, place.at(match.start(1)), "use plain spaces", fatal=True)
    remedy = ""
    glued = _glued(lines, line) if "mapping values are not allowed" in problem else None
    if glued is not None:
        offset, remedy = glued, "put a space after the colon"
    elif begun and any(word in context for word in ("quoted scalar", "simple key", "flow mapping", "flow sequence")):
        offset = begun.index
        remedy = "close what begins here" if "key" not in context else "write it as key: value"
    message = f"{problem} ({context})" if context else problem
    return Fault("yaml-syntax", message, place.at(offset), remedy, fatal=True)


def _glued(lines: Lines, line: int) -> int | None:
    """The offset of the line above `line` when it lacks the space after its colon, as in `key:value`."""
    above = next((n for n in range(line - 1, 0, -1) if _content(lines.row(n))), 0)
    row = _content(lines.row(above))
    if not row or re.search(r":( |$)", row) or ":" not in row:
        return None
    return lines.starts[above - 1] + len(row) - len(row.lstrip())


def _content(row: str) -> str:
    """A line without its comment and the space at its end."""
    return re.sub(r"(^|\s)#.*", "", row).rstrip()


def _tab(lines: Lines, line: int, is_tab: bool) -> int | None:
    """The offset of the tab in the indentation that made the parser stop at `line`, if one did."""
    for candidate in (line, line - 1, line + 1) if is_tab else (line, line - 1):
        match = re.match(r" *\t", lines.row(candidate))
        if match and lines.row(candidate).strip():
            return lines.starts[candidate - 1] + match.end() - 1
    return None
