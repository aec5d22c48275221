"""What configurations state, as plain values: of the device config, of each node in the node config, of deviceshare,
and of the plugin's own flags and variables.

A text that its loader drops states nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from vgpuctl.model import kube
from vgpuctl.model.config import device, node, scheduler
from vgpuctl.model.config.keys import DEVICE_KEYS, Key
from vgpuctl.model.config.scheduler_rules import truth
from vgpuctl.model.config.shape import Loaded, Loader, Section
from vgpuctl.model.document import Document, read_json, read_yaml

Values = dict[str, Any]

_DROPS = frozenset(("type-mismatch", "string-for-number", "string-for-bool", "mig-unit", "unrendered-template"))
"""Rules of the loader that cost the whole file."""
_JSON_DROPS = _DROPS | {"number-range"}


@dataclass(frozen=True)
class Stated:
    """What a text states. values: of the device config and of deviceshare by key, of the node config by node, then by
    key. dropped: why its loader takes none of it, "" when it does."""

    values: Mapping[str, Any] = field(default_factory=dict)
    dropped: str = ""


def device_values(text: str) -> Stated:
    """The nvidia section of a device config."""
    document = read_yaml(text)[0]
    config = device.read(document)
    dropped = _dropped(document, config.loader, _DROPS)
    if dropped or config.nvidia is None:
        return Stated(dropped=dropped or "it has no nvidia section")
    return Stated({name: _plain(found) for name, found in config.nvidia.fields.items() if not found.bad})


def node_values(text: str) -> Stated:
    """The entries of a node config. Several entries of one node apply in their order; only values above 0 do."""
    document = read_json(text)
    config = node.read(document)
    dropped = _dropped(document, config.loader, _JSON_DROPS)
    if dropped:
        return Stated(dropped=dropped)
    found: dict[str, Values] = {}
    for entry in config.entries:
        name = entry.value.get("name")
        if name:
            found.setdefault(name, {}).update(_entry(entry.value))
    return Stated(found)


def _entry(section: Section) -> Iterator[tuple[str, Any]]:
    for name, loaded in section.fields.items():
        if name == "filterdevices" and isinstance(loaded.value, Section):
            lists = {part: _plain(loaded.value.fields[part]) or [] for part in loaded.value.fields}
            if any(lists.values()):
                yield from ((f"filterdevices.{part}", lists.get(part, [])) for part in ("uuid", "index"))
        elif name != "name" and loaded.value and (not isinstance(loaded.value, (int, float)) or loaded.value > 0):
            yield name, loaded.value


def deviceshare_values(text: str) -> Stated:
    """The arguments of deviceshare; a second entry of the plugin resets the first."""
    document = read_yaml(text)[0]
    config = scheduler.read(document)
    dropped = _dropped(document, config.loader, _DROPS)
    if dropped:
        return Stated(dropped=dropped)
    found: Values = {}
    for plugin in config.deviceshare:
        found = {}
        for entry in plugin.arguments or ():
            argument = scheduler.ARGUMENTS.get(entry.name)
            value = truth(entry) if argument and argument.kind == "bool" else scheduler.value_of(entry.value)
            if argument and isinstance(value, (str, int, float, bool)):
                found[entry.name] = value
    return Stated(found)


def _dropped(document: Document, loader: Loader, rules: frozenset[str]) -> str:
    if document.broken:
        return next(fault.message for fault in document.faults if fault.fatal)
    hit = next((hits[0] for rule, hits in loader.hits.items() if rule in rules and hits), None)
    return f"{hit.path}: {hit.message}" if hit else ""


def _plain(loaded: Loaded) -> Any:
    if isinstance(loaded.value, Section):
        return {name: _plain(inner) for name, inner in loaded.value.fields.items()}
    return [_plain(item) for item in loaded.value] if isinstance(loaded.value, list) else loaded.value


@dataclass(frozen=True)
class Flag:
    """A value that the DaemonSet sets. how: `flag --x` or `variable X`. value: None when it comes from elsewhere (a
    ConfigMap, a Secret), so that it cannot be told here."""

    value: Any
    how: str


def flags(workload: kube.Workload) -> dict[str, Flag]:
    """By the key of the device config: what the plugin's flags and variables set. A flag wins over its variable."""
    container = next((one for one in workload.spec.template.spec.containers if not _is_monitor(one)), None)
    if container is None:
        return {}
    found: dict[str, Flag] = {}
    for key in DEVICE_KEYS:
        flag = _flag(container, key) or _variable(container, key)
        if flag:
            found[key.name] = flag
    return found


def _is_monitor(container: kube.Container) -> bool:
    return any("monitor" in word.lower() for word in (container.name, *(container.command or ())))


def _flag(container: kube.Container, key: Key) -> Flag | None:
    if not key.flag:
        return None
    words = [word for text in (*(container.command or ()), *(container.args or ())) for word in text.split()]
    for index, word in enumerate(words):
        found = re.fullmatch(rf"--?{re.escape(key.flag)}(?:=(.*))?", word)
        if found:
            bare = "true" if isinstance(key.zero, bool) else words[index + 1] if index + 1 < len(words) else ""
            return Flag(_typed(found[1] if found[1] is not None else bare, key), f"flag --{key.flag}")
    return None


def _variable(container: kube.Container, key: Key) -> Flag | None:
    variable = next((one for one in container.env or () if key.variable and one.name == key.variable), None)
    if variable is None:
        return None
    return Flag(None if variable.value is None else _typed(variable.value, key), f"variable {key.variable}")


def _typed(text: str, key: Key) -> Any:
    """The value that Go makes of a flag's text; the text where it makes none (the plugin then ends)."""
    if isinstance(key.zero, bool):
        return text in ("1", "t", "T", "true", "TRUE", "True")
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if number == int(number) else number
