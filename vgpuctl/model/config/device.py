"""The device config (`device-config.yaml`): what the plugin and the scheduler load of it.

The types are those of both loaders (volcano-vgpu-device-plugin 4fb76ba, Volcano ed72c7c); where they differ, a value
that only one of them takes is a finding of its own.
"""

from __future__ import annotations

import msgspec

from vgpuctl.model.config.shape import (
    FLOAT,
    INT32,
    INT64,
    UINT,
    Bool,
    ListOf,
    Loaded,
    Loader,
    MapOf,
    Number,
    Section,
    Text,
    nearest,
)
from vgpuctl.model.document import Document, Mapping, Node, Position, Sequence

_UNSIGNED_IN_ONE = Number((0, 2**31 - 1), (-(2**31), 2**64 - 1))
INSTANCE = MapOf(
    {
        "name": Text(),
        "memory": Number((0, 2**31 - 1), (-(2**31), 2**31 - 1), unit_rule="mig-unit"),
        "count": INT32,
    },
    rule="mig-shape",
)
_GROUP = MapOf(
    {"group": Text(), "geometries": ListOf(INSTANCE, "mig-shape")},
    rule="mig-shape",
    homes=dict.fromkeys(("name", "memory", "count"), "geometries"),
    stray="mig-shape",
)
_MODEL = MapOf(
    {"models": ListOf(Text(), "mig-shape"), "allowedGeometries": ListOf(_GROUP, "mig-shape")},
    rule="mig-shape",
    homes=dict.fromkeys(("group", "geometries", "name", "memory", "count"), "allowedGeometries"),
    stray="mig-shape",
)
NVIDIA = MapOf(
    {
        "resourceCountName": Text(),
        "resourceMemoryName": Text(),
        "resourceMemoryPercentageName": Text(),
        "resourceCoreName": Text(),
        "deviceSplitCount": UINT,
        "deviceCoreScaling": FLOAT,
        "gpuMemoryFactor": UINT,
        "knownMigGeometries": ListOf(_MODEL, "mig-shape"),
        "deviceMemoryScaling": FLOAT,
        "disableCoreLimit": Bool(),
        "overwriteEnv": Bool(),
        "defaultMemory": _UNSIGNED_IN_ONE,
        "defaultCores": _UNSIGNED_IN_ONE,
        "defaultGPUNum": _UNSIGNED_IN_ONE,
        "resourcePriorityName": Text(),
        "passDeviceSpecs": Bool(),
    },
    homes=dict.fromkeys(("models", "allowedGeometries"), "knownMigGeometries"),
)
_CHIP = MapOf(
    {
        **dict.fromkeys(("commonWord", "chipName", "resourceName", "resourceMemoryName"), Text()),
        **dict.fromkeys(("memoryAllocatable", "memoryCapacity"), INT64),
        **dict.fromkeys(("aiCore", "aiCPU"), INT32),
        "templates": ListOf(
            MapOf({"name": Text(), "memory": INT64, "aiCore": INT32, "aiCPU": INT32}, strict=False),
        ),
    },
    strict=False,
)
_VNPUS = MapOf({"hamiVnpuCore": Bool(), "configs": ListOf(_CHIP)}, strict=False)
_FOREIGN = {
    "sharing": "the NVIDIA device plugin's file (time-slicing or MPS)",
    "flags": "the NVIDIA device plugin's file",
    "mig-configs": "a file of nvidia-mig-parted",
    "nodeconfig": "a node config",
    "tiers": "a scheduler configuration",
    "actions": "a scheduler configuration",
}
DROPPED = "both loaders drop the whole file, the plugin then crashes and the scheduler runs on its defaults"


class DeviceConfig(msgspec.Struct, frozen=True):
    """A device config as the loaders see it. nvidia: its section, None when there is none to look at.
    place: where the section begins."""

    loader: Loader
    nvidia: Section | None
    place: Position

    def field(self, name: str) -> Loaded | None:
        found = self.nvidia.fields.get(name) if self.nvidia else None
        return None if found is None or found.bad else found


