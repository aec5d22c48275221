"""Rewrites the amounts of a text for another factor: only their digits change, every other byte stays."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from vgpuctl.model.document import Document, Mapping, Node, Scalar, Sequence, place_of, read_json, read_yaml
from vgpuctl.model.manifest import manifests, read_text
from vgpuctl.model.migrate.place import ASIDE, FACTOR_FLAG, Place, What, counted, patched_key, places, pointer, units
from vgpuctl.model.output import Item
from vgpuctl.model.place import Lines
from vgpuctl.model.quantity import units_for

_FACTORS = ("gpuMemoryFactor", "gpu-memory-factor")
_MARKER = re.compile(r"\{\{|\{%")
_QUOTED = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'[^']*'")
_COMMENT = re.compile(r"(?:^|\s)#.*")


class Rewritten(Item, frozen=True, kw_only=True):
    """One amount, or the factor itself. before and after: memory units, or MiB per unit. mib_before and mib_after: what
    an amount was and is; None for the factor. rounded: MiB more than before."""

    file: str
    line: int
    object: str = ""
    path: str
    what: What = What.AMOUNT
    before: int
    after: int
    mib_before: int | None = None
    mib_after: int | None = None

    @property
    def rounded(self) -> int:
        return (self.mib_after or 0) - (self.mib_before or 0)


class Left(Item, frozen=True, kw_only=True):
    """What was not rewritten and must be looked at by hand. line: 0 for the whole file."""

    file: str
    line: int = 0
    why: str


@dataclass
class Rewriting:
    """text: the new one. factors: MiB per unit that the text states now."""

    text: str
    places: list[Rewritten] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)


def factors(text: str, file: str) -> Iterator[int]:
    """The factors that a text states, in device configs and in flags of the plugin."""
    if not any(name in text for name in _FACTORS):
        return
    for document in read_text(text, file):
        for part in _parts(document, "\0"):
            for found in part.places:
                if found.what is What.FACTOR and (number := _factor(found.value)):
                    yield number


def rewrite(text: str, file: str, old: int, new: int, memory: str) -> Rewriting:
    """A text whose amounts, written for factor `old`, are written for factor `new`. memory: the memory resource's name.

    An amount that would not be a whole number of units is rounded up. What cannot be rewritten is in `left`.
    """
    bom = "\ufeff" if text.startswith("\ufeff") else ""
    body = text[len(bom) :]
    lines = Lines(body)
    documents = read_text(body, file)
    result = Rewriting(text)
    broken = _unreadable(documents, body, file)
    if broken:
        if _mentioned(body, memory):
            result.left.append(broken)
        return result
    edits: dict[int, tuple[int, str]] = {}
    told: set[int] = set()
    for document in documents:
        for part in _parts(document, memory):
            told |= _told(part.node, memory)
            for found in part.places:
                _edit(found, part.object, body, lines, (old, new), result, edits, told, file)
    for start, (end, digits) in sorted(edits.items(), reverse=True):
        body = body[:start] + digits + body[end:]
    result.text = bom + body
    result.places.sort(key=lambda one: one.line)
    result.left += _untold(lines, memory, told, file)
    result.left = sorted({one.line: one for one in reversed(result.left)}.values(), key=lambda one: one.line)
    return result


def _edit(
    found: Place,
    title: str,
    body: str,
    lines: Lines,
    change: tuple[int, int],
    result: Rewriting,
    edits: dict[int, tuple[int, str]],
    told: set[int],
    file: str,
) -> None:
    """Notes one place: an edit of its digits, or why there is none."""
    old, new = change
    scalar: Scalar = found.value
    line = scalar.position.line
    told.add(line)
    before = _factor(scalar) if found.what is What.FACTOR else units(scalar)
    if before is None:
        result.left.append(Left(file=file, line=line, why=f"{scalar.text!r} is no whole number of memory units"))
        return
    if found.what is What.FACTOR and before == new:
        return
    after = new if found.what is What.FACTOR else units_for(before * old, new)
    if found.what is What.FACTOR and before != old:
        result.left.append(Left(file=file, line=line, why=f"the factor here is {before}, not {old}"))
        return
    span = _digits(scalar, body, lines)
    if span is None:
        why = (
            "it is an alias or has an anchor or a tag"
            if "\n" not in scalar.text
            else "its place in the text is unclear"
        )
        result.left.append(Left(file=file, line=line, why=f"{found.path}: {why}: write {after} by hand"))
        return
    if before == after or span[0] in edits:
        return
    edits[span[0]] = (span[1], str(after))
    amount = found.what is What.AMOUNT
    result.places.append(
        Rewritten(
            file=file,
            line=line,
            object=title,
            path=found.path,
            what=found.what,
            before=before,
            after=after,
            mib_before=before * old if amount else None,
            mib_after=after * new if amount else None,
        )
    )


def _factor(scalar: Scalar) -> int | None:
    """The factor of a device config, or of the plugin's flag."""
    flag = FACTOR_FLAG.fullmatch(str(scalar.value))
    if flag:
        return int(flag[1])
    return scalar.value if isinstance(scalar.value, int) and not isinstance(scalar.value, bool) else None


