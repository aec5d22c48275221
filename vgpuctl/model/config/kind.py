"""The kinds of configuration, as records: their form, their ConfigMap, how they are read and by which rules; and what
a text without a name looks like."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from vgpuctl.model import configmaps
from vgpuctl.model.config import device, device_rules, node, node_rules, scheduler, scheduler_rules
from vgpuctl.model.config.shape import nearest
from vgpuctl.model.context import Context
from vgpuctl.model.document import Document, Mapping, Node, Sequence
from vgpuctl.model.rule import Rule


class Kind(msgspec.Struct, frozen=True):
    """name: as in `--kind`. form: yaml or json. data_key, configmap: where upstream looks for it.
    namespaces: where its ConfigMap may be, given what is known of the pool; empty when that is unknown.
    last: a rule that follows from any other error, and is said only without one."""

    name: str
    title: str
    form: str
    data_key: str
    configmap: Callable[[Context], str]
    namespaces: Callable[[Context], tuple[str, ...]]
    read: Callable[[Document], Any]
    rules: tuple[Rule[Any], ...]
    last: str = ""


DEVICE = Kind(
    "device-config",
    "device config",
    "yaml",
    configmaps.DEVICE_KEY,
    lambda context: configmaps.DEVICE,
    lambda context: configmaps.PLUGIN_NAMESPACES,
    device.read,
    device_rules.RULES,
)
NODE = Kind(
    "node-config",
    "node config",
    "json",
    configmaps.NODE_KEY,
    lambda context: configmaps.NODE,
    lambda context: (context.plugin_namespace,) if context.plugin_namespace else configmaps.PLUGIN_NAMESPACES,
    node.read,
    node_rules.RULES,
)
SCHEDULER = Kind(
    "scheduler",
    "scheduler configuration",
    "yaml",
    configmaps.SCHEDULER_KEY,
    lambda context: context.scheduler_configmap,
    lambda context: (context.scheduler_namespace,) if context.scheduler_namespace else (),
    scheduler.read,
    scheduler_rules.RULES,
    last="vgpu-off",
)
KINDS = {kind.name: kind for kind in (DEVICE, NODE, SCHEDULER)}

_FOREIGN = {"sharing", "mig-configs", "flags"}
_NODE_ENTRY = {"operatingmode", "devicesplitcount", "devicecorescaling", "devicememoryscaling", "filterdevices"}


def kind_of(root: Node | None) -> Kind | None:
    """What a text without a name is, from its keys; a foreign plugin's file counts as a device config gone wrong."""
    if isinstance(root, Sequence):
        items = [item for item in root.items if isinstance(item, Mapping)]
        if any(item.names & _NODE_ENTRY for item in items):
            return NODE
        return SCHEDULER if any("plugins" in item.names for item in items) else None
    if not isinstance(root, Mapping):
        return None
    return next(_guesses(root), None)


def _guesses(root: Mapping) -> Iterator[Kind]:
    names = root.names
    lower = {name.lower() for name in names}
    if "nodeconfig" in lower:
        yield NODE
    if lower & {"nvidia", "vnpus"}:
        yield DEVICE
    if lower & {"actions", "tiers"}:
        yield SCHEDULER
    if names & set(device.NVIDIA.fields):
        yield DEVICE
    if lower & _NODE_ENTRY:
        yield NODE
    if lower & {"plugins", "configurations"}:
        yield SCHEDULER
    inner = [entry.value for entry in root if isinstance(entry.value, Mapping)]
    if any(device.holds_section(value) for value in inner):
        yield DEVICE
    if any("tiers" in value.names for value in inner):
        yield SCHEDULER
    if any("nodeconfig" in value.names for value in inner):
        yield NODE
    if lower & _FOREIGN:
        yield DEVICE
    for name in sorted(names)[:20]:
        meant = nearest(name, ("nvidia", "nodeconfig", "actions", "tiers")) if len(name) > 3 else ""
        if meant:
            yield {"nvidia": DEVICE, "nodeconfig": NODE}.get(meant, SCHEDULER)


def kind_of_text(text: str) -> Kind | None:
    """What a text is that cannot be read, from its words."""
    lower = text.lower()
    if "nodeconfig" in lower:
        return NODE
    if "nvidia" in lower and ":" in lower:
        return DEVICE
    return SCHEDULER if "tiers" in lower or "actions" in lower else None
