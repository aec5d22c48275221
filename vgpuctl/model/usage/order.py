"""Sort keys, as records in a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from vgpuctl.model.usage.row import Row

Key = Callable[[Row], Any]
T = TypeVar("T")
Keys = tuple[tuple["Sort", bool], ...]
"""Sort keys with their direction: True is descending."""


@dataclass(frozen=True)
class Sort:
    """A sort key. value: what is compared, None for unknown (always last). descending: the natural direction."""

    name: str
    about: str
    value: Key
    descending: bool = True


def _name(row: Row) -> Any:
    return (row.node or "", row.card or 0, row.namespace or "", row.pod or "", row.container or "", row.queue or "")


SORTS = {
    sort.name: sort
    for sort in (
        Sort("name", "node, card, namespace and pod", _name, descending=False),
        Sort("memory", "memory used", lambda row: row.memory_used),
        Sort("share", "memory used over its limit", lambda row: row.share),
        Sort("allocated", "memory booked by the scheduler", lambda row: row.memory_allocated),
        Sort("cores", "compute used", lambda row: row.cores_used),
        Sort("busy", "share of time with a kernel running", lambda row: row.busy),
        Sort("throttled", "share of time held back", lambda row: row.throttled),
        Sort("kernel", "time since the last kernel", lambda row: None if row.last_kernel is None else -row.last_kernel),
        Sort("vgpus", "number of vGPUs", lambda row: row.vgpus),
        Sort("free", "largest vGPU that still fits", lambda row: row.memory_free),
        Sort("pod", "namespace and pod", lambda row: (row.namespace or "", row.pod or ""), descending=False),
        Sort("queue", "queue", lambda row: row.queue, descending=False),
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
