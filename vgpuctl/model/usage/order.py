"""Sort keys, as records in a table."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

from vgpuctl.model.usage.row import Row

Key = Callable[[Row], Any]
T = TypeVar("T")
Keys = tuple[tuple["Sort", bool], ...]
"""Sort keys with their direction: True is descending."""


@dataclass(frozen=True)
class Sort:
    """A sort key. letter: its key on the live screen. value: what is compared, None for unknown (always last).
    descending: the natural direction."""

    name: str
    letter: str
    about: str
    value: Key
    descending: bool = True


@lru_cache(maxsize=16384)
def _natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """A name as people sort it: gpu-2 before gpu-10."""
    return tuple((1, int(part), "") if part.isdecimal() else (0, 0, part) for part in re.split(r"(\d+)", name))


def _name(row: Row) -> Any:
    if row.level in ("node", "card", "vgpu", "process"):
        return (
            _natural(row.node or ""),
            row.card or 0,
            row.namespace or "",
            row.pod or "",
            row.container or "",
            row.pid or 0,
        )
    return ((row.queue or "") if row.level == "queue" else "", row.namespace or "", row.pod or "")


def _since(last_kernel: float | None) -> float | None:
    return None if last_kernel is None else -last_kernel


SORTS = {
    sort.name: sort
    for sort in (
        Sort("name", "n", "node, card, namespace and pod", _name, descending=False),
        Sort("memory", "m", "memory used", lambda row: row.memory_used),
        Sort("share", "s", "memory used over its limit", lambda row: row.share),
        Sort("allocated", "a", "memory booked by the scheduler", lambda row: row.memory_allocated),
        Sort("cores", "c", "compute used", lambda row: row.cores_used),
        Sort("busy", "b", "share of time with a kernel running", lambda row: row.busy),
        Sort("throttled", "t", "share of time held back", lambda row: row.throttled),
        Sort("kernel", "k", "time since the last kernel", lambda row: _since(row.last_kernel)),
        Sort("vgpus", "v", "number of vGPUs", lambda row: row.vgpus),
        Sort("free", "f", "largest vGPU that still fits", lambda row: row.memory_free),
        Sort("pod", "p", "namespace and pod", lambda row: (row.namespace or "", row.pod or ""), descending=False),
        Sort("queue", "u", "queue", lambda row: row.queue, descending=False),
    )
}


def sort_keys(text: str) -> Keys:
    """The keys of `--sort memory,-cores` with their direction; `-` reverses the natural one.

    Raises ValueError with the unknown key's name.
    """
    keys = []
    for word in filter(None, text.split(",")):
        name = word.removeprefix("-")
        if name not in SORTS:
            raise ValueError(name)
        keys.append((SORTS[name], SORTS[name].descending != word.startswith("-")))
    return tuple(keys)


def ordered(items: list[T], keys: Keys, row_of: Callable[[T], Row]) -> list[T]:
    """Sorted by each key in turn, unknown values last, by name where all are equal."""
    items = sorted(items, key=lambda item: _name(row_of(item)))
    for sort, descending in reversed(keys):
        if sort.value is _name and not descending:
            continue
        known = [item for item in items if sort.value(row_of(item)) is not None]
        unknown = [item for item in items if sort.value(row_of(item)) is None]
        known.sort(key=lambda item: sort.value(row_of(item)), reverse=descending)
        items = known + unknown
    return items
