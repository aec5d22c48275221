"""Finds amounts in memory units: in nodes with positions, and in plain data, by one rule."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from vgpuctl.model.document import Mapping, Scalar, Sequence
from vgpuctl.model.manifest import join
from vgpuctl.model.quantity import quantity
from vgpuctl.model.quota.team import Teams

FACTOR_FLAG = re.compile(r"--?gpu-memory-factor=(\d+)")
_FACTOR = ("nvidia", "gpuMemoryFactor")
ASIDE = frozenset(("metadata", "annotations", "labels", "matchLabels", "nodeSelector", "status"))
"""What is written under these keys is no request and no cap."""
_HARMLESS = re.compile(r"|k|m|e[+-]?\d+")
"""Suffixes with which people and the API server write a whole number of units; others are slips (`4Gi`)."""


class What(str, Enum):
    """What a place holds."""

    AMOUNT = "amount"
    """Memory units."""
    FACTOR = "factor"
    """MiB per unit: of a device config, or of the plugin's flag."""
    TEXT = "text"
    """A text that may hold amounts."""


@dataclass(frozen=True)
class Place:
    """A value that depends on the factor. path: its keys. value: a Scalar of a text, or plain data."""

    what: What
    path: str
    value: Any


def places(value: Any, memory: str, path: str = "") -> Iterator[Place]:
    """Every place below a value, in order of appearance. memory: the name of the memory resource."""
    if _plain(_get(value, "kind")) == Teams.__name__:
        yield from _team_sizes(value, path)
        return
    yield from _below(value, memory, path, "")


def _below(value: Any, memory: str, path: str, parent: str) -> Iterator[Place]:
    pairs = list(_pairs(value))
    if pairs:
        patched = patched_key(_plain(_get(value, "path")))
        for name, child in pairs:
            here = join(path, name)
            if name in ASIDE:
                continue
            if counted(name, memory) or (name == "value" and counted(patched, memory)):
                if _is_leaf(child):
                    yield Place(What.AMOUNT, here, child)
                continue
            if (parent, name) == _FACTOR:
                yield Place(What.FACTOR, here, child)
                continue
            yield from _below(child, memory, here, name)
    elif _is_leaf(value):
        text = _plain(value)
        if isinstance(text, str) and FACTOR_FLAG.fullmatch(text):
            yield Place(What.FACTOR, path, value)
        elif (
            isinstance(text, str)
            and ("\n" in text or text[:1] == "{")
            and any(word in text for word in (memory, pointer(memory), _FACTOR[1]))
        ):
            yield Place(What.TEXT, path, value)
    else:
        for index, child in enumerate(_items(value)):
            yield from _below(child, memory, join(path, index), parent)


def pointer(name: str) -> str:
    """A key as a JSON pointer writes it, in JSON patches."""
    return name.replace("~", "~0").replace("/", "~1")


def patched_key(path: Any) -> str:
    """The last key of a JSON patch's `path`; "" when it is none."""
    return path.rpartition("/")[2].replace("~1", "/").replace("~0", "~") if isinstance(path, str) else ""


def counted(name: str, memory: str) -> bool:
    """A key that stands for an amount in memory units."""
    return name.endswith(memory) and name[: -len(memory)] in ("", "requests.", "limits.")


def units(value: Any) -> int | None:
    """The units that an amount is; None for what is no whole number from 0 on, or has a unit by mistake (`4Gi`)."""
    try:
        amount = quantity(_plain(value))
    except ValueError:
        return None
    return amount.number if amount.whole and amount.value >= 0 and _HARMLESS.fullmatch(amount.suffix) else None


def _team_sizes(value: Any, path: str) -> Iterator[Place]:
    """A teams file: its sizes without a unit are memory units."""
    for name, child in _pairs(value):
        here = join(path, name)
        if name == "memory" and _is_leaf(child) and re.fullmatch(r"\d+", str(_plain(child))):
            yield Place(What.AMOUNT, here, child)
        elif not _is_leaf(child):
            yield from _team_sizes(child, here)
    for index, child in enumerate(_items(value)):
        yield from _team_sizes(child, join(path, index))


def _pairs(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        yield from ((entry.name, entry.value) for entry in value)
    elif isinstance(value, dict):
        yield from value.items()


def _items(value: Any) -> Iterator[Any]:
    if isinstance(value, (Sequence, list)):
        yield from value


def _is_leaf(value: Any) -> bool:
    return not isinstance(value, (Mapping, Sequence, dict, list))


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Scalar) else value


def _get(value: Any, name: str) -> Any:
    return next((child for key, child in _pairs(value) if key == name), None)
