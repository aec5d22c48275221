"""Two configurations compared by what they mean: comments, order and values that say what is so anyway do not count."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from vgpuctl.model.config.keys import KEYS, NODE_KEYS, OTHER, Key
from vgpuctl.model.config.kind import DEVICE, NODE, SCHEDULER, Kind
from vgpuctl.model.config.values import device_values, deviceshare_values, node_values
from vgpuctl.model.document import Mapping as MappingNode
from vgpuctl.model.document import find, read_yaml
from vgpuctl.model.output import Item, Output


class Difference(Item, frozen=True, kw_only=True):
    """One value. key: such as `gpuMemoryFactor`. node: whose, "" for the whole pool. before, after: what it is and what
    it will be, None where it is not stated. means: the new value in words. readers: who acts by it; none for a dead
    key. restart: those that must be restarted to take it."""

    key: str
    node: str = ""
    before: str | None = None
    after: str | None = None
    means: str = ""
    readers: list[str] = []
    restart: list[str] = []


class Compared(Item, frozen=True, kw_only=True):
    """One configuration. file: as the user named it. subject: what it is. place: what it was compared with, "" when
    there is none in the cluster. same_text: they are the same to the letter."""

    file: str
    subject: str
    place: str = ""
    same_text: bool = False
    differences: list[Difference] = []


class ConfigDiff(Output, frozen=True, kw_only=True):
    """What `config diff` prints."""

    compared: list[Compared] = []

    @property
    def differs(self) -> bool:
        return any(one.differences for one in self.compared)


def differences(kind: Kind, before: str | None, after: str) -> list[Difference]:
    """What changes in meaning from one text of a kind to another. before: None when there is none."""
    old, new = (_FLAT[kind.name](text) if text is not None else {} for text in (before, after))
    return [
        _difference(node, path, old.get((node, path)), new.get((node, path)))
        for node, path in dict.fromkeys((*old, *new))
        if old.get((node, path)) != new.get((node, path))
    ]


Flat = Mapping[tuple[str, str], Any]
"""(node, path) → value."""


def _difference(node: str, path: str, before: Any, after: Any) -> Difference:
    key = _key(path)
    value = key.zero if after is None else after
    return Difference(
        key=path,
        node=node,
        before=_text(before),
        after=_text(after),
        means=key.means(value) if path == key.name or path == key.node else "",
        readers=list(key.readers),
        restart=[] if key.reloads else list(key.readers),
    )


def _key(path: str) -> Key:
    by_node = {key.node: key for key in (*KEYS.values(), *NODE_KEYS) if key.node}
    if path in KEYS or path in by_node:
        return KEYS.get(path) or by_node[path]
    if path.startswith(GEOMETRIES):
        return KEYS[GEOMETRIES]
    return OTHER


GEOMETRIES: Final = "knownMigGeometries"
"""The key below which each layout is a value of its own."""


def _device(text: str) -> Flat:
    found: dict[tuple[str, str], Any] = {}
    for name, value in device_values(text).values.items():
        if name == GEOMETRIES:
            found.update({("", path): layout for path, layout in _layouts(value or ())})
        elif value not in (None, KEYS[name].zero):
            found["", name] = value
    root = read_yaml(text)[0].root
    ascend = find(root, "vnpus")
    if ascend is not None:
        found["", "vnpus"] = ascend.plain()
    return found


def _layouts(entries: Any) -> Iterator[tuple[str, str]]:
    for entry in entries:
        models = ",".join(map(str, entry.get("models") or ()))
        for group in entry.get("allowedGeometries") or ():
            slices = ", ".join(
                f"{one.get('count')}×{one.get('name')} of {one.get('memory')} MiB"
                for one in group.get("geometries") or ()
            )
            yield f"{GEOMETRIES}[{models}].{group.get('group')}", slices or "no slice"


def _node(text: str) -> Flat:
    return {
        (name, path): value
        for name, entry in node_values(text).values.items()
        for path, value in entry.items()
        if value not in (None, [], KEYS[path].zero if path in KEYS else None)
    }


def _scheduler(text: str) -> Flat:
    root = read_yaml(text)[0].root
    if not isinstance(root, MappingNode):
        return {}
    read = deviceshare_values(text).values
    settings = {path: value for path, value in _settings(root.plain()) if path not in KEYS}
    return {("", path): value for path, value in (*settings.items(), *read.items())}


def _settings(root: Any) -> Iterator[tuple[str, Any]]:
    """The actions, the plugins of each tier in their order, and every option and argument by its plugin."""
    for name, value in root.items():
        if name == "tiers" and isinstance(value, list):
            for number, tier in enumerate(value, 1):
                plugins = [one for one in (tier or {}).get("plugins") or () if isinstance(one, dict)]
                yield f"tier {number}", ", ".join(str(one.get("name")) for one in plugins)
                for one in plugins:
                    yield from _options(str(one.get("name")), one)
        elif name == "configurations" and isinstance(value, list):
            for one in value:
                if isinstance(one, dict):
                    yield from _options(f"configuration {one.get('name')}", one)
        elif value is not None:
            yield str(name), value


def _options(name: str, plugin: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for option, value in plugin.items():
        if option == "arguments" and isinstance(value, dict):
            for argument, said in value.items():
                yield argument if argument in KEYS else f"{name} {argument}", said
        elif option != "name" and value is not None:
            yield f"{name} {option}", value


_FLAT = {DEVICE.name: _device, NODE.name: _node, SCHEDULER.name: _scheduler}


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
