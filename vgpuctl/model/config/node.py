"""The node config (`config.json`): strict JSON that the plugin reads on each node.

encoding/json takes keys in any case and refuses a value of the wrong type; one error and the file is ignored on every
node (ran with volcano-vgpu-device-plugin 4fb76ba). Only values above 0 apply.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from vgpuctl.model.config.shape import FLOAT, UINT, ListOf, Loaded, Loader, MapOf, Section, Shape, Text, nearest
from vgpuctl.model.document import Document, Entry, Mapping, Sequence

_FACTOR = re.compile(r"(gpu)?[-_]?memory[-_]?factor", re.IGNORECASE)


def _special(entry: Entry) -> tuple[str, str, str] | None:
    if not _FACTOR.fullmatch(entry.name) and nearest(entry.name, ("gpumemoryfactor", *_FIELDS)) != "gpumemoryfactor":
        return None
    message = f"{entry.name} is ignored: the factor is one value for the whole pool"
    return "per-node-factor", message, "remove it, and set gpuMemoryFactor in device-config.yaml"


_FIELDS: dict[str, Shape] = {
    "name": Text(),
    "operatingmode": Text(),
    "devicesplitcount": UINT,
    "devicecorescaling": FLOAT,
    "devicememoryscaling": FLOAT,
    "migstrategy": Text(),
    "filterdevices": MapOf({"uuid": ListOf(Text()), "index": ListOf(UINT)}),
}
ENTRY = MapOf(_FIELDS, homes=dict.fromkeys(("uuid", "index"), "filterdevices"), special=_special)
ROOT = MapOf({"nodeconfig": ListOf(ENTRY)}, strict=False)
IGNORED = "the whole file is ignored on every node"


class NodeConfig(msgspec.Struct, frozen=True):
    """A node config as the plugin sees it. entries: those that are mappings."""

    loader: Loader
    entries: tuple[Loaded, ...] = ()

    def fields(self, name: str) -> Iterator[Loaded]:
        """The field `name` of each entry that has it."""
        for entry in self.entries:
            found = entry.value.fields.get(name)
            if found and not found.bad:
                yield found


def read(document: Document) -> NodeConfig:
    """A node config from its text; whatever the text is."""
    loader = Loader(document, "json", IGNORED)
    root = document.root
    if isinstance(root, Sequence):
        message = f"no nodeconfig list around the entries: {IGNORED}"
        loader.hit("wrong-nesting", root.position, "", message, 'write {"nodeconfig": [ … ]}')
        return NodeConfig(loader)
    if not isinstance(root, Mapping):
        if root is not None:
            message = f"an object with nodeconfig is wanted here: {IGNORED}"
            loader.hit("type-mismatch", root.position, "", message, 'write {"nodeconfig": [ … ]}')
        return NodeConfig(loader)
    if not any(entry.name.lower() == "nodeconfig" for entry in root):
        stray = next((entry for entry in root if entry.name.lower() in _FIELDS or _FACTOR.fullmatch(entry.name)), None)
        wrapper = next((entry for entry in root if isinstance(entry.value, Mapping) and _holds(entry.value)), None)
        if stray or wrapper:
            entry = stray or wrapper
            assert entry is not None
            message = f"no nodeconfig list at the top: {entry.name} is decoded without error and nothing applies"
            loader.hit("wrong-nesting", entry.position, entry.name, message, 'write {"nodeconfig": [ {…} ]}')
            return NodeConfig(loader)
        if not any(nearest(entry.name, ["nodeconfig"]) for entry in root):
            first = next(iter(root), None)
            position = first.position if first else root.position
            message = "this is no node config: it has no nodeconfig list, so nothing applies"
            loader.hit("foreign-format", position, "", message, 'write {"nodeconfig": [ {…} ]}')
            return NodeConfig(loader)
    section = loader.load(root, ROOT, "").value
    items = section.get("nodeconfig") if isinstance(section, Section) else None
    return NodeConfig(loader, tuple(item for item in items or () if isinstance(item.value, Section)))


def _holds(node: Mapping) -> bool:
    return any(entry.name.lower() == "nodeconfig" for entry in node)
