"""What in a cluster is written in memory units: pods, templates, quotas, queues; and what a new factor makes of it.

An object that vgpuctl wrote for a factor carries a mark, which counts as long as its amounts are those of the mark.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from vgpuctl.model import kube, pool
from vgpuctl.model.change import Change, How, Line, Target
from vgpuctl.model.migrate.place import What, places, units
from vgpuctl.model.output import Item
from vgpuctl.model.quantity import show_mib, units_for
from vgpuctl.model.quota.cap import COUNTED
from vgpuctl.model.resource import ResourceNames
from vgpuctl.model.resource import What as Counts

MARK: Final = "vgpuctl.dev/memory-factor"
"""Annotation: `<factor>: <units>,<units>…`, in order of appearance."""

_DONE = ("Completed", "Failed", "Terminated")
"""Phases of a Volcano Job that starts no pod any more."""
_CONTAINER = re.compile(r"\.?(?:initContainers|containers)\[\d+\].*")


class Use(Item, frozen=True, kw_only=True):
    """One amount whose meaning a new factor changes. place: its path. units: what is written. mib_before, mib_after:
    what it means under the old and the new factor. pods: how many pods run by it. accepted: the user named it."""

    object_kind: str
    namespace: str = ""
    name: str
    place: str
    units: int
    mib_before: int
    mib_after: int
    pods: int = 0
    accepted: bool = False

    @property
    def title(self) -> str:
        """As `--accept` takes it: KIND/NAMESPACE/NAME, without the namespace for what has none."""
        return "/".join(part for part in (self.object_kind, self.namespace, self.name) if part)


def uses(
    objects: Iterable[Mapping[str, Any]], pods: Iterable[kube.Pod], names: ResourceNames, old: int, new: int
) -> list[Use]:
    """Every amount in objects (with `kind`) and pods. A pod counts with the object that it was made from, if that is
    among them; jobs that have ended and amounts of 0 (the whole card) are left out."""
    known = [item for item in objects if not _ended(item)]
    owners = {str(_metadata(item).get("uid")): item for item in known}
    running: dict[str, int] = {}
    alone: list[kube.Pod] = []
    for one in pods:
        if not pool.alive(one) or not pool.is_vgpu_pod(one, names):
            continue
        owner = _origin(one.metadata, owners)
        if owner is None:
            alone.append(one)
        else:
            running[owner] = running.get(owner, 0) + 1
    found = [use for item in known if not _made(item, owners) for use in _in_object(item, names, old, new, running)]
    found += [use for one in alone for use in _in_pod(one, names, old, new)]
    return sorted(found, key=lambda use: (use.namespace, use.object_kind, use.name, use.place))


def _in_object(
    item: Mapping[str, Any], names: ResourceNames, old: int, new: int, running: Mapping[str, int]
) -> Iterator[Use]:
    metadata = _metadata(item)
    amounts = list(_amounts(item, names))
    if marked(metadata.get("annotations"), [number for _, number in amounts]) == new:
        return
    meaning = {path: number for path, number in amounts if number and _counts(path, item, names)}
    for path, number in meaning.items():
        if meaning.get(path.replace(".requests[", ".limits[")) != number or ".requests[" not in path:
            yield Use(
                object_kind=str(item["kind"]),
                namespace=str(metadata.get("namespace", "")),
                name=str(metadata.get("name", "")),
                place=path,
                units=number,
                mib_before=number * old,
                mib_after=number * new,
                pods=running.get(str(metadata.get("uid")), 0),
            )


def _counts(path: str, item: Mapping[str, Any], names: ResourceNames) -> bool:
    """Somebody acts by the amount: a quota counts only what is named with `requests.`."""
    return item.get("kind") != "ResourceQuota" or f"{COUNTED}{names.memory}" in path


def _in_pod(one: kube.Pod, names: ResourceNames, old: int, new: int) -> Iterator[Use]:
    for container in one.spec.containers:
        number = units(pool.limits(container, names).get(Counts.MEMORY, 0))
        if number:
            yield Use(
                object_kind="Pod",
                namespace=one.metadata.namespace,
                name=one.metadata.name,
                place=f"container {container.name}",
                units=number,
                mib_before=number * old,
                mib_after=number * new,
                pods=1,
            )


def _amounts(item: Mapping[str, Any], names: ResourceNames) -> Iterator[tuple[str, int]]:
    for found in places({key: value for key, value in item.items() if key != "status"}, names.memory):
        number = units(found.value) if found.what is What.AMOUNT else None
        if number is not None:
            yield found.path, number


def _metadata(item: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = item.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _origin(metadata: kube.Metadata, owners: Mapping[str, Mapping[str, Any]]) -> str | None:
    """The uid of the object from which something was made at last: a Deployment's for the pod of its ReplicaSet."""
    owner = next((one.uid for one in metadata.owner_references or () if one.uid in owners), None)
    while owner is not None:
        above = _owner(owners[owner], owners)
        if above is None:
            return owner
        owner = above
    return None


