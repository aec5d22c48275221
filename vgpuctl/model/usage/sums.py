"""Sums over rows; an unknown part makes a sum a lower bound, and all parts unknown make it unknown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import msgspec

from vgpuctl.model.usage.filter import Filter
from vgpuctl.model.usage.holdings import Holdings
from vgpuctl.model.usage.row import Level, PendingPod, Row, State, Totals

Number = TypeVar("Number", int, float)

_WORST_FIRST: tuple[State, ...] = ("over", "active", "waiting", "ending", "unknown", "idle")


def add(values: Sequence[Number | None]) -> tuple[Number | None, bool]:
    """The sum of the known values, None when there are none; and whether some were unknown."""
    known = [value for value in values if value is not None]
    return (sum(known) if known else None), len(known) < len(values)


def mean(values: Iterable[float | None]) -> float | None:
    """The mean of the known values."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def group_row(level: Level, vgpus: list[Row], holdings: Holdings, identity: object) -> Row:
    """The row of a group: what its vGPUs sum up to, and for a node or a card what is its own."""
    running = list(filter(_counts, vgpus))
    memory, memory_partial = add([row.memory_used for row in running])
    cores, cores_partial = add([row.cores_used for row in running])
    kernels = [row.last_kernel for row in vgpus if row.last_kernel is not None]
    ages = [row.at for row in vgpus if row.at is not None]
    values: dict[str, Any] = {
        "vgpus": sum(row.vgpus or 0 for row in vgpus),
        "memory_used": memory,
        "memory_allocated": add([row.memory_allocated for row in vgpus])[0] if vgpus else 0,
        "memory_units": add([row.memory_units for row in vgpus])[0] if vgpus else 0,
        "memory_limit": _all([row.memory_limit for row in vgpus]),
        "memory_partial": memory_partial and memory is not None,
        "cores_used": cores,
        "cores_limit": _all([row.cores_limit for row in vgpus]),
        "cores_allocated": add([row.cores_allocated for row in vgpus])[0] if vgpus else 0.0,
        "cores_partial": cores_partial and cores is not None,
        "last_kernel": max(kernels) if kernels else None,
        "processes": _all([row.processes for row in vgpus]),
        "stale": any(row.stale for row in vgpus),
        "at": min(ages) if ages else None,
        "state": state_of(vgpus),
    }
    place = _place(level, holdings, identity)
    if place is not None:
        if place.memory_used is not None:
            values |= {"memory_used": place.memory_used, "memory_partial": False}
            if not vgpus and holdings.whole:
                values["cores_used"] = 0.0
        if place.state != "ready" or level == "node":
            values["state"] = place.state
        elif not vgpus:
            values["state"] = "free" if holdings.whole and not place.vgpus else "unknown"
        values["at"] = place.at if place.at is not None else values["at"]
        values["stale"] = place.stale or values["stale"]
        return msgspec.structs.replace(place, **values)
    first = vgpus[0]
    same: dict[str, Any] = {name: _same(name, vgpus) for name in _NAMES[level]}
    return Row(
        level=level,
        **same,
        **values,
        cards=len({(row.node, row.uuid) for row in vgpus}),
        throttled=mean(row.throttled for row in vgpus),
        busy=mean(row.busy for row in vgpus),
        reason=first.reason if all(row.reason == first.reason for row in vgpus) else "",
    )


def _counts(row: Row) -> bool:
    """A vGPU whose container has not started is no gap in a sum."""
    return row.state != "waiting" or row.memory_used is not None


_NAMES: dict[Level, tuple[str, ...]] = {
    "pod": ("namespace", "pod", "queue", "node"),
    "namespace": ("namespace", "queue"),
    "queue": ("queue",),
    "card": ("node", "card", "uuid"),
    "node": ("node",),
}


def _place(level: Level, holdings: Holdings, identity: object) -> Row | None:
    if level == "node":
        return holdings.nodes.get(identity)  # type: ignore[call-overload,no-any-return]
    if level == "card":
        return holdings.cards.get(identity)  # type: ignore[call-overload,no-any-return]
    return None


def _same(name: str, rows: list[Row]) -> object:
    """The value that all rows share, else None."""
    value = getattr(rows[0], name)
    return value if all(getattr(row, name) == value for row in rows) else None


def _all(values: Sequence[Number | None]) -> Number | None:
    """The sum, None when a part is unknown or there is none."""
    total, partial = add(values)
    return None if partial else total


def state_of(vgpus: list[Row]) -> State:
    """The state that stands for several vGPUs: the first of over, active, waiting, ending, unknown, idle."""
    states = {row.state for row in vgpus}
    return next((state for state in _WORST_FIRST if state in states), "unknown")


def totals(holdings: Holdings, vgpus: list[Row], pending: list[PendingPod], wanted: Filter) -> Totals:
    """Sums over everything shown."""
    cards = [card for card in holdings.cards.values() if not wanted.nodes or card.node in wanted.nodes]
    nodes = [node for node in holdings.nodes.values() if not wanted.nodes or node.node in wanted.nodes]
    used, partial = add([row.memory_used for row in filter(_counts, vgpus)])
    free = [card for card in cards if card.memory_free is not None]
    largest = max(free, key=lambda card: card.memory_free or 0, default=None)
    return Totals(
        nodes=len(nodes) or None,
        cards=len(cards) or None,
        vgpus=sum(row.vgpus or 0 for row in vgpus),
        slots=_all([card.slots for card in cards]),
        memory_used=used,
        memory_allocated=add([row.memory_allocated for row in vgpus])[0] if vgpus else 0,
        memory_total=_all([card.memory_total for card in cards]),
        largest_free=largest.memory_free if largest else None,
        largest_free_node=largest.node if largest else None,
        largest_free_card=largest.card if largest else None,
        cores_allocated=add([row.cores_allocated for row in vgpus])[0] if vgpus else 0.0,
        busy=mean(card.busy for card in cards),
        pending=len(pending),
        idle=sum(row.state == "idle" for row in vgpus),
        over=sum(row.state == "over" for row in vgpus),
        partial=partial,
    )
