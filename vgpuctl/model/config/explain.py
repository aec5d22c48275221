"""Which value of each key is in force on each node, where it comes from, who acts by it, and what it means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from vgpuctl.model.config.keys import BOTH, DEVICE_KEYS, NODE_KEYS, PLUGIN, SCHEDULER, SCHEDULER_KEYS, Key
from vgpuctl.model.config.values import Flag, Stated
from vgpuctl.model.output import Item, Output

NODE_CONFIG, DEVICE_CONFIG, NOTHING = "node config", "device config", "nothing states it"


class InForce(Item, frozen=True, kw_only=True):
    """A key's value in force. origin: what states it. readers: who acts by it; none for a dead key. means: the value
    in words. over: what else states it and does not count, such as `device config: 10`. stated: something states it."""

    key: str
    value: Any = None
    origin: str
    readers: list[str] = []
    means: str = ""
    over: list[str] = []
    stated: bool = True

    def same_answer(self, other: InForce) -> bool:
        """The same value from the same statement, whoever reads it."""
        return all(getattr(self, part) == getattr(other, part) for part in ("key", "value", "origin", "over"))


class Alike(Item, frozen=True, kw_only=True):
    """Readers that have the same answers: nodes (their plugin), or the scheduler. nodes: by name; empty for the
    scheduler, and for all nodes when none is known."""

    subject: str
    nodes: list[str] = []
    keys: list[InForce] = []


class ConfigExplanation(Output, frozen=True, kw_only=True):
    """What `config explain` prints. problems: statements that contradict each other, or count for nothing."""

    groups: list[Alike] = []
    problems: list[str] = []
    notes: list[str] = []


@dataclass(frozen=True)
class Texts:
    """What is known of a pool's configuration. device: what the plugin reads. scheduler_device: what the scheduler
    reads as device config. flags: by node, what the plugin's DaemonSet sets there, None when that is not known.
    names: the nodes with cards, None when they are not known."""

    device: Stated = Stated()
    node: Stated = Stated()
    deviceshare: Stated | None = None
    scheduler_device: Stated | None = None
    flags: Mapping[str, Mapping[str, Flag]] | None = None
    names: tuple[str, ...] | None = None


def explain(texts: Texts, wanted: str = "") -> ConfigExplanation:
    """wanted: only this node. Nodes with the same answers stand together."""
    names = texts.names if texts.names is not None else tuple(texts.node.values)
    alike: dict[bytes, Alike] = {}
    for name in names if not wanted else (wanted,):
        keys = list(_on_node(texts, name))
        group = alike.setdefault(msgspec.json.encode(keys), Alike(subject="nodes", keys=keys))
        group.nodes.append(name)
    groups = list(alike.values())
    groups.sort(key=lambda group: -len(group.nodes))
    if texts.names is None and not wanted:
        others = "all other nodes" if names else "all nodes"
        groups.append(Alike(subject=others, keys=list(_on_node(texts, ""))))
    if texts.deviceshare is not None or texts.scheduler_device is not None:
        groups.append(Alike(subject=SCHEDULER, keys=list(_in_scheduler(texts))))
    return ConfigExplanation(groups=groups, problems=list(dict.fromkeys(_problems(texts, groups))))


def _on_node(texts: Texts, name: str) -> Iterator[InForce]:
    entry: Mapping[str, Any] = texts.node.values.get(name, {})
    flags = (texts.flags or {}).get(name, {})
    for key in (*DEVICE_KEYS, *NODE_KEYS):
        if key.readers and PLUGIN not in key.readers:
            continue
        said = list(_statements(key, entry, flags, texts))
        counting = [one for one in said if one[2]]
        if key.dead and not said:
            continue
        value, origin, _ = counting[0] if counting else (key.zero, NOTHING, True)
        if key.dead:
            value, origin, _ = said[0]
        over = [f"{where}: {_said(other)}" for other, where, _ in said if where != origin]
        yield InForce(
            key=key.name,
            value=value,
            origin=origin,
            readers=list(key.readers),
            means=_means(key, value, origin),
            over=over,
            stated=bool(said),
        )


def _statements(
    key: Key, entry: Mapping[str, Any], flags: Mapping[str, Flag], texts: Texts
) -> Iterator[tuple[Any, str, bool]]:
    """Value, what states it, and whether it counts: the strongest first."""
    if key.node in entry:
        yield entry[key.node], NODE_CONFIG, True
    if key.name in flags:
        yield flags[key.name].value, flags[key.name].how, True
    if key.name in texts.device.values:
        yield texts.device.values[key.name], DEVICE_CONFIG, key.stated


def _means(key: Key, value: Any, origin: str) -> str:
    if value is None and origin.startswith("variable"):
        return "set from a ConfigMap or Secret, which is not read"
    try:
        return key.means(value)
    except (TypeError, ValueError, AttributeError):
        return "a value that its reader cannot take"


def _in_scheduler(texts: Texts) -> Iterator[InForce]:
    for place, keys, stated in (
        ("scheduler configuration", SCHEDULER_KEYS, texts.deviceshare),
        (DEVICE_CONFIG, tuple(key for key in DEVICE_KEYS if SCHEDULER in key.readers), texts.scheduler_device),
    ):
        if stated is None:
            continue
        for key in keys:
            said = key.name in stated.values
            if key.name.endswith(("GPUSharingEnable", "GPUNumberEnable")) and not said:
                continue
            value = stated.values.get(key.name, key.zero)
            yield InForce(
                key=key.name,
                value=value,
                origin=place if said else NOTHING,
                readers=[SCHEDULER],
                means=_means(key, value, ""),
                stated=said,
            )


def _problems(texts: Texts, groups: list[Alike]) -> Iterator[str]:
    for what, stated in (
        (DEVICE_CONFIG, texts.device),
        (NODE_CONFIG, texts.node),
        ("scheduler configuration", texts.deviceshare),
    ):
        if stated is not None and stated.dropped:
            yield f"the {what} is dropped as a whole: {stated.dropped}"
    known = set(texts.names or ())
    for name in texts.node.values if texts.names is not None else ():
        if name not in known:
            yield f"the node config has an entry for {name}, which is no node with cards: it applies to nothing"
    scheduler = next((group for group in groups if group.subject == SCHEDULER), None)
    for group in groups:
        for one in group.keys:
            other = next((k for k in scheduler.keys if k.key == one.key), None) if scheduler else None
            if group is not scheduler and other and tuple(one.readers) == BOTH and one.value != other.value:
                yield (
                    f"{one.key} is {_said(one.value)} for the plugin ({one.origin}) and {_said(other.value)} for the "
                    f"scheduler ({other.origin}): they must agree"
                )


def _said(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "unknown"
    if isinstance(value, list):
        return "a list" if any(isinstance(item, dict) for item in value) else f"[{', '.join(map(str, value))}]"
    return f"{value:g}" if isinstance(value, float) else str(value) or '""'
