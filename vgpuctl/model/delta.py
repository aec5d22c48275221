"""What has changed in a part of the facts since it was listed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from vgpuctl.model.facts import Facts, Part
from vgpuctl.model.reading import Reading, known


class Kind(str, Enum):
    SET = "set"
    """The object was added or modified."""
    GONE = "gone"
    LIST = "list"
    """The whole part was read anew; the object is its Reading."""


@dataclass(frozen=True)
class Delta:
    """One change. object: a decoded Kubernetes object, as `kube` has it; for Kind.LIST a Reading of all of them."""

    part: Part
    kind: Kind
    object: Any


def apply(facts: Facts, deltas: Iterable[Delta], now: float) -> Facts:
    """The facts after the deltas, in their order; `now` (Unix seconds) becomes the time of the changed parts.

    Objects are told apart by namespace and name; the order of a part is kept, new objects come last. A change to a
    part that is missing is dropped: only a list can make it known.
    """
    changed: dict[Part, Reading[Any]] = {}
    held: dict[Part, dict[tuple[str, str], Any]] = {}
    for delta in deltas:
        if delta.kind is Kind.LIST:
            changed[delta.part] = delta.object
            held.pop(delta.part, None)
            continue
        reading = changed.get(delta.part, facts.part(delta.part))
        if reading.value is None:
            continue
        objects = held.get(delta.part)
        if objects is None:
            objects = held[delta.part] = {_key(item): item for item in reading.value}
        changed[delta.part] = reading
        if delta.kind is Kind.GONE:
            objects.pop(_key(delta.object), None)
        else:
            objects[_key(delta.object)] = delta.object
    for part, objects in held.items():
        changed[part] = known(tuple(objects.values()), changed[part].source, now)
    for part, reading in changed.items():
        facts = facts.with_part(part, reading)
    return facts


def _key(item: Any) -> tuple[str, str]:
    return item.metadata.namespace, item.metadata.name
