"""The types that upstream's loaders decode into, as data, and a loader that says where a text does not fit them.

`Loader.load` walks a node along a shape. What does not fit becomes a `Hit` under a rule id and has no value, so that
later rules stay silent about it; unknown keys are hits too, since upstream drops them without a word.
"""

from __future__ import annotations

import difflib
import functools
import math
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from vgpuctl.model.document import Document, Entry, Mapping, Node, Position, Scalar, Sequence
from vgpuctl.model.finding import Severity
from vgpuctl.model.manifest import join, near
from vgpuctl.model.rule import Hit, Rule
from vgpuctl.model.yaml_scalar import is_octal

_NOTE = re.compile(r"(_|x-|//|#).*|comments?|description|notes?", re.IGNORECASE)
_PLACEHOLDER = re.compile(r"\{\{.*\}\}|\$\{.+\}|\$\(.+\)|\$[A-Za-z_]\w*|%\(.+\)s|<[^<>]+>|@[A-Z_]+@|__[A-Z_]+__")
_WITH_UNIT = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMGT]i?B?|B)\s*", re.IGNORECASE)
_MIB = {"K": 1 / 1024, "M": 1, "G": 1024, "T": 1024**2, "B": 1 / 1024**2}
_TEMPLATE = re.compile(r"\{\{[^{}\n]{0,300}\}\}|\{%[^%\n]{0,300}%\}")
_LONGEST_WORD = 80
MOST_GUESSES = 100
"""So many unknown keys of a text are worth a guess at what was meant."""


class Text(msgspec.Struct, frozen=True):
    """A string; YAML loaders take any scalar for one."""


class Bool(msgspec.Struct, frozen=True):
    """A boolean."""


class Number(msgspec.Struct, frozen=True):
    """A number. both: the range that every loader of the file accepts; either: what at least one of them accepts.
    fraction: it need not be whole. unit_rule: the rule for a number written with a unit."""

    both: tuple[float, float]
    either: tuple[float, float] | None = None
    fraction: bool = False
    unit_rule: str = "string-for-number"


class ListOf(msgspec.Struct, frozen=True):
    """A list. rule: for anything else in its place."""

    item: Shape
    rule: str = "type-mismatch"


class MapOf(msgspec.Struct, frozen=True):
    """A mapping with fixed keys. strict: a key that is near none of them is an error too. rule: for anything else in
    its place. homes: keys that belong to another level, with the path of that level. special: keys with a rule of
    their own, as (key → rule, message, remedy). stray: the rule for a key of another level."""

    fields: dict[str, Shape]
    strict: bool = True
    rule: str = "type-mismatch"
    homes: dict[str, str] = {}
    stray: str = "wrong-nesting"
    special: Callable[[Entry], tuple[str, str, str] | None] | None = None


class Anything(msgspec.Struct, frozen=True):
    """Any value; other code looks at it."""


Shape = Text | Bool | Number | ListOf | MapOf | Anything

UINT = Number((0, 2**64 - 1))
INT32 = Number((-(2**31), 2**31 - 1))
INT64 = Number((-(2**63), 2**63 - 1))
FLOAT = Number((-math.inf, math.inf), fraction=True)


class Loaded(msgspec.Struct, frozen=True):
    """A value that fits its shape, or does not. place: its key, or its dash. value: str, bool, int, float, None for
    null, a list of Loaded, or a Section; `bad` when it does not fit."""

    node: Node
    place: Position
    path: str
    value: Any = None
    bad: bool = False


