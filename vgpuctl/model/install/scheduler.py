"""Turns vGPU sharing on in the text of the scheduler's configuration; all else in it stays byte for byte.

Texts are inserted and replaced at positions. The result is read again and must say exactly what the old text says, and
the switch besides: a layout for which it does not (flow style, anchors, two entries) is left to its owner.
"""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass, field
from typing import Any

from vgpuctl.model.change import Line
from vgpuctl.model.config.scheduler import DEVICESHARE
from vgpuctl.model.config.scheduler_rules import truth
from vgpuctl.model.document import Entry, Mapping, Node, Position, Scalar, Sequence, find, read_yaml
from vgpuctl.model.place import Lines
from vgpuctl.model.problem import Exit, Problem

SWITCH = "deviceshare.VGPUEnable"
PREDICATES = "predicates"
_OLDER = ("deviceshare.GPUSharingEnable", "deviceshare.GPUNumberEnable")
BY_HAND = f"beside {PREDICATES}, write by hand: - {{name: {DEVICESHARE}, arguments: {{{SWITCH}: true}}}}"
_QUOTED = {'"': re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL), "'": re.compile(r"'(?:[^']|'')*'", re.DOTALL)}
_NO_CONTENT = re.compile(r"\s*(#.*)?")


@dataclass(frozen=True)
class Edited:
    """text: the configuration with the switch on. lines: what differs, none when it was on."""

    text: str
    lines: tuple[Line, ...]


def switched_on(text: str, where: str) -> Edited:
    """The text of a scheduler configuration with deviceshare.VGPUEnable on, the older switches off (with one of them
    the scheduler would exit), and the predicates plugin that deviceshare works through.

    where: names the text in the Problem that is raised when it cannot be edited safely.
    """
    try:
        return _Editor(text).run()
    except _Unfit as unfit:
        raise Problem(f"{where} cannot be edited: {unfit}", remedy=BY_HAND, exit_code=Exit.FINDINGS) from None


class _Unfit(Exception):
    """Why a text cannot be edited."""


@dataclass(frozen=True)
class _Plugin:
    """A plugin's entry. tier, index: where it is. dash: offset of where it begins."""

    tier: int
    index: int
    node: Mapping
    dash: int


