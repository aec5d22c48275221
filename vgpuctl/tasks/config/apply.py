"""Brings the configurations of files into a cluster: what they change, what must be agreed to, and the steps.

The old text stays in an annotation of the ConfigMap (`BEFORE`): it is the way back, and a run that was broken off finds
by it what was not restarted yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

import msgspec

from vgpuctl.model import configmaps, kube, pool
from vgpuctl.model.api import Resource
from vgpuctl.model.change import Change, How, Line, Target
from vgpuctl.model.config.diff import Difference, differences
from vgpuctl.model.config.explain import ConfigExplanation
from vgpuctl.model.config.keys import PLUGIN, SCHEDULER, named
from vgpuctl.model.config.kind import DEVICE, NODE, Kind
from vgpuctl.model.config.kind import SCHEDULER as SCHEDULER_KIND
from vgpuctl.model.config.values import device_values
from vgpuctl.model.facts import Facts, Part
from vgpuctl.model.install.owner import owner
from vgpuctl.model.migrate.accept import Accepted, with_accepted
from vgpuctl.model.migrate.outputs import FactorChange
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.model.quota.team import MANAGED_BY, MANAGER
from vgpuctl.model.reading import Reading
from vgpuctl.tasks.apply import Conduct, Group, Outcome, Wait, apply
from vgpuctl.tasks.config import restart
from vgpuctl.tasks.config.diff import live
from vgpuctl.tasks.config.explain import explain_live
from vgpuctl.tasks.config.factor import caps, changed_uses, converted
from vgpuctl.tasks.config.texts import Found
from vgpuctl.tasks.context import PARTS as CONTEXT
from vgpuctl.tasks.install.live import Live

PARTS: Final = (*CONTEXT, Part.DAEMONSETS)
BEFORE: Final = "vgpuctl.dev/before."
"""Annotation, with the data key behind it: the text that was there before the last change."""


class Cluster(Live, Protocol):
    """A live cluster whose objects can be read as they are."""

    def whole(self, resource: Resource) -> Reading[tuple[dict[str, Any], ...]]: ...


@dataclass
class Plan:
    """What is to be done. factor: what a new factor would change, None when it stays. groups: the steps. notes: for the
    user."""

    factor: FactorChange | None = None
    groups: list[Group] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _File:
    """A configuration of a file, and the one in the cluster. due: all that its readers have not read yet."""

    found: Found
    there: pool.Text | None
    target: Target
    key: str
    raw: Mapping[str, Any] | None
    changes: Sequence[Difference]
    due: Sequence[Difference]

    @property
    def same_text(self) -> bool:
        return self.there is not None and self.there.text == self.found.text


def plan(
    cluster: Cluster,
    facts: Facts,
    found: Sequence[Found],
    conduct: Conduct,
    accept: Sequence[Accepted],
    *,
    migrate: bool,
) -> Plan:
    """The plan for files that were validated. accept: what the user named. migrate: caps keep their MiB.

    Raises Problem for what cannot be written here (Helm, another place), Missing when a needed part is not known.
    """
    files = [_file(cluster, facts, one) for one in found]
    refused = [problem for one in files if not one.same_text and (problem := _not_here(one))]
    if refused:
        raise refused[0]
    done = Plan()
    device = next((one for one in files if one.found.kind is DEVICE), None)
    steps: list[Change | Wait] = []
    if device and (factors := _factors(device)):
        done.factor, changes = _factor_change(cluster, facts, factors, accept, migrate=migrate)
        steps += changes
        running = sum(1 for _ in pool.vgpu_pods(facts))
        if running:
            who = "1 vGPU pod runs" if running == 1 else f"{running} vGPU pods run"
            done.notes.append(f"{who} on as before, counted in the new units: make them anew from rewritten manifests")
    steps += [_write(one) for one in files if not one.same_text]
    done.notes += [f"{one.target}: comments and layout only" for one in files if not one.same_text and not one.changes]
    steps += _restarts(cluster, facts, files, conduct, done.notes)
    steps += _verified(cluster, facts, files, conduct)
    if facts.nodes.known and facts.daemonsets.known:
        done.notes += explain_live(_with_texts(facts, files)).problems
    unchanged = [_write(one) for one in files if one.same_text]
    alone = [step.lines[0].path for step in steps if isinstance(step, Change) and step.routine]
    about = f"restarts the {named(alone)}, which reads its configuration once" if alone else ""
    done.groups = [Group(steps, unchanged, about)]
    return done


def carry_out(cluster: Cluster, plan: Plan, conduct: Conduct) -> Outcome:
    """Carries a plan out whose factor was agreed to."""
    outcome = apply(cluster, plan.groups, conduct, cluster.name)
    outcome.changes.notes.extend(plan.notes)
    return outcome


def _file(cluster: Cluster, facts: Facts, found: Found) -> _File:
    there = live(facts, found.kind)
    target, key = _place(facts, found, there)
    raw = cluster.get(target)
    annotations = ((raw or {}).get("metadata") or {}).get("annotations") or {}
    before = annotations.get(BEFORE + key)
    changes = differences(found.kind, there.text if there else None, found.text)
    behind = _behind(facts, there) if there else frozenset()
    unread = differences(found.kind, before, found.text) if behind else []
    late = [msgspec.structs.replace(one, restart=[name for name in one.restart if name in behind]) for one in unread]
    return _File(found, there, target, key, raw, changes, [*changes, *late])


_READERS = {PLUGIN: pool.is_plugin, SCHEDULER: pool.is_scheduler}


def _behind(facts: Facts, there: pool.Text) -> frozenset[str]:
    """Those of whom some pod began before the text was last changed."""
    pods = [pod for pod in facts.pods.value or () if pool.alive(pod)]
    workloads = (*(facts.daemonsets.value or ()), *(facts.deployments.value or ()))
    templates = [one.spec.template for one in workloads]
    return frozenset(
        name
        for name, is_one in _READERS.items()
        if restart.older(
            [pod for pod in pods if is_one(pod.spec, pod.metadata)],
            [one for one in templates if is_one(one.spec, one.metadata)],
            there,
        )
    )


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


def _not_here(file: _File) -> Problem | None:
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


def _write(file: _File) -> Change:
    lines = tuple(
        Line(f"{one.node} {one.key}".strip(), one.before, one.after, one.means if one.readers else "nobody reads it")
        for one in file.changes
    )
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


def _patch(file: _File, data: Mapping[str, str], annotations: Mapping[str, str]) -> Iterator[dict[str, Any]]:
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


def _undo(file: _File) -> str:
    """Brings the text back that was there before."""
    escaped = (BEFORE + file.key).replace(".", "\\.")
    where = f"-n {file.target.namespace} get configmap {file.target.name}"
    return f"kubectl {where} -o jsonpath='{{.metadata.annotations.{escaped}}}' | vgpuctl config apply -"


def _factors(device: _File) -> tuple[int, int] | None:
    """The old and the new factor, where both are one and they differ."""
    old = device_values(device.there.text).values.get("gpuMemoryFactor") if device.there else None
    new = device_values(device.found.text).values.get("gpuMemoryFactor")
    return (old, new) if old and new and old != new else None


def _factor_change(
    cluster: Cluster, facts: Facts, factors: tuple[int, int], accept: Sequence[Accepted], *, migrate: bool
) -> tuple[FactorChange, list[Change]]:
    old, new = factors
    names = pool.resource_names(facts)
    limits = caps(cluster)
    changes = converted(limits, names, old, new) if migrate else []
    brought_over = {(change.target.kind, change.target.namespace, change.target.name) for change in changes}
    found = [
        use
        for use in changed_uses(cluster, limits, facts.pods.need(), names, old, new)
        if (use.object_kind, use.namespace, use.name) not in brought_over
    ]
    return FactorChange(source=cluster.name, before=old, after=new, uses=with_accepted(found, accept)), changes


def _restarts(
    cluster: Cluster, facts: Facts, files: Sequence[_File], conduct: Conduct, notes: list[str]
) -> Iterator[Change | Wait]:
    """Those who read once what changed; of the plugin only the pods on the nodes that it concerns, if it is so."""
    due = [one for file in files for one in file.due]
    if any(PLUGIN in one.restart and not one.node for one in due):
        steps = restart.plugin(cluster, facts, conduct)
        yield from steps
        if not steps:
            notes.append("no DaemonSet of the plugin was found: restart its pods yourself, they read this once")
    elif nodes := {one.node for one in due if PLUGIN in one.restart}:
        yield from restart.plugin_on(cluster, facts, nodes)
    if any(SCHEDULER in one.restart for one in due):
        steps = restart.scheduler(cluster, facts, conduct)
        yield from steps
        if not steps:
            notes.append("no Deployment of the scheduler was found: restart it yourself, it reads this once")


def _verified(cluster: Cluster, facts: Facts, files: Sequence[_File], conduct: Conduct) -> Iterator[Change | Wait]:
    """Who reads these texts runs with them, also when an earlier run was broken off; and the nodes register what the
    new texts make of the cards that they registered before."""
    kinds = {file.found.kind.name for file in files}
    if kinds & {DEVICE.name, SCHEDULER_KIND.name}:
        yield from restart.scheduler_runs(cluster, facts)
    if not kinds & {DEVICE.name, NODE.name} or not facts.daemonsets.known:
        return
    yield from restart.plugin_runs(cluster, facts, conduct)
    if facts.nodes.value is None:
        return
    device = next((file for file in files if file.found.kind is DEVICE), None)
    old, since = pool.memory_factor(facts), None
    if device and device.there and device.same_text:  # it came in earlier: the nodes need not register by it yet
        old = None
        since = pool.data_changed(device.there.map, [device.key]) if _other_factor(device) else None
    before = {gpu.name: gpu.register for gpu in pool.gpu_nodes(facts) if gpu.register and gpu.register.cards}
    wanted = dict(_wanted(explain_live(_with_texts(facts, files))))
    if before and wanted:
        yield restart.registered(cluster, before, wanted, old, since)


def _other_factor(device: _File) -> bool:
    """The last change of the text was one of the factor."""
    annotations = ((device.raw or {}).get("metadata") or {}).get("annotations") or {}
    texts = (annotations.get(BEFORE + device.key), device.found.text)
    factors = [device_values(text).values.get("gpuMemoryFactor") for text in texts if text is not None]
    return len(set(factors)) > 1


def _wanted(explained: ConfigExplanation) -> Iterator[tuple[str, tuple[int, int]]]:
    for group in explained.groups:
        values = {one.key: one.value for one in group.keys}
        split, factor = values.get("deviceSplitCount"), values.get("gpuMemoryFactor")
        if isinstance(split, int) and isinstance(factor, int) and factor:
            yield from ((name, (split, factor)) for name in group.nodes)


def _with_texts(facts: Facts, files: Iterable[_File]) -> Facts:
    """The facts as they will be."""
    maps = {(item.metadata.namespace, item.metadata.name): item for item in facts.configmaps.need()}
    for file in files:
        place = (file.target.namespace, file.target.name)
        empty = kube.ConfigMap(metadata=kube.ManagedMetadata(name=place[1], namespace=place[0]))
        item = maps.get(place, empty)
        maps[place] = msgspec.structs.replace(item, data={**(item.data or {}), file.key: file.found.text})
    return facts.with_part(Part.CONFIGMAPS, replace(facts.configmaps, value=tuple(maps.values())))