class Section(msgspec.Struct, frozen=True):
    """A mapping that was read. fields: by right name. lost: right names that were meant by a key that is not read."""

    node: Mapping
    fields: dict[str, Loaded]
    lost: frozenset[str] = frozenset()

    def get(self, name: str) -> Any:
        """The value of a field; None when it is absent, null or does not fit."""
        found = self.fields.get(name)
        return None if found is None or found.bad else found.value

    def absent(self, name: str) -> bool:
        """Nothing in the text was meant to be this field."""
        return name not in self.fields and name not in self.lost

    def zero(self, name: str) -> bool:
        """The field is there, fits, and is what its absence would be: 0, "" or null."""
        found = self.fields.get(name)
        return found is not None and not found.bad and not found.value

    def sections(self, name: str) -> Iterator[Loaded]:
        """The mappings of a list."""
        for item in self.get(name) or ():
            if isinstance(item.value, Section):
                yield item


class Loader:
    """Decodes like yaml.v2 (form "yaml") or encoding/json (form "json": keys in any case, types strict)."""

    def __init__(self, document: Document, form: str, effect: str) -> None:
        self.form = form
        self.effect = effect
        self.hits: dict[str, list[Hit]] = {}
        self.guesses = 0
        self.templates = set(template_lines(document))

    def hit(self, rule: str, position: Position, path: str, message: str, remedy: str = "") -> None:
        self.hits.setdefault(rule, []).append(Hit(position, path, message, remedy))

    def load(
        self, node: Node, shape: Shape, path: str, place: Position | None = None, start: Position | None = None
    ) -> Loaded:
        """A node read as a shape. place: of its key or dash; start: where the value begins, its dash included."""
        where = place or node.position
        if (isinstance(node, Scalar) and node.value is None) or isinstance(shape, Anything):
            return Loaded(node, where, path)
        if node.position.line in self.templates or _is_placeholder(node, shape):
            self.template(node.position, path)
            return Loaded(node, where, path, bad=True)
        if isinstance(shape, ListOf):
            return self.list(node, shape, path, where)
        if isinstance(shape, MapOf):
            return self.map(node, shape, path, where, start or node.position)
        bad = self.misfit(node, shape, path)
        if bad:
            rule, message, remedy = bad
            self.hit(rule, node.position, path, message, remedy)
            return Loaded(node, where, path, bad=True)
        assert isinstance(node, Scalar)
        if isinstance(shape, Number) and not node.quoted and is_octal(node.text) and self.form == "yaml":
            message = f"{node.text} has a leading zero: it is read as octal, {node.value}"
            decimal = str(int(node.text))
            self.hit("yaml-octal", node.position, path, message, f"write {decimal}, or {node.value} if that is meant")
            return Loaded(node, where, path, bad=True)
        value = node.text if isinstance(shape, Text) else node.value
        return Loaded(node, where, path, value)

    def template(self, position: Position, path: str) -> None:
        known = self.hits.get("unrendered-template", ())
        if all(hit.position.line != position.line for hit in known):
            message = f"a template that was not rendered: {self.effect}"
            self.hit("unrendered-template", position, path, message, "render it, or write the value")

    def list(self, node: Node, shape: ListOf, path: str, place: Position) -> Loaded:
        if not isinstance(node, Sequence):
            remedy = "write [ … ]" if self.form == "json" else "write - before each item"
            self.hit(shape.rule, node.position, path, f"a list is wanted here: {self.effect}", remedy)
            return Loaded(node, place, path, bad=True)
        items: list[Loaded] = []
        for index, item in enumerate(node.items):
            mark = node.mark(index)
            items.append(self.load(item, shape.item, join(path, index), mark, mark))
            if items[-1].bad:
                break  # one mistake made throughout a list is one finding
        return Loaded(node, place, path, items)

    def map(self, node: Node, shape: MapOf, path: str, place: Position, start: Position) -> Loaded:
        if not isinstance(node, Mapping):
            wanted = ", ".join(list(shape.fields)[:3])
            self.hit(
                shape.rule, start, path, f"a mapping with {wanted} is wanted here: {self.effect}", f"write {wanted}"
            )
            return Loaded(node, place, path, bad=True)
        fields: dict[str, Loaded] = {}
        lost: set[str] = set()
        names = {name.lower(): name for name in shape.fields}
        misplaced = False
        for entry in node:
            name = entry.name if entry.name in shape.fields else None
            if name is None and self.form == "json":
                name = names.get(entry.name.lower())
            if name is None:
                misplaced = self.unknown(entry, shape, path, lost, misplaced)
                continue
            if name in fields:
                message = f"{entry.name} is {name} again: keys count in any case, and the last one wins"
                self.hit("duplicate-key", entry.position, join(path, entry.name), message, "keep one of the two")
            fields[name] = self.load(entry.value, shape.fields[name], join(path, name), entry.position)
        return Loaded(node, place, path, Section(node, fields, frozenset(lost - set(fields))))

    def unknown(self, entry: Entry, shape: MapOf, path: str, lost: set[str], misplaced: bool) -> bool:
        """A key that the loader drops: says what was meant. Returns whether a key of this level was misplaced."""
        here = join(path, entry.name)
        if entry.position.line in self.templates:
            self.template(entry.position, here)
            return misplaced
        special = shape.special(entry) if shape.special else None
        if special:
            rule, message, remedy = special
            self.hit(rule, entry.position, here, message, remedy)
            return misplaced
        if _NOTE.fullmatch(entry.name):
            return misplaced
        meant = next((name for name in shape.fields if name.lower() == entry.name.lower()), "")
        if meant:
            lost.add(meant)
            message = f"{entry.name} is not read: keys are case-sensitive"
            self.hit("key-case", entry.position, here, message, f"write {meant}")
            self.load(entry.value, shape.fields[meant], here, entry.position)
            return misplaced
        if entry.name in shape.homes:
            lost.add(entry.name)
            if not misplaced:
                message = f"{entry.name} is not read here: it belongs under {shape.homes[entry.name]}"
                self.hit(shape.stray, entry.position, here, message, f"move it under {shape.homes[entry.name]}")
            return True
        if isinstance(entry.value, Mapping) and entry.value.names & set(shape.fields):
            lost.update(e.name for e in entry.value)
            message = f"{entry.name} is not read, nor anything under it: its keys belong one level higher"
            self.hit("wrong-nesting", entry.position, here, message, f"remove the level {entry.name}")
            return True
        self.guesses += 1
        meant = nearest(entry.name, shape.fields) if self.guesses <= MOST_GUESSES else ""
        if meant or shape.strict:
            lost.add(meant)
            remedy = f"did you mean {meant}?" if meant else f"remove it; known keys: {', '.join(shape.fields)}"
            self.hit(
                "key-misspelt", entry.position, here, f"{entry.name} is not a key that is read: it is dropped", remedy
            )
            if meant:
                self.load(entry.value, shape.fields[meant], here, entry.position)
        return misplaced

    def misfit(self, node: Node, shape: Text | Bool | Number, path: str) -> tuple[str, str, str] | None:
        """Why a node does not fit a scalar shape, as rule, message, remedy."""
        if not isinstance(node, Scalar):
            return "type-mismatch", f"a single value is wanted here: {self.effect}", ""
        if isinstance(shape, Text):
            if self.form == "json" and not isinstance(node.value, str):
                return "type-mismatch", f"a string is wanted here: {self.effect}", f'write "{node.text}"'
            return None
        if isinstance(shape, Bool):
            if isinstance(node.value, bool):
                return None
            if isinstance(node.value, str):
                remedy = self.write(path, "true" if node.value.lower() in ("true", "yes", "on", "1") else "false")
                return "string-for-bool", f"a string is not a boolean: {self.effect}", remedy
            return "type-mismatch", f"a number is not a boolean: {self.effect}", "write true or false"
        return self.no_number(node, shape, path)

    def write(self, path: str, value: str) -> str:
        """What to write for a key: `key: value`, in the form of the file."""
        key = path.rpartition(".")[2]
        if key.endswith("]"):
            return f"write {value}"
        return f'"{key}": {value}' if self.form == "json" else f"{key}: {value}"

    def no_number(self, node: Scalar, shape: Number, path: str) -> tuple[str, str, str] | None:
        value = node.value
        if isinstance(value, str):
            unit = _WITH_UNIT.fullmatch(value)
            rule = shape.unit_rule if unit else "string-for-number"
            right = _in_mib(unit) if unit and rule == "mig-unit" else value.strip()
            plain = bool(re.fullmatch(r"[0-9]+(\.[0-9]+)?", right))
            remedy = self.write(path, right) if plain else "write a number without quotes or unit"
            return rule, f"{value!r} is a string, not a number: {self.effect}", remedy
        if isinstance(value, bool):
            return "type-mismatch", f"{node.text} is a boolean, not a number: {self.effect}", "write a number"
        remedy = "write a number" if shape.fraction else "write a whole number"
        if isinstance(value, float) and not math.isfinite(value):
            return "number-range", f"{node.text} is no usable number", remedy
        if shape.fraction:
            return None
        if self.form == "json" and not re.fullmatch(r"-?[0-9]+", node.text):
            return "number-range", f"{node.text} is not written as a whole number: {self.effect}", remedy
        if value != int(value):
            return "number-range", f"{node.text} is cut to {int(value)} without a word", remedy
        if shape.both[0] <= value <= shape.both[1]:
            return None
        if shape.either and shape.either[0] <= value <= shape.either[1]:
            who = "the plugin" if value < 0 else "the scheduler"
            return "loaders-disagree", f"only {who} can load {node.text}; the other one drops the whole file", remedy
        return "number-range", f"{node.text} is out of range: {self.effect}", f"{remedy} from 1 on"


