"""A configuration of a file and the one in the cluster: where it belongs, what it changes, the Change that writes it.

The old text stays in an annotation of the ConfigMap (`BEFORE`): it is the way back, and a run that was broken off finds
by it what was not restarted yet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from vgpuctl.model import configmaps, pool
from vgpuctl.model.change import Change, How, Line, Target
from vgpuctl.model.config.diff import GEOMETRIES, Difference, differences
from vgpuctl.model.config.keys import KEYS, PLUGIN, SCHEDULER
from vgpuctl.model.config.kind import DEVICE, NODE, Kind
from vgpuctl.model.config.kind import SCHEDULER as SCHEDULER_KIND
from vgpuctl.model.config.values import device_values
from vgpuctl.model.facts import Facts
from vgpuctl.model.install.owner import owner
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.model.quota.team import MANAGED_BY, MANAGER
from vgpuctl.sources.source import Writer
from vgpuctl.tasks.config import restart
from vgpuctl.tasks.config.diff import live
from vgpuctl.tasks.config.texts import Found

BEFORE: Final = "vgpuctl.dev/before."
"""Annotation, with the data key behind it: the text that was there before the last change."""


@dataclass(frozen=True)
class File:
    """A configuration of a file, and the one in the cluster. there: what the pool reads now. target, key: where it
    belongs. raw: the ConfigMap there as the API gives it. changes: from what is there to the file."""

    found: Found
    there: pool.Text | None
    target: Target
    key: str
    raw: Mapping[str, Any] | None
    changes: Sequence[Difference]

    @property
    def before(self) -> str | None:
        """The text before the last change that vgpuctl made."""
        text = (((self.raw or {}).get("metadata") or {}).get("annotations") or {}).get(BEFORE + self.key)
        return None if text is None else str(text)

    @property
    def same_text(self) -> bool:
        """The file is in the cluster already."""
        return self.there is not None and self.there.text == self.found.text


def read(cluster: Writer, facts: Facts, found: Found) -> File:
    """A configuration beside the one in the cluster. Raises Problem for a place that is not read, Missing."""
    there = live(facts, found.kind)
    target, key = _place(facts, found, there)
    changes = differences(found.kind, there.text if there else None, found.text)
    return File(found, there, target, key, cluster.get(target), changes)


def due(facts: Facts, file: File) -> Iterator[Difference]:
    """All that somebody must be restarted for: what changes now, and what a reader has not read since it changed; of
    the plugin that is the one on the node that the value is for."""
    yield from file.changes
    behind = _behind(facts, file.there) if file.there else {}
    for one in differences(file.found.kind, file.before, file.found.text) if any(behind.values()) else ():
        late = [name for name in one.restart if (nodes := behind.get(name)) and (not one.node or one.node in nodes)]
        yield msgspec.structs.replace(one, restart=late)


_READERS = {PLUGIN: pool.is_plugin, SCHEDULER: pool.is_scheduler}


def _behind(facts: Facts, there: pool.Text) -> dict[str, set[str]]:
    """By reader the nodes whose pod of it began before the text was last changed."""
    pods = [pod for pod in facts.pods.value or () if pool.alive(pod)]
    workloads = (*(facts.daemonsets.value or ()), *(facts.deployments.value or ()))
    templates = [one.spec.template for one in workloads]
    return {
        name: {
            pod.spec.node_name
            for pod in restart.older(
                [pod for pod in pods if is_one(pod.spec, pod.metadata)],
                [one for one in templates if is_one(one.spec, one.metadata)],
                there,
            )
        }
        for name, is_one in _READERS.items()
    }


def _place(facts: Facts, found: Found, there: pool.Text | None) -> tuple[Target, str]:
    """Where the text belongs. Raises Problem when the file names a place that is not read."""
    if there is not None:
        metadata = there.map.metadata
        named = (found.namespace or metadata.namespace, found.name or metadata.name)
        if named != (metadata.namespace, metadata.name):
            raise Problem(
                f"{found.file} is for ConfigMap {'/'.join(named)}, which is not read",
                f"the pool reads its {found.kind.title} in {there.place}",
                f"write namespace: {metadata.namespace} and name: {metadata.name}",
                Exit.FINDINGS,
            )
        return Target("ConfigMap", metadata.name, metadata.namespace), there.key
    mounted = _mounted(facts, found.kind)
    if mounted and mounted.key:
        return Target("ConfigMap", mounted.name, mounted.namespace), mounted.key
    name = found.name or found.kind.configmap(pool.context(facts)) or configmaps.SCHEDULER
    usual = found.kind.namespaces(pool.context(facts)) or (configmaps.SCHEDULER_NAMESPACE,)
    return Target("ConfigMap", name, found.namespace or usual[0]), found.kind.data_key


def _mounted(facts: Facts, kind: Kind) -> pool.Mounted | None:
    """Where a text of this kind is read, as the Deployment or DaemonSet that reads it says."""
    if kind is SCHEDULER_KIND:
        return pool.mounted_config(facts)
    return pool.mounted_node_config(facts) if kind is NODE and facts.daemonsets.known else None


_VALUES = {
    DEVICE.name: "deviceConfig.nvidia",
    NODE.name: "nodeConfig.configs",
    SCHEDULER_KIND.name: "custom.scheduler_config_override",
}
"""Where the charts of the plugin and of Volcano take these texts from."""


def not_here(file: File) -> Problem | None:
    """A tool keeps the ConfigMap, and would undo a change of it."""
    whose = owner(file.raw) if file.raw else None
    if whose is None or not whose.elsewhere:
        return None
    values = ", ".join(
        f"{one.node} {one.key}: {one.after}".strip() for one in file.changes[:5] if one.after is not None
    )
    remedy = f"change it in {whose.elsewhere}"
    if "Helm" in whose.name:
        remedy = f"set {_VALUES[file.found.kind.name]} in {whose.elsewhere}" + (f": {values}" if values else "")
    why = "a change here would be undone by its next upgrade or sync"
    return Problem(f"{file.target} belongs to {whose.name}", why, remedy, Exit.FINDINGS)


def change(file: File) -> Change:
    lines = tuple(_lines(file))
    text, raw = file.found.text, file.raw
    if raw is None:
        body = {
            "metadata": {
                "name": file.target.name,
                "namespace": file.target.namespace,
                "labels": {MANAGED_BY: MANAGER},
            },
            "data": {file.key: text},
        }
        undo = f"kubectl -n {file.target.namespace} delete configmap {file.target.name}"
        return Change(file.target, How.APPLY, body, None, lines, undo=undo)
    metadata, data = raw["metadata"], raw.get("data") or {}
    annotations = metadata.get("annotations") or {}
    if owner(raw) is None:
        kept = {key: value for key, value in annotations.items() if not key.startswith("kubectl.kubernetes.io/")}
        if file.key in data:
            kept[BEFORE + file.key] = data[file.key]
        body = {
            "metadata": {
                "name": file.target.name,
                "namespace": file.target.namespace,
                "labels": metadata.get("labels") or {},
                "annotations": kept,
            },
            "data": {**data, file.key: text},
        }
        version = str(metadata.get("resourceVersion", ""))
        return Change(file.target, How.APPLY, body, dict(raw), lines, version, undo=_undo(file))
    return Change(file.target, How.PATCH, list(_patch(file, data, annotations)), dict(raw), lines, undo=_undo(file))


_MANY = 3
"""Layouts that a preview shows one by one; of more it would be a page."""


def _lines(file: File) -> Iterator[Line]:
    """The values that change, in words."""
    layouts = [one for one in file.changes if one.key.startswith(GEOMETRIES)]
    many = len(layouts) > _MANY
    for one in file.changes:
        if not (many and one in layouts):
            means = one.means if one.readers else "nobody reads it"
            yield Line(f"{one.node} {one.key}".strip(), one.before, one.after, means)
    if many:
        texts = (file.there.text if file.there else "", file.found.text)
        before, after = (KEYS[GEOMETRIES].means(device_values(text).values.get(GEOMETRIES)) for text in texts)
        yield Line(GEOMETRIES, before, after, f"{len(layouts)} layouts differ: vgpuctl config diff shows each")


def _patch(file: File, data: Mapping[str, str], annotations: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """The new text in place of the one that was read, which is kept beside it."""
    path = f"/data/{_pointer(file.key)}"
    if "data" not in (file.raw or {}):
        yield {"op": "add", "path": "/data", "value": {}}
    yield {"op": "test", "path": path, "value": data.get(file.key)}
    yield {"op": "add", "path": path, "value": file.found.text}
    if file.key not in data:
        return
    if not annotations:
        yield {"op": "test", "path": "/metadata/annotations", "value": None}
        yield {"op": "add", "path": "/metadata/annotations", "value": {}}
    yield {"op": "add", "path": f"/metadata/annotations/{_pointer(BEFORE + file.key)}", "value": data[file.key]}


def _pointer(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _undo(file: File) -> str:
    """Brings the text back that was there before."""
    escaped = (BEFORE + file.key).replace(".", "\\.")
    where = f"-n {file.target.namespace} get configmap {file.target.name}"
    return f"kubectl {where} -o jsonpath='{{.metadata.annotations.{escaped}}}' | vgpuctl config apply -"