def _digits(scalar: Scalar, body: str, lines: Lines) -> tuple[int, int] | None:
    """Where the number stands in the file, its quotes and what is before it left out; None where that is not plain."""
    if scalar.position.line > len(lines.starts):
        return None
    start = lines.starts[scalar.position.line - 1] + scalar.position.column - 1
    if scalar.style in ('"', "'"):
        if body[start : start + 1] != scalar.style:
            return None
        start += 1
    elif scalar.style:
        return None
    end = start + len(scalar.text)
    if body[start:end] != scalar.text or (scalar.style and body[end : end + 1] != scalar.style):
        return None
    flag = FACTOR_FLAG.fullmatch(scalar.text)
    return (start + flag.start(1), end) if flag else (start, end)


@dataclass(frozen=True)
class _Part:
    """An object of a text, or of a text inside it."""

    object: str
    node: Node
    places: tuple[Place, ...]


def _parts(document: Document, memory: str, within: str = "") -> Iterator[_Part]:
    for manifest in manifests([document]):
        title = within or (manifest.title if manifest.kind else "")
        found = list(places(manifest.root, memory, manifest.path))
        yield _Part(title, manifest.root, tuple(one for one in found if one.what is not What.TEXT))
        for one in found:
            if one.what is What.TEXT:
                inner = place_of(one.value, document.text)
                text = one.value.text
                for read in [read_json(text, inner)] if text[:1] == "{" else read_yaml(text, inner):
                    yield from _parts(read, memory, title)


def _unreadable(documents: list[Document], body: str, file: str) -> Left | None:
    """Why a text cannot be rewritten at all."""
    marker = next(
        (number for number, row in enumerate(body.splitlines(), 1) if _MARKER.search(_bare(_QUOTED.sub("", row)))), 0
    )
    fault = next((fault for document in documents for fault in document.faults if fault.fatal), None)
    if marker:
        return Left(
            file=file, line=marker, why="it is a template that was not rendered: change its values, or render it"
        )
    if fault:
        return Left(file=file, line=fault.position.line, why=f"it cannot be read: {fault.message}")
    return None


def _bare(row: str) -> str:
    """A line without its comment."""
    return _COMMENT.sub("", row)


def _mentioned(text: str, memory: str) -> str:
    """What a text says of the resource or the factor, "" when nothing."""
    names = "|".join(map(re.escape, (memory, pointer(memory), *_FACTORS)))
    found = re.search(rf"({names})(?![\w-])", text)
    return found[1] if found else ""


def _told(node: Node | None, memory: str, *, aside: bool = False) -> set[int]:
    """The lines on which the resource's name stands for something that is understood: an amount, a name, a label."""
    found: set[int] = set()
    if isinstance(node, Mapping):
        for entry in node.entries:
            inner = aside or entry.name in ASIDE
            if memory in entry.name and (inner or (counted(entry.name, memory) and isinstance(entry.value, Scalar))):
                found.add(entry.position.line)
            if entry.name == "path" and counted(patched_key(getattr(entry.value, "text", None)), memory):
                found.add(entry.value.position.line)
            found |= _told(entry.value, memory, aside=inner)
    elif isinstance(node, Sequence):
        for item in node:
            found |= _told(item, memory, aside=aside)
    elif isinstance(node, Scalar) and (aside or node.text == memory):
        found |= set(range(node.position.line, node.position.line + node.text.count("\n") + 2))
    return found


def _untold(lines: Lines, memory: str, told: set[int], file: str) -> Iterator[Left]:
    """Lines that name the resource or the factor in a way that was not understood."""
    for number in range(1, len(lines.starts) + 1):
        if number not in told and (name := _mentioned(_bare(lines.row(number)), memory)):
            yield Left(file=file, line=number, why=f"{name} stands here in a way that is not understood")