def reported(rule: str, severity: Severity, why: str) -> Rule[Any]:
    """A rule that the loader itself finds broken."""
    return Rule(rule, severity, why, lambda config, context: config.loader.hits.get(rule, ()))


def _in_mib(match: re.Match[str]) -> str:
    """A size with a unit as whole MiB."""
    return str(int(float(match.group(1)) * _MIB[match.group(2)[0].upper()]))


def nearest(word: str, names: Iterable[str]) -> str:
    """The name that was meant by a word; "" when none is near."""
    return "" if len(word) > _LONGEST_WORD else _nearest(word, tuple(names))


@functools.lru_cache(maxsize=1024)
def _nearest(word: str, names: tuple[str, ...]) -> str:
    found = near(word, names)
    if found:
        return found
    plain = re.sub(r"[-_ .]", "", word).lower()
    begun = [name for name in names if len(plain) >= 3 and name.lower().startswith(plain)]
    if len(begun) == 1:
        return begun[0]
    if len(plain) >= 5:
        inside = [name for name in names if plain in name.lower() or name.lower() in plain]
        if len(inside) == 1:
            return inside[0]
    lower = {name.lower(): name for name in names}
    close = difflib.get_close_matches(plain, lower, n=1, cutoff=0.72)
    return lower[close[0]] if close else ""


def template_lines(document: Document) -> Iterator[int]:
    """The lines of the file with a template marker outside comments and quotes."""
    for position, _ in templates(document):
        yield position.line


def templates(document: Document) -> Iterator[tuple[Position, str]]:
    """The template markers of a text that no quotes protect, first of each line."""
    offset = 0
    for row in document.text.splitlines(keepends=True):
        bare = re.sub(r"(^|\s)#.*", "", row)
        match = _TEMPLATE.search(bare)
        if match:
            yield document.at(offset + match.start()), match.group()
        offset += len(row)


def _is_placeholder(node: Node, shape: Shape) -> bool:
    if not isinstance(node, Scalar) or not isinstance(node.value, str):
        return False
    pattern = _TEMPLATE if isinstance(shape, Text) else _PLACEHOLDER
    return bool(pattern.fullmatch(node.value.strip()) if pattern is _PLACEHOLDER else pattern.search(node.value))