def _owner(item: Mapping[str, Any], owners: Mapping[str, Mapping[str, Any]]) -> str | None:
    references = _metadata(item).get("ownerReferences") or ()
    return next((str(one.get("uid")) for one in references if str(one.get("uid")) in owners), None)


def _made(item: Mapping[str, Any], owners: Mapping[str, Mapping[str, Any]]) -> bool:
    """It was made from another object that is known, which is told instead."""
    return _owner(item, owners) is not None


def _ended(item: Mapping[str, Any]) -> bool:
    status = item.get("status")
    if item.get("kind") != "Job" or not isinstance(status, dict):
        return False
    state = status.get("state")
    phase = state.get("phase") if isinstance(state, dict) else ""
    conditions = status.get("conditions") or ()
    return phase in _DONE or any(
        isinstance(one, dict) and one.get("type") in ("Complete", "Failed") and one.get("status") == "True"
        for one in conditions
    )


def marked(annotations: Any, amounts: Sequence[int]) -> int | None:
    """The factor for which these amounts were written, as far as the mark on their object tells."""
    text = str(annotations.get(MARK, "")) if isinstance(annotations, dict) else ""
    factor, _, rest = text.partition(": ")
    return int(factor) if factor.isdigit() and rest == _listed(amounts) else None


def _listed(amounts: Iterable[int]) -> str:
    return ",".join(map(str, amounts))


def convert(item: Mapping[str, Any], api_version: str, names: ResourceNames, old: int, new: int) -> Change | None:
    """The Change of a quota or a queue that keeps its MiB under a new factor; None when there is nothing to do.

    Each amount is changed only while it is what was read. It goes with the mark, so that a run that was broken off can
    be taken up.
    """
    metadata = _metadata(item)
    amounts = list(_amounts(item, names))
    annotations = metadata.get("annotations")
    if not any(number for _, number in amounts) or marked(annotations, [number for _, number in amounts]) == new:
        return None
    after = [units_for(number * old, new) for _, number in amounts]
    forth: list[dict[str, Any]] = []
    back: list[dict[str, Any]] = []
    lines = []
    for (path, number), number_after in zip(amounts, after, strict=True):
        pointer, written = _pointer(path), _value(item, path)
        if number != number_after:
            forth += ({"op": "test", "path": pointer, "value": written},)
            forth += ({"op": "replace", "path": pointer, "value": str(number_after)},)
            back += ({"op": "replace", "path": pointer, "value": written},)
            more = number_after * new - number * old
            note = show_mib(number_after * new) + (f", {more} MiB more than before" if more else "")
            lines.append(Line(path, str(number), str(number_after), note))
    forth += _marking(annotations, f"{new}: {_listed(after)}")
    kind, name, space = str(item["kind"]), str(metadata["name"]), str(metadata.get("namespace", ""))
    return Change(
        Target(kind, name, space, api_version),
        How.PATCH,
        forth,
        item,
        tuple(lines) or (Line(MARK, None, str(new)),),
        undo=_undo(kind, name, space, back),
        why=f"the same MiB in units of {new} instead of {old}",
    )


def _marking(annotations: Any, text: str) -> Iterator[dict[str, Any]]:
    if not annotations:
        yield {"op": "test", "path": "/metadata/annotations", "value": None}
        yield {"op": "add", "path": "/metadata/annotations", "value": {}}
    yield {"op": "add", "path": f"/metadata/annotations/{_escaped(MARK)}", "value": text}


def _undo(kind: str, name: str, space: str, back: list[dict[str, Any]]) -> str:
    if not back:
        return ""
    where = f" -n {space}" if space else ""
    operations = json.dumps(back, separators=(",", ":"))
    return f"kubectl patch {kind.lower()} {name}{where} --type=json -p '{operations}'"


_STEP = re.compile(r'\["([^"]+)"\]|\[(\d+)\]|([^.\[]+)')


def _steps(path: str) -> list[str]:
    return [next(filter(None, found.groups())) for found in _STEP.finditer(path)]


def _pointer(path: str) -> str:
    """A path as a JSON pointer."""
    return "".join(f"/{_escaped(step)}" for step in _steps(path))


def _escaped(step: str) -> str:
    return step.replace("~", "~0").replace("/", "~1")


def _value(item: Any, path: str) -> Any:
    for step in _steps(path):
        item = item[int(step)] if isinstance(item, list) else item[step]
    return item


def short(place: str) -> str:
    """A place for people: the container, or the section of a quota or queue."""
    found = _CONTAINER.search(place)
    return found.group().lstrip(".").partition(".")[0] if found else place