def read(document: Document) -> DeviceConfig:
    """A device config from its text; whatever the text is."""
    loader = Loader(document, "yaml", DROPPED)
    root = document.root
    place = root.position if root else document.start
    if not isinstance(root, Mapping):
        if isinstance(root, Sequence):
            loader.hit("type-mismatch", place, "", f"a mapping with nvidia is wanted here: {DROPPED}", "write nvidia:")
        elif not document.broken:
            loader.hit("foreign-format", place, "", "this is no device config: it has no nvidia section", _START)
        return DeviceConfig(loader, None, place)
    _vnpus(root, loader)
    entry = root.entry("nvidia")
    if entry is None:
        _no_section(root, loader)
        return DeviceConfig(loader, None, place)
    beside = _beside(root, loader)
    loaded = loader.load(entry.value, NVIDIA, "nvidia", entry.position)
    if isinstance(loaded.value, Section):
        section = msgspec.structs.replace(loaded.value, lost=loaded.value.lost | beside)
        return DeviceConfig(loader, section, entry.position)
    empty = Section(Mapping(entry.position, ()), {})
    return DeviceConfig(loader, None if loaded.bad or loader.hits else empty, entry.position)


_START = "write an nvidia: section; `vgpuctl config generate --for device-config` shows one"


def _no_section(root: Mapping, loader: Loader) -> None:
    """Why there is no nvidia section: another format, a misspelt key, or keys at the wrong level."""
    for entry in root:
        if entry.name.lower() == "nvidia":
            message = f"{entry.name} is not read: keys are case-sensitive, so there is no nvidia section"
            loader.hit("key-case", entry.position, entry.name, message, "write nvidia")
            return
        if isinstance(entry.value, Mapping) and nearest(entry.name, ["nvidia"]) and _known(entry.value):
            message = f"{entry.name} is not read: there is no nvidia section"
            loader.hit("key-misspelt", entry.position, entry.name, message, "did you mean nvidia?")
            loader.load(entry.value, NVIDIA, entry.name, entry.position)
            return
    for entry in root:
        if entry.name in NVIDIA.fields:
            message = "there is no nvidia section: every key at the top level is ignored, resource names are empty"
            loader.hit("wrong-nesting", entry.position, entry.name, message, "put all keys under nvidia:")
            return
        if holds_section(entry.value):
            message = f"there is no nvidia section at the top level: everything under {entry.name} is ignored"
            loader.hit("wrong-nesting", entry.position, entry.name, message, f"remove the level {entry.name}")
            return
    first = next(iter(root), None)
    what = next((text for name, text in _FOREIGN.items() if name in root.names), "no device config")
    message = f"this is {what}: it has no nvidia section, so all values are zero and the plugin crashes"
    if loader.templates and first is None:
        return
    loader.hit("foreign-format", first.position if first else root.position, "", message, _START)


def holds_section(node: Node, levels: int = 4) -> bool:
    """There is an nvidia section, or its keys, some levels below."""
    if not isinstance(node, Mapping) or not levels:
        return False
    return (
        any(entry.name == "nvidia" and isinstance(entry.value, Mapping) and _known(entry.value) for entry in node)
        or _known(node)
        or any(holds_section(entry.value, levels - 1) for entry in node)
    )


def _known(node: Mapping) -> bool:
    return bool(node.names & set(NVIDIA.fields))


def _beside(root: Mapping, loader: Loader) -> frozenset[str]:
    """Keys of the nvidia section that stand beside it; the first of them is said."""
    stray = [entry for entry in root if entry.name in NVIDIA.fields]
    for entry in stray[:1]:
        message = f"{entry.name} is not read at the top level: it belongs under nvidia"
        loader.hit("wrong-nesting", entry.position, entry.name, message, "indent it below nvidia:")
    return frozenset(entry.name for entry in stray)


def _vnpus(root: Mapping, loader: Loader) -> None:
    """The Ascend section, which only the scheduler decodes; a misfit there makes it drop the whole file."""
    entry = root.entry("vnpus")
    if entry is None:
        return
    other = Loader(Document(None), loader.form, "")
    shape = ListOf(_CHIP) if isinstance(entry.value, Sequence) else _VNPUS
    other.load(entry.value, shape, "vnpus", entry.position)
    for rule in ("type-mismatch", "string-for-number", "string-for-bool"):
        for hit in other.hits.get(rule, ()):
            message = "the plugin skips vnpus, the scheduler cannot decode it and drops the whole file, nvidia included"
            loader.hit(
                "loaders-disagree", hit.position, hit.path, message, hit.remedy or "repair or remove the section"
            )
