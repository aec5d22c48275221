"""A new memory factor in a cluster: what changes its meaning, and how caps are brought over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from vgpuctl.model import kube
from vgpuctl.model.api import CAPS, TEMPLATES, Resource
from vgpuctl.model.change import Change
from vgpuctl.model.migrate.use import Use, convert, uses
from vgpuctl.model.reading import Missing, Reading
from vgpuctl.model.resource import ResourceNames

Object = dict[str, Any]


class Whole(Protocol):
    """A cluster whose objects can be read as they are."""

    def whole(self, resource: Resource) -> Reading[tuple[Object, ...]]: ...


def caps(cluster: Whole) -> list[Object]:
    """Quotas, limit ranges and queues. Raises Missing when some cannot be read."""
    return _all(cluster, CAPS)


def changed_uses(
    cluster: Whole, limits: Sequence[Object], pods: Sequence[kube.Pod], names: ResourceNames, old: int, new: int
) -> list[Use]:
    """Everything whose meaning a new factor changes. limits: see `caps`. Raises Missing when it cannot be told."""
    return uses([*limits, *_all(cluster, TEMPLATES)], pods, names, old, new)


def converted(limits: Sequence[Object], names: ResourceNames, old: int, new: int) -> list[Change]:
    """The Changes that keep the MiB of caps."""
    found = (convert(item, str(item["apiVersion"]), names, old, new) for item in limits)
    return [change for change in found if change]


def _all(cluster: Whole, resources: Sequence[Resource]) -> list[Object]:
    found: dict[str, Object] = {}
    for resource in resources:
        reading = cluster.whole(resource)
        if reading.absent:
            continue
        if reading.value is None:
            raise Missing(f"what a new factor would change is not known: {reading.reason}", reading.source)
        for item in reading.value:
            found.setdefault(str(item["metadata"].get("uid")) or f"{resource.path()}{len(found)}", item)
    return list(found.values())