@dataclass
class _Editor:
    """edits: (offset, length, replacement). wanted: what the new text must say."""

    text: str
    edits: list[tuple[int, int, str]] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)

    def run(self) -> Edited:
        self.bom = "\ufeff" if self.text.startswith("\ufeff") else ""
        self.body = self.text.removeprefix("\ufeff")
        self.places = Lines(self.body)
        documents = read_yaml(self.body)
        root = documents[0].root
        if len(documents) != 1 or documents[0].faults or not isinstance(root, Mapping):
            raise _Unfit(
                "it is no valid YAML mapping" if documents[0].faults or len(documents) == 1 else "it is several"
            )
        self.root = root
        self.wanted: Any = copy.deepcopy(root.plain())
        found = [plugin for plugin in self._plugins() if _name(plugin) == DEVICESHARE]
        if len(found) > 1:
            raise _Unfit(f"{DEVICESHARE} is there {len(found)} times, and the last entry resets the others")
        predicates = next((plugin for plugin in self._plugins() if _name(plugin) == PREDICATES), None)
        if found:
            if predicates is None:
                self._add(found[0], {"name": PREDICATES}, [f"- name: {PREDICATES}"])
            self._switch(found[0])
        else:
            self._new_entry(predicates)
        return self._checked()

    def _plugins(self) -> list[_Plugin]:
        found = []
        tiers = self.root.get("tiers")
        for tier, node in enumerate(tiers if isinstance(tiers, Sequence) else ()):
            plugins = find(node, "plugins")
            for index, item in enumerate(plugins if isinstance(plugins, Sequence) else ()):
                if isinstance(plugins, Sequence) and isinstance(item, Mapping):
                    found.append(_Plugin(tier, index, item, self._offset(plugins.mark(index))))
        if not found:
            raise _Unfit("it has no tiers with plugins")
        return found

    def _switch(self, plugin: _Plugin) -> None:
        """Sets the arguments of the entry that is there."""
        arguments = plugin.node.get("arguments")
        here = self.wanted["tiers"][plugin.tier]["plugins"][plugin.index]
        given = arguments if isinstance(arguments, Mapping) else None
        for name in _OLDER:
            entry = given.entry(name) if given else None
            if entry and truth(entry):
                self._replace(entry, "false")
                here["arguments"][name] = False
        entry = given.entry(SWITCH) if given else None
        if entry and truth(entry):
            return
        if entry:
            self._replace(entry, "true")
        else:
            self._add_argument(plugin, given)
            self.lines.append(Line(SWITCH, None, "true"))
        here["arguments"] = {**(here.get("arguments") or {}), SWITCH: True}

    def _add_argument(self, plugin: _Plugin, given: Mapping | None) -> None:
        heading = plugin.node.entry("arguments")
        if heading is None:
            name = plugin.node.entry("name")
            assert name is not None
            self._block(plugin.node)
            column = name.position.column - 1
            self._insert(
                name.value.position.line, [" " * column + "arguments:", " " * (column + 2) + f"{SWITCH}: true"]
            )
            return
        if given is not None:
            self._block(given)
        elif not (isinstance(heading.value, Scalar) and not heading.value.text and not heading.value.quoted):
            raise _Unfit(f"the arguments of {DEVICESHARE} are no mapping")
        column = given.entries[0].position.column - 1 if given and given.entries else heading.position.column + 1
        self._insert(heading.position.line, [" " * column + f"{SWITCH}: true"])

    def _new_entry(self, predicates: _Plugin | None) -> None:
        switch = {"name": DEVICESHARE, "arguments": {SWITCH: True}}
        rows = [f"- name: {DEVICESHARE}", "  arguments:", f"    {SWITCH}: true"]
        if predicates is not None:
            self._add(predicates, switch, rows)
            return
        last = self._plugins()[-1]
        self._add(last, switch, rows)
        self._add(last, {"name": PREDICATES}, [f"- name: {PREDICATES}"])

    def _add(self, beside: _Plugin, value: dict[str, Any], rows: list[str]) -> None:
        """A new entry after another one."""
        if self.body[beside.dash : beside.dash + 1] != "-":
            raise _Unfit("its plugins are not written one a line")
        column = self.places.at(beside.dash).column - 1
        if self.places.row(self.places.at(beside.dash).line)[:column].strip():
            raise _Unfit("its plugins are not written one a line")
        self._insert(self._last_line(beside.dash, column), [" " * column + row for row in rows])
        self.wanted["tiers"][beside.tier]["plugins"].insert(beside.index + 1, value)
        self.lines.append(Line(f"plugin {value['name']}", None, "added"))
        if value.get("arguments"):
            self.lines.append(Line(SWITCH, None, "true"))

    def _last_line(self, dash: int, indent: int) -> int:
        """The last line of the entry that begins at a dash; comments that are indented deeper belong to it."""
        first = last = self.places.at(dash).line
        for number in range(first + 1, len(self.places.starts) + 1):
            row = self.places.row(number)
            deeper = bool(row[: indent + 1].isspace()) and len(row) - len(row.lstrip()) > indent
            if row.strip() and deeper:
                last = number
            elif not _NO_CONTENT.fullmatch(row):
                break
        return last

    def _block(self, node: Node) -> None:
        if self.body[self._offset(node.position) :][:1] == "{":
            raise _Unfit(f"{DEVICESHARE} is written in flow style")

    def _replace(self, entry: Entry, value: str) -> None:
        """Another value for a key; what stands behind it on the line stays."""
        old = entry.value
        if not isinstance(old, Scalar) or old.offset < 0:
            raise _Unfit(f"{entry.name} is no single value")
        if not old.text and not old.quoted:
            start = self._offset(entry.position) + len(entry.key.text)
            colon = self.body.index(":", start)
            self.edits.append((colon + 1, 0, f" {value}"))
        else:
            raw = _QUOTED[old.style].match(self.body, old.offset) if old.style in _QUOTED else None
            length = len(raw.group()) if raw else len(old.text)
            self.edits.append((old.offset, length, value))
        self.lines.append(Line(entry.name, old.text or "empty", value))

    def _insert(self, line: int, rows: list[str]) -> None:
        """New lines after a line (1-based), ended as that one is."""
        start = self.places.starts[line - 1]
        row = self.places.row(line)
        rest = self.body[start + len(row) : start + len(row) + 2]
        ending = "\r\n" if rest == "\r\n" else rest[:1] or self._ending()
        self.edits.append((start + len(row), 0, "".join(ending + new for new in rows)))

    def _ending(self) -> str:
        return "\r\n" if "\r\n" in self.body else "\n"

    def _offset(self, position: Position) -> int:
        return self.places.starts[position.line - 1] + position.column - 1

    def _checked(self) -> Edited:
        body = self.body
        # from the end on; of several at one place, what was said last comes to stand first
        for offset, length, new in sorted(self.edits, key=lambda edit: -edit[0]):
            body = body[:offset] + new + body[offset + length :]
        documents = read_yaml(body)
        root = documents[0].root
        if len(documents) != 1 or documents[0].faults or root is None or root.plain() != self.wanted:
            raise _Unfit("its layout is not one that can be edited without changing something else")
        return Edited(self.bom + body, tuple(self.lines))


def _name(plugin: _Plugin) -> str:
    name = plugin.node.get("name")
    return name.text if isinstance(name, Scalar) else ""
