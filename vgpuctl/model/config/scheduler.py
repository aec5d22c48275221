"""Volcano's scheduler configuration (`volcano-scheduler.conf`): what its loader makes of it (Volcano ed72c7c)."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from vgpuctl.model.config.shape import MOST_GUESSES, Bool, ListOf, Loaded, Loader, MapOf, Section, Text, nearest
from vgpuctl.model.document import Document, Entry, Mapping, Node, Position, Scalar, Sequence
from vgpuctl.model.manifest import join

REJECTED = "the scheduler rejects the whole configuration and keeps the old one"
DEVICESHARE = "deviceshare"
_OPTIONS = (
    *("enableJobOrder", "enableHierarchy", "enableJobReady", "enableJobPipelined", "enableTaskOrder"),
    *("enablePreemptable", "enableReclaimable", "enablePreemptive", "enableQueueOrder", "enabledClusterOrder"),
    *("enablePredicate", "enableBestNode", "enableNodeOrder", "enableTargetJob", "enableReservedNodes"),
    *("enableJobEnqueued", "enabledVictim", "enableJobStarving", "enabledOverused", "enabledAllocatable"),
    *("enabledHyperNodeOrder", "enabledSubJobReady", "enabledSubJobPipelined", "enabledSubJobOrder"),
    *("enabledHyperNodeGradient", "enableNamespaceOrder"),
)
ACTIONS = ("enqueue", "allocate", "backfill", "preempt", "reclaim", "shuffle", "gangpreempt", "gangreclaim")
PLUGINS = (
    *("priority", "gang", "conformance", "overcommit", "drf", "predicates", "deviceshare", "proportion", "capacity"),
    *("nodeorder", "binpack", "sla", "tdm", "task-topology", "numa-aware", "cdp", "rescheduling", "usage", "pdb"),
    *("nodegroup", "network-topology-aware", "resource-strategy-fit", "extender", "resourcequota"),
)


class Argument(msgspec.Struct, frozen=True):
    """An argument of deviceshare. kind: bool, int, text or rules. since: the first Volcano that reads it."""

    name: str
    kind: str
    since: str = "1.9.0"


ARGUMENTS = {
    argument.name: argument
    for argument in (
        Argument("deviceshare.VGPUEnable", "bool"),
        Argument("deviceshare.GPUSharingEnable", "bool"),
        Argument("deviceshare.GPUNumberEnable", "bool"),
        Argument("deviceshare.NodeLockEnable", "bool"),
        Argument("deviceshare.AscendMindClusterVNPUEnable", "bool", "1.14.0"),
        Argument("deviceshare.AscendHAMiVNPUEnable", "bool", "1.14.0"),
        Argument("deviceshare.SchedulePolicy", "text"),
        Argument("deviceshare.ScheduleWeight", "int"),
        Argument("deviceshare.KnownGeometriesCMName", "text", "1.12.0"),
        Argument("deviceshare.KnownGeometriesCMNamespace", "text", "1.12.0"),
        Argument("deviceshare.GPUExclusiveRules", "rules", "1.15.0"),
    )
}


def _stray(entry: Entry) -> tuple[str, str, str] | None:
    if entry.name in ARGUMENTS or not entry.name.lower().startswith(("deviceshare.", "predicate.")):
        return None
    return "wrong-nesting", f"{entry.name} is not read here: it belongs under arguments", "move it under arguments:"


_FREE = MapOf({}, strict=False)
_PLUGIN = MapOf(
    {"name": Text(), **dict.fromkeys(_OPTIONS, Bool()), "arguments": _FREE},
    strict=False,
    homes=dict.fromkeys(ARGUMENTS, "arguments"),
    special=_stray,
)
_TIER = MapOf(
    {"plugins": ListOf(_PLUGIN)},
    strict=False,
    homes=dict.fromkeys(("name", "arguments", *_OPTIONS, *ARGUMENTS), "plugins"),
)
ROOT = MapOf(
    {
        "actions": Text(),
        "tiers": ListOf(_TIER),
        "configurations": ListOf(MapOf({"name": Text(), "arguments": _FREE}, strict=False)),
        "metrics": _FREE,
    },
    strict=False,
    homes=dict.fromkeys(("plugins", "name", "arguments", *_OPTIONS, *ARGUMENTS), "tiers"),
)


class Plugin(msgspec.Struct, frozen=True):
    """A plugin of a tier. tier: its index. place: its dash. lost: arguments that were meant by unread keys."""

    name: str
    tier: int
    place: Position
    path: str
    fields: Section
    arguments: Mapping | None
    lost: frozenset[str] = frozenset()

    def argument(self, name: str) -> Entry | None:
        return self.arguments.entry(name) if self.arguments else None

    def path_of(self, name: str) -> str:
        return join(f"{self.path}.arguments", name)


class SchedulerConfig(msgspec.Struct, frozen=True):
    """A scheduler configuration as its loader sees it."""

    loader: Loader
    root: Section | None
    plugins: tuple[Plugin, ...]
    tiers: tuple[Loaded, ...]
    place: Position

    def named(self, name: str) -> list[Plugin]:
        return [plugin for plugin in self.plugins if plugin.name == name]

    def meant(self, name: str) -> bool:
        """The plugin is there, perhaps misspelt."""
        return any(
            plugin.name == name or nearest(plugin.name, PLUGINS) == name for plugin in self.plugins[:MOST_GUESSES]
        )

    @property
    def deviceshare(self) -> list[Plugin]:
        return self.named(DEVICESHARE)

    def arguments(self, kind: str) -> Iterator[tuple[Plugin, Entry]]:
        """The arguments of one kind of every deviceshare entry."""
        for plugin in self.deviceshare:
            for entry in plugin.arguments or ():
                found = ARGUMENTS.get(entry.name)
                if found and found.kind == kind:
                    yield plugin, entry


def read(document: Document) -> SchedulerConfig:
    """A scheduler configuration from its text; whatever the text is."""
    loader = Loader(document, "yaml", REJECTED)
    root = document.root
    place = root.position if root else document.start
    if not isinstance(root, Mapping):
        if isinstance(root, Sequence) and any(isinstance(item, Mapping) and item.get("plugins") for item in root):
            loader.hit("wrong-nesting", place, "", f"no tiers around the list: {REJECTED}", "put it under tiers:")
        elif not document.broken:
            loader.hit("foreign-format", place, "", "this is no scheduler configuration", "write actions: and tiers:")
        return SchedulerConfig(loader, None, (), (), place)
    names = root.names
    if not names & {*ROOT.fields, *ROOT.homes} and not any(nearest(name, ROOT.fields) for name in names):
        return _not_at_the_top(root, loader, place)
    section = loader.load(root, ROOT, "").value
    assert isinstance(section, Section)
    tiers = section.get("tiers") or []
    plugins = tuple(plugin for index, tier in enumerate(tiers) for plugin in _plugins(index, tier, loader))
    return SchedulerConfig(loader, section, plugins, tuple(tiers), place)


def _not_at_the_top(root: Mapping, loader: Loader, place: Position) -> SchedulerConfig:
    first = next(iter(root), None)
    position = first.position if first else place
    if any(isinstance(entry.value, Mapping) and entry.value.get("tiers") for entry in root):
        loader.hit(
            "wrong-nesting", position, "", "actions and tiers stand one level too deep", "remove the level above"
        )
    else:
        loader.hit("foreign-format", position, "", "this is no scheduler configuration", "write actions: and tiers:")
    return SchedulerConfig(loader, None, (), (), place)


def _plugins(index: int, tier: Loaded, loader: Loader) -> Iterator[Plugin]:
    if not isinstance(tier.value, Section):
        return
    for loaded in tier.value.sections("plugins"):
        fields: Section = loaded.value
        name = fields.get("name") or ""
        arguments = fields.fields.get("arguments")
        mapping = arguments.node if arguments and isinstance(arguments.node, Mapping) else None
        lost = _unread(name, mapping, loaded.path, loader) if mapping else set()
        yield Plugin(name, index, loaded.place, loaded.path, fields, mapping, frozenset(lost | fields.lost))


def _unread(plugin: str, arguments: Mapping, path: str, loader: Loader) -> set[str]:
    """Arguments that nobody reads: misspelt ones, and those of another plugin."""
    lost: set[str] = set()
    for entry in arguments:
        here = join(f"{path}.arguments", entry.name)
        if plugin != DEVICESHARE:
            if entry.name in ARGUMENTS and nearest(plugin, PLUGINS) != DEVICESHARE:
                lost.add(entry.name)
                message = f"{entry.name} is an argument of deviceshare; {plugin} does not read it"
                loader.hit("wrong-nesting", entry.position, here, message, "move it to the deviceshare plugin")
            continue
        if entry.name in ARGUMENTS or entry.name.startswith("predicate."):
            continue
        meant = next((name for name in ARGUMENTS if name.lower() == entry.name.lower()), "")
        if meant:
            message = f"{entry.name} is not read: arguments are looked up exactly"
            loader.hit("key-case", entry.position, here, message, f"write {meant}")
        else:
            loader.guesses += 1
            meant = _meant(entry.name) if loader.guesses <= MOST_GUESSES else ""
            if not meant and not entry.name.lower().startswith("deviceshare"):
                continue
            remedy = f"did you mean {meant}?" if meant else f"known: {', '.join(ARGUMENTS)}"
            loader.hit("key-misspelt", entry.position, here, f"{entry.name} is an unknown argument: ignored", remedy)
        lost.add(meant)
    return lost


def _meant(name: str) -> str:
    """The argument that a misspelt one stands for; the part behind the dot decides."""
    short = {argument.partition(".")[2]: argument for argument in ARGUMENTS}
    prefix, _, rest = name.rpartition(".")
    if prefix and not nearest(prefix, [DEVICESHARE]):
        return ""
    return short.get(nearest(rest or name, short), "")


def value_of(node: Node) -> object:
    """What yaml.v2 puts into an interface: a string, a number, a boolean, None; the node itself for the rest."""
    return node.value if isinstance(node, Scalar) else node
