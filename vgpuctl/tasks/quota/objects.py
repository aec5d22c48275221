"""The objects that make a team's share, and the Changes that bring them about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vgpuctl.model import kube
from vgpuctl.model.change import Change, How, Line, Target
from vgpuctl.model.pod.names import QUEUE
from vgpuctl.model.quantity import integer
from vgpuctl.model.quota.cap import COUNTED
from vgpuctl.model.quota.team import MANAGED_BY, MANAGER, TEAM, labels
from vgpuctl.model.resource import ResourceNames, What

QUEUES = "scheduling.volcano.sh/v1beta1"
PRIORITY_CLASSES = "scheduling.k8s.io/v1"


@dataclass(frozen=True)
class Wanted:
    """An object as it should be, and whether the present one is so already."""

    change: Change
    done: bool


def wanted(
    target: Target, body: dict[str, Any], before: kube.Metadata | None, lines: tuple[Line, ...], undo: str
) -> Wanted:
    """The server-side apply of an object. before: the present one's metadata, None when there is none."""
    stated: Mapping[str, str] = body["metadata"].get("labels") or {}
    have = (before.labels if before else None) or {}
    missing = {key: value for key, value in stated.items() if have.get(key) != value}
    told = (
        *lines,
        *(Line(f"label {key}", have.get(key), value) for key, value in missing.items() if before is not None),
    )
    present = None if before is None else {"metadata": {"uid": before.uid}}
    change = Change(target, How.APPLY, body, present, tuple(told), undo=undo)
    return Wanted(change, before is not None and not told)


def namespace(name: str, team: str, queue: str | None, before: kube.Metadata | None) -> Wanted:
    """A team's namespace; with a queue, the annotation by which its pods come into it."""
    metadata: dict[str, Any] = {"name": name, "labels": {TEAM: team}}
    lines: tuple[Line, ...] = ()
    if before is None or before.label(MANAGED_BY) == MANAGER:
        metadata["labels"] = labels(team)
    have = before.annotation(QUEUE) if before else None
    if queue is None and before is not None and before.label(MANAGED_BY) == MANAGER and have:
        queue = have
    if queue:
        metadata["annotations"] = {QUEUE: queue}
        if have != queue:
            lines = (Line(QUEUE, have, queue),)
    undo = f"kubectl delete namespace {name}" if before is None else ""
    return wanted(Target("Namespace", name), {"metadata": metadata}, before, lines, undo)


def quota(
    place: tuple[str, str],
    team: str,
    hard: Mapping[What, int],
    names: ResourceNames,
    before: kube.ResourceQuota | None,
    priority_class: str = "",
    undo: str = "",
) -> Wanted:
    """A ResourceQuota under the counted names. place: namespace and name."""
    space, name = place
    stated = {f"{COUNTED}{names.name(what)}": number for what, number in hard.items()}
    have = dict((before.spec.hard if before else None) or {})
    ours = {f"{COUNTED}{resource}" for resource in names.all}
    lines = tuple(
        Line(key, have.get(key), None if key not in stated else str(stated[key]))
        for key in sorted({*stated, *(key for key in have if key in ours)})
        if integer(have.get(key)) != stated.get(key)
    )
    spec: dict[str, Any] = {"hard": {key: str(number) for key, number in stated.items()}}
    if priority_class:
        expression = {"scopeName": "PriorityClass", "operator": "In", "values": [priority_class]}
        spec["scopeSelector"] = {"matchExpressions": [expression]}
    body = {"metadata": {"name": name, "namespace": space, "labels": labels(team)}, "spec": spec}
    return wanted(Target("ResourceQuota", name, space), body, before.metadata if before else None, lines, undo)


def priority(name: str, value: int, team_word: str) -> Change:
    """A PriorityClass that does not exist yet."""
    body = {
        "metadata": {"name": name, "labels": {MANAGED_BY: MANAGER}},
        "value": value,
        "description": f"vGPU pods of {team_word} priority",
    }
    target = Target("PriorityClass", name, "", PRIORITY_CLASSES)
    return Change(target, How.APPLY, body, None, (Line("value", None, str(value)),))


def queue(
    name: str,
    team: str,
    capability: Mapping[What, int],
    guarantee: Mapping[What, int],
    names: ResourceNames,
    before: kube.Queue | None,
    undo: str = "",
) -> Wanted:
    """A Volcano Queue; amounts of other resources, weight and the rest stay as they are."""
    spec: dict[str, Any] = {"weight": (before.spec.weight if before else None) or 1}
    if before is None:
        spec["reclaimable"] = True
    elif before.metadata.label(MANAGED_BY) == MANAGER and before.spec.reclaimable is not None:
        spec["reclaimable"] = before.spec.reclaimable
    lines: list[Line] = []
    parts: tuple[tuple[str, Mapping[What, int], Mapping[str, Any]], ...] = (
        ("capability", capability, (before.spec.capability if before else None) or {}),
        ("guarantee", guarantee, ((before.spec.guarantee if before else None) or {}).get("resource") or {}),
    )
    for section, amounts, have in parts:
        stated = {names.name(what): number for what, number in amounts.items()}
        keys = sorted({*stated, *(key for key in have if key in names.all)})
        lines += (
            Line(f"{section} {key}", _said(have.get(key)), _said(stated.get(key)))
            for key in keys
            if integer(have.get(key)) != stated.get(key)
        )
        values = {key: str(number) for key, number in stated.items()}
        if values:
            spec[section] = {"resource": values} if section == "guarantee" else values
    keep = (before.metadata.label(TEAM) if before else None) or team
    body = {"metadata": {"name": name, "labels": labels(keep)}, "spec": spec}
    target = Target("Queue", name, "", QUEUES)
    return wanted(target, body, before.metadata if before else None, tuple(lines), undo)


def _said(value: object) -> str | None:
    return None if value is None else str(value)


def without_keys(found: kube.ResourceQuota, keys: list[str], why: str) -> Change:
    """Takes keys out of a quota that others may own; each only if it still has the value that was read."""
    hard = found.spec.hard or {}
    operations = [
        operation
        for key in keys
        for path in (f"/spec/hard/{key.replace('~', '~0').replace('/', '~1')}",)
        for operation in ({"op": "test", "path": path, "value": hard[key]}, {"op": "remove", "path": path})
    ]
    metadata = found.metadata
    return Change(
        Target("ResourceQuota", metadata.name, metadata.namespace),
        How.PATCH,
        operations,
        {"metadata": {"uid": metadata.uid}},
        tuple(Line(key, hard[key], None) for key in keys),
        undo=f"kubectl -n {metadata.namespace} edit quota {metadata.name}",
        why=why,
    )


def delete(
    target: Target, metadata: kube.Metadata, lines: tuple[Line, ...] = (), why: str = "", undo: str = ""
) -> Change:
    """Deletes an object, if it is still the one that was read."""
    return Change(target, How.DELETE, None, {"metadata": {"uid": metadata.uid}}, lines, undo=undo, why=why)
