"""An amount in a quota or a queue: which resource, under which name, how much."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from vgpuctl.model.context import Context
from vgpuctl.model.document import Entry, Mapping, find
from vgpuctl.model.manifest import Manifest, entries, join
from vgpuctl.model.pod.ask import amount_of, foreign, meant, written_of
from vgpuctl.model.quantity import Quantity
from vgpuctl.model.resource import What

COUNTED = "requests."
"""The only prefix under which the API server counts an extended resource."""

_PREFIX = re.compile(r"(requests?|limits?)\.", re.IGNORECASE)
_NATIVE = re.compile(
    r"count/|.+\.(storageclass|volumeattributesclass)\.storage\.k8s\.io/|.+\.deviceclass\.resource\.k8s\.io/"
)


@dataclass(frozen=True)
class Cap:
    """One amount. base: the resource's name without prefix. what: the vGPU resource that it is, or was meant to be.
    extended: it names an extended resource, not one of Kubernetes' own."""

    entry: Entry
    path: str
    prefix: str
    base: str
    what: What | None
    misspelt: bool
    extended: bool
    amount: Quantity | None
    written: str

    @property
    def number(self) -> int | None:
        return self.amount.number if self.amount and self.amount.whole else None


@dataclass(frozen=True)
class Group:
    """The amounts of one section of one object: `hard`, `capability`, `deserved` or `guarantee`."""

    manifest: Manifest
    section: str
    path: str
    caps: tuple[Cap, ...]

    @property
    def queue(self) -> bool:
        return self.section != "hard"

    def cap(self, what: What) -> Cap | None:
        return next((cap for cap in self.caps if cap.what is what), None)


_SECTIONS: dict[str, dict[str, tuple[str, ...]]] = {
    "ResourceQuota": {"hard": ("spec", "hard")},
    "Queue": {
        "capability": ("spec", "capability"),
        "deserved": ("spec", "deserved"),
        "guarantee": ("spec", "guarantee", "resource"),
    },
}


def groups(manifest: Manifest, context: Context) -> Iterator[Group]:
    """The sections with amounts of a ResourceQuota or a Queue."""
    for section, place in _SECTIONS.get(manifest.kind, {}).items():
        node = find(manifest.root, *place)
        path = manifest.path
        for key in place:
            path = join(path, key)
        if isinstance(node, Mapping):
            caps = tuple(_cap(entry, join(path, entry.name), section == "hard", context) for entry in entries(node))
            yield Group(manifest, section, path, caps)


def _cap(entry: Entry, path: str, in_quota: bool, context: Context) -> Cap:
    name = entry.name
    match = _PREFIX.match(name)
    prefixed = bool(match) and ("/" in name or meant(name[match.end() :] if match else "", context) is not None)
    prefix = match.group() if match and prefixed else ""
    base = name[len(prefix) :]
    exact = context.names.what(base)
    what = exact or meant(base, context)
    native = (in_quota and bool(_NATIVE.match(name))) or ("/" not in base and what is None)
    amount = None if isinstance(entry.value, Mapping) else amount_of(entry.value)
    return Cap(entry, path, prefix, base, what, exact is None, not native, amount, written_of(entry.value))


def foreign_cap(cap: Cap, context: Context) -> bool:
    """The amount is of another product's resource for NVIDIA cards."""
    return cap.what is None and foreign(cap.base, context) is not None
