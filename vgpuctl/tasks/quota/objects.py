"""The objects that make a team's share, and the Changes that bring them about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vgpuctl.model import kube
from vgpuctl.model.change import Change, How, Line, Target
from vgpuctl.model.pod.names import QUEUE as QUEUE_ANNOTATION
from vgpuctl.model.quantity import integer, show_mib
from vgpuctl.model.quota.cap import COUNTED
from vgpuctl.model.quota.team import MANAGED_BY, MANAGER, QUOTA, TEAM, labels
from vgpuctl.model.quota.units import Pool, size_text
from vgpuctl.model.resource import What

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
    have = before.annotation(QUEUE_ANNOTATION) if before else None
    if queue is None and before is not None and before.label(MANAGED_BY) == MANAGER and have:
        queue = have
    if queue:
        metadata["annotations"] = {QUEUE_ANNOTATION: queue}
        if have != queue:
            lines = (Line(QUEUE_ANNOTATION, have, queue),)
    undo = f"kubectl delete namespace {name}" if before is None else ""
    return wanted(Target("Namespace", name), {"metadata": metadata}, before, lines, undo)


def quota(
    place: tuple[str, str],
    team: str,
    hard: Mapping[What, int],
    pool: Pool,
    before: kube.ResourceQuota | None,
    priority_class: str = "",
    undo: str = "",
) -> Wanted:
    """A ResourceQuota under the counted names. place: namespace and name."""
    space, name = place
    names = pool.names
    stated = {f"{COUNTED}{names.name(what)}": number for what, number in hard.items()}
    have = dict((before.spec.hard if before else None) or {})
    ours = {f"{COUNTED}{resource}" for resource in names.all}
    lines = tuple(
        _line(key, have.get(key), stated.get(key), pool)
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
    pool: Pool,
    before: kube.Queue | None,
    undo: str = "",
) -> Wanted:
    """A Volcano Queue; amounts of other resources, weight and the rest stay as they are."""
    names = pool.names
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
            _line(f"{section} {key}", have.get(key), stated.get(key), pool)
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


def _line(path: str, before: object, after: int | None, pool: Pool) -> Line:
    """One amount; memory is told in GiB too."""
    in_memory = path.endswith(pool.names.memory) and after and pool.factor
    note = show_mib(after * pool.factor) if in_memory and after and pool.factor else ""
    return Line(path, None if before is None else str(before), None if after is None else str(after), note)


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


def amounts(values: Mapping[str, object] | None, pool: Pool, prefix: str = COUNTED) -> dict[What, int]:
    """The vGPU amounts among quantities."""
    found = {what: integer((values or {}).get(f"{prefix}{pool.names.name(what)}")) for what in What}
    return {what: number for what, number in found.items() if number is not None}


def set_command(team: str, place: str, name: str, hard: Mapping[What, int], pool: Pool) -> str:
    """The command that gives a quota these amounts."""
    words = ["vgpuctl quota set", team]
    if name != QUOTA:
        words.append(f"--priority {name[len(QUOTA) + 1 :]}={hard.get(What.NUMBER, 0)}")
    else:
        words += [str(hard[What.NUMBER])] if What.NUMBER in hard else []
        words += [f"--memory {size_text(hard[What.MEMORY], pool)}"] if What.MEMORY in hard else []
        words += [f"--cores {hard[What.CORES]}"] if What.CORES in hard else []
    return " ".join([*words, *([] if place == team else [f"-n {place}"])])
