"""Reads a teams file: what `quota export` writes, with positions for what is wrong in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from vgpuctl.model.document import Entry, Mapping, Node, Position, Scalar, Sequence
from vgpuctl.model.finding import Finding, Severity
from vgpuctl.model.manifest import entries, fault_finding, join, near, read_text
from vgpuctl.model.output import API_VERSION
from vgpuctl.model.quantity import size
from vgpuctl.model.quota.team import Amounts, Team, TeamQueue, wrong_name, wrong_namespace, wrong_queue

_TOP = ("apiVersion", "kind", "source", "teams")
_AMOUNTS = ("number", "memory", "cores")
_TEAM = ("name", "namespaces", *_AMOUNTS, "priorities", "queue")
_QUEUE = ("name", "capability", "guarantee")


@dataclass
class _Reader:
    file: str
    findings: list[Finding] = field(default_factory=list)

    def wrong(self, rule: str, position: Position, path: str, message: str, remedy: str = "") -> None:
        self.findings.append(
            Finding(
                rule=rule,
                severity=Severity.ERROR,
                message=message,
                remedy=remedy,
                file=self.file,
                line=position.line,
                column=position.column,
                path=path,
            )
        )

    def known(self, node: Node | None, path: str, names: tuple[str, ...]) -> Iterator[tuple[Entry, str]]:
        """The entries with known names; the others are findings."""
        if node is not None and not isinstance(node, Mapping):
            self.wrong("type-mismatch", node.position, path, f"{path or 'a teams file'} must be a mapping")
        for entry in entries(node):
            at = join(path, entry.name)
            if entry.name in names:
                yield entry, at
            else:
                right = near(entry.name, names)
                remedy = f"{right}:" if right else f"one of {', '.join(names)}"
                self.wrong("field-misspelt", entry.position, at, f"there is no field {entry.name}", remedy)

    def whole(self, entry: Entry, path: str) -> int | None:
        value = entry.value.value if isinstance(entry.value, Scalar) else "…"
        if value is None:
            return None
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 31:
            return value
        self.wrong("quantity-integer", entry.value.position, path, f"{path} must be a whole number from 0 on")
        return None

    def text(self, entry: Entry, path: str, wrong: Callable[[str], str]) -> str:
        value = _name(entry.value)
        if not value:
            self.wrong("type-mismatch", entry.value.position, path, f"{path} must be a text")
            return ""
        why = wrong(value)
        if why:
            self.wrong("name", entry.value.position, path, why)
        return value

    def memory(self, entry: Entry, path: str) -> str | None:
        value = entry.value
        if not isinstance(value, Scalar) or value.value is None:
            return None
        try:
            size(value.text)
        except ValueError as error:
            self.wrong("unit-suffix", value.position, path, str(error))
            return None
        return value.text

    def amounts(self, node: Node | None, path: str) -> Amounts:
        found: dict[str, int | None] = {}
        memory = None
        for entry, at in self.known(node, path, _AMOUNTS):
            if entry.name == "memory":
                memory = self.memory(entry, at)
            else:
                found[entry.name] = self.whole(entry, at)
        return Amounts(number=found.get("number"), memory=memory, cores=found.get("cores"))

    def queue(self, entry: Entry, path: str) -> TeamQueue | None:
        if isinstance(entry.value, Scalar):
            return TeamQueue(name=self.text(entry, path, wrong_queue)) if entry.value.value is not None else None
        name, parts = "", {}
        for inner, at in self.known(entry.value, path, _QUEUE):
            if inner.name == "name":
                name = self.text(inner, at, wrong_queue)
            else:
                parts[inner.name] = self.amounts(inner.value, at)
        if not name:
            self.wrong("name", entry.position, path, "the queue has no name", "name: …")
        return TeamQueue(name=name, capability=parts.get("capability"), guarantee=parts.get("guarantee"))

    def namespaces(self, entry: Entry, path: str) -> list[str]:
        if not isinstance(entry.value, Sequence):
            self.wrong("type-mismatch", entry.value.position, path, f"{path} must be a list", "[name, …]")
            return []
        found = []
        for index, item in enumerate(entry.value):
            name = _name(item)
            why = wrong_namespace(name)
            if why:
                self.wrong("name", item.position, join(path, index), why)
            found.append(name)
        return found

    def priorities(self, entry: Entry, path: str) -> dict[str, int]:
        found = {}
        for inner in entries(entry.value):
            number = self.whole(inner, join(path, inner.name))
            why = wrong_name(inner.name, "a priority's name")
            if why:
                self.wrong("name", inner.position, join(path, inner.name), why)
            if number is not None:
                found[inner.name] = number
        return found

    def team(self, node: Node, path: str) -> Team | None:
        if not isinstance(node, Mapping):
            self.wrong("type-mismatch", node.position, path, "a team must be a mapping", "- name: …")
            return None
        found = {entry.name: (entry, at) for entry, at in self.known(node, path, _TEAM)}
        name = self.text(*found["name"], wrong_name) if "name" in found else ""
        if "name" not in found:
            self.wrong("name", node.position, path, "a team has no name", "name: …")
        elif "namespaces" not in found and name and not wrong_name(name) and wrong_namespace(name):
            self.wrong("name", found["name"][0].value.position, join(path, "name"), wrong_namespace(name))
        return Team(
            name=name,
            namespaces=self.namespaces(*found["namespaces"]) if "namespaces" in found else [],
            number=self.whole(*found["number"]) if "number" in found else None,
            memory=self.memory(*found["memory"]) if "memory" in found else None,
            cores=self.whole(*found["cores"]) if "cores" in found else None,
            priorities=self.priorities(*found["priorities"]) if "priorities" in found else {},
            queue=self.queue(*found["queue"]) if "queue" in found else None,
        )


def _name(node: Node) -> str:
    """A name as it is written: `y`, `on` and `12` are names too, though YAML makes something else of them."""
    return node.text if isinstance(node, Scalar) and (node.quoted or node.value is not None) else ""


def read_teams(text: str, file: str) -> tuple[list[Team], list[Finding]]:
    """The teams of a text and what is wrong in it. A namespace belongs to one team."""
    reader = _Reader(file)
    teams: list[Team] = []
    owners: dict[str, str] = {}
    for document in read_text(text, file):
        reader.findings += (fault_finding(fault, file) for fault in document.faults)
        if document.root is None:
            continue
        found = {entry.name: (entry, at) for entry, at in reader.known(document.root, "", _TOP)}
        _head(reader, document.root, found)
        listed = found["teams"][0].value if "teams" in found else None
        if not isinstance(listed, Sequence):
            position = found["teams"][0].position if "teams" in found else document.root.position
            reader.wrong("type-mismatch", position, "teams", "there is no list of teams", "teams: [{name: …}]")
            continue
        for index, item in enumerate(listed):
            path = join("teams", index)
            team = reader.team(item, path)
            if team is None:
                continue
            teams.append(team)
            for place in team.places:
                if place in owners:
                    message = f"namespace {place} belongs to team {owners[place]} already"
                    reader.wrong("same-name", item.position, path, message, "name each namespace once")
                owners[place] = team.name
    if not teams and not reader.findings:
        reader.wrong("empty", Position(1), "", "the file names no team")
    return teams, reader.findings


def _head(reader: _Reader, root: Node, found: dict[str, tuple[Entry, str]]) -> None:
    for key, wanted in (("apiVersion", API_VERSION), ("kind", "Teams")):
        entry = found[key][0] if key in found else None
        value = entry.value.value if entry and isinstance(entry.value, Scalar) else None
        if value != wanted:
            position = entry.value.position if entry else root.position
            reader.wrong(
                "kind", position, key, f"this is no teams file: {key} is {value or 'missing'}", f"{key}: {wanted}"
            )
