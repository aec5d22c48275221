"""Takes cards out of service in the text of a node config, and brings them back: by `filterdevices`, by positions, so
that the rest of the text stays byte for byte.

The plugin (v1.12.0 to 4fb76ba) takes of a node's entries the last filter that is not empty, and compares UUIDs and
NVML's indexes exactly.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from vgpuctl.model.document import Entry, Mapping, Node, Scalar, Sequence, read_json
from vgpuctl.model.place import Lines

_DECODER = json.JSONDecoder()


class UnfitError(ValueError):
    """The text cannot be edited; says why."""


@dataclass(frozen=True)
class Filter:
    """What is out of service on a node."""

    uuids: tuple[str, ...] = ()
    indexes: tuple[int, ...] = ()


def filtered(text: str, node: str) -> Filter:
    """The filter in force for a node. Raises UnfitError for what the plugin does not read."""
    entry = _Text(text).filtering(node)
    if entry is None:
        return Filter()
    return Filter(
        tuple(item.text for item in _items(entry, "uuid")), tuple(int(item.text) for item in _items(entry, "index"))
    )


def without(text: str, node: str, card: str | int) -> str:
    """The text in which a card of a node is out of service too. text: "" for none. card: its UUID, or NVML's index.

    Raises UnfitError.
    """
    part, written = ("uuid", json.dumps(card)) if isinstance(card, str) else ("index", str(card))
    value = f'{{"{part}": [{written}]}}'
    new = f'{{"name": {json.dumps(node)}, "filterdevices": {value}}}'
    if not text.strip():
        return f'{{"nodeconfig": [\n  {new}\n]}}\n'
    here = _Text(text)
    entry = here.filtering(node) or here.last(node)
    if entry is None:
        return here.appended(here.entries, new)
    devices = _field(entry, "filterdevices")
    if devices is None or not isinstance(devices.value, Mapping):
        return here.replaced(devices.value, value) if devices else here.appended(entry, f'"filterdevices": {value}')
    listed = _field(devices.value, part)
    if listed is None or not isinstance(listed.value, Sequence):
        items = f"[{written}]"
        return here.replaced(listed.value, items) if listed else here.appended(devices.value, f'"{part}": {items}')
    return here.appended(listed.value, written)


def again(text: str, node: str, card: str | int) -> str:
    """The text in which a card of a node is back in service. Raises UnfitError."""
    part = "uuid" if isinstance(card, str) else "index"
    while True:
        here = _Text(text)
        entry = here.filtering(node)
        listed = _list(entry, part) if entry else None
        places = [number for number, item in enumerate(_items(entry, part)) if item.value == card] if entry else []
        if listed is None or not places:
            return text
        text = here.removed(listed, places[0])


class _Text:
    """A node config and where its values stand."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = Lines(text)
        document = read_json(text)
        root = document.root
        if document.broken or not isinstance(root, Mapping):
            fault = document.faults[0].message if document.faults else "it is no object"
            raise UnfitError(f"the plugin does not read it: {fault}")
        entry = _field(root, "nodeconfig")
        if entry is None or not isinstance(entry.value, Sequence):
            raise UnfitError("it has no nodeconfig list")
        self.entries = entry.value

    def last(self, node: str) -> Mapping | None:
        """The last entry of a node."""
        return next((entry for entry in reversed(self._own(node))), None)

    def filtering(self, node: str) -> Mapping | None:
        """The entry whose filter counts."""
        return next(
            (entry for entry in reversed(self._own(node)) if any(_items(entry, name) for name in ("uuid", "index"))),
            None,
        )

    def _own(self, node: str) -> list[Mapping]:
        return [
            item
            for item in self.entries
            if isinstance(item, Mapping)
            and (name := _field(item, "name"))
            and isinstance(name.value, Scalar)
            and name.value.value == node
        ]

    def start(self, node: Node) -> int:
        return self.lines.starts[node.position.line - 1] + node.position.column - 1

    def end(self, node: Node) -> int:
        """The offset behind a value."""
        return _DECODER.raw_decode(self.text, self.start(node))[1]

    def replaced(self, node: Node, new: str) -> str:
        return self.text[: self.start(node)] + new + self.text[self.end(node) :]

    def appended(self, collection: Mapping | Sequence, new: str) -> str:
        """A last item more, set off from the one before as that one is from what is before it."""
        close = self.end(collection) - 1
        if isinstance(collection, Mapping):
            last: Node | None = collection.entries[-1].value if collection.entries else None
            first: Node | None = collection.entries[-1].key if collection.entries else None
        else:
            last = first = collection.items[-1] if collection.items else None
        if last is None or first is None:
            return self.text[: self.start(collection) + 1] + new + self.text[close:]
        gap = self._gap(self.start(first))
        end = self.end(last)
        return f"{self.text[:end]},{gap}{new}{self.text[end:]}"

    def _gap(self, start: int) -> str:
        """The space before a value: a new line and its indentation where it begins its line, else one space."""
        before = self.text[:start]
        bare = before.rstrip(" \t\r\n")
        gap = before[len(bare) :]
        return gap if "\n" in gap else " "

    def removed(self, collection: Sequence, index: int) -> str:
        """One item less, with its comma."""
        items = collection.items
        if len(items) == 1:
            return self.text[: self.start(collection) + 1] + self.text[self.end(collection) - 1 :]
        if index + 1 < len(items):
            return self.text[: self.start(items[index])] + self.text[self.start(items[index + 1]) :]
        return self.text[: self.end(items[index - 1])] + self.text[self.end(items[index]) :]


def _field(node: Mapping, name: str) -> Entry | None:
    """A field in any case, as encoding/json takes it; the last one counts."""
    return next((entry for entry in reversed(node.entries) if entry.name.lower() == name), None)


def _list(entry: Mapping, name: str) -> Sequence | None:
    devices = _field(entry, "filterdevices")
    found = _field(devices.value, name) if devices and isinstance(devices.value, Mapping) else None
    return found.value if found and isinstance(found.value, Sequence) else None


def _items(entry: Mapping, name: str) -> list[Scalar]:
    listed = _list(entry, name)
    return [item for item in listed if isinstance(item, Scalar)] if listed else []
