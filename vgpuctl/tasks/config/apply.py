"""Brings the configurations of files into a cluster: what must be agreed to, the steps, and what must be true then."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

import msgspec

from vgpuctl.model import kube, pool
from vgpuctl.model.api import Resource
from vgpuctl.model.change import Change
from vgpuctl.model.config.explain import ConfigExplanation
from vgpuctl.model.config.keys import PLUGIN, SCHEDULER, named
from vgpuctl.model.config.kind import DEVICE, NODE
from vgpuctl.model.config.kind import SCHEDULER as SCHEDULER_KIND
from vgpuctl.model.config.values import device_values
from vgpuctl.model.facts import Facts, Part
from vgpuctl.model.migrate.accept import Accepted, with_accepted
from vgpuctl.model.migrate.outputs import FactorChange
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.model.reading import Reading
from vgpuctl.tasks.apply import Conduct, Group, Outcome, Wait, apply
from vgpuctl.tasks.config import restart, write
from vgpuctl.tasks.config.explain import explain_live
from vgpuctl.tasks.config.factor import caps, changed_uses, converted
from vgpuctl.tasks.config.texts import Found
from vgpuctl.tasks.config.write import File
from vgpuctl.tasks.context import PARTS as CONTEXT
from vgpuctl.tasks.install import record
from vgpuctl.tasks.install.live import Live

PARTS: Final = (*CONTEXT, Part.DAEMONSETS)


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
    files = [write.read(cluster, facts, one) for one in found]
    refused = [problem for one in files if not one.same_text and (problem := write.not_here(one))]
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
    steps += [write.change(one) for one in files if not one.same_text]
    done.notes += [f"{one.target}: comments and layout only" for one in files if not one.same_text and not one.changes]
    steps += _restarts(cluster, facts, files, conduct, done.notes)
    steps += _verified(cluster, facts, files, conduct)
    if facts.nodes.known and facts.daemonsets.known:
        done.notes += explain_live(_with_texts(facts, files)).problems
    unchanged = [write.change(one) for one in files if one.same_text]
    alone = [step.lines[0].path for step in steps if isinstance(step, Change) and step.routine]
    about = f"restarts the {named(alone)}, which reads its configuration once" if alone else ""
    done.groups = [Group(steps, unchanged, about)]
    return done


def carry_out(cluster: Cluster, plan: Plan, conduct: Conduct) -> Outcome:
    """Carries a plan out whose factor was agreed to."""
    outcome = apply(cluster, plan.groups, conduct, cluster.name)
    outcome.changes.notes.extend(plan.notes)
    return outcome


def _factors(device: File) -> tuple[int, int] | None:
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
    cluster: Cluster, facts: Facts, files: Sequence[File], conduct: Conduct, notes: list[str]
) -> Iterator[Change | Wait]:
    """Those who read once what changed; of the plugin only the pods on the nodes that it concerns, if it is so."""
    due = [one for file in files for one in write.due(facts, file)]
    if any(PLUGIN in one.restart and not one.node for one in due):
        _no_canary(cluster)
        steps = restart.plugin(cluster, facts, conduct)
        yield from steps
        if not steps:
            notes.append("no DaemonSet of the plugin was found: restart its pods yourself, they read this once")
    elif nodes := {one.node for one in due if PLUGIN in one.restart}:
        if _is_upgrading(cluster):
            conduct.say(f"an upgrade is half done: the plugin on {named(sorted(nodes))} may come up as the new release")
        yield from restart.plugin_on(cluster, facts, nodes)
    if any(SCHEDULER in one.restart for one in due):
        steps = restart.scheduler(cluster, facts, conduct)
        yield from steps
        if not steps:
            notes.append("no Deployment of the scheduler was found: restart it yourself, it reads this once")


def _no_canary(cluster: Cluster) -> None:
    """Raises Problem while an upgrade is half done, since a restart makes all pods anew, of the new release."""
    if _is_upgrading(cluster):
        raise Problem(
            "an upgrade is half done",
            "the plugin's restart would bring the new release to all nodes at once",
            "finish it with vgpuctl upgrade, or go back with vgpuctl upgrade --rollback",
            Exit.FINDINGS,
        )


def _is_upgrading(cluster: Cluster) -> bool:
    kept = record.read(cluster)
    return kept is not None and kept.release.phase == "upgrading"


def _verified(cluster: Cluster, facts: Facts, files: Sequence[File], conduct: Conduct) -> Iterator[Change | Wait]:
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


def _other_factor(device: File) -> bool:
    """The last change of the text was one of the factor."""
    texts = (device.before, device.found.text)
    factors = [device_values(text).values.get("gpuMemoryFactor") for text in texts if text is not None]
    return len(set(factors)) > 1


def _wanted(explained: ConfigExplanation) -> Iterator[tuple[str, tuple[int, int]]]:
    for group in explained.groups:
        values = {one.key: one.value for one in group.keys}
        split, factor = values.get("deviceSplitCount"), values.get("gpuMemoryFactor")
        if isinstance(split, int) and isinstance(factor, int) and factor:
            yield from ((name, (split, factor)) for name in group.nodes)


def _with_texts(facts: Facts, files: Iterable[File]) -> Facts:
    """The facts as they will be."""
    maps = {(item.metadata.namespace, item.metadata.name): item for item in facts.configmaps.need()}
    for file in files:
        place = (file.target.namespace, file.target.name)
        empty = kube.ConfigMap(metadata=kube.ManagedMetadata(name=place[1], namespace=place[0]))
        item = maps.get(place, empty)
        maps[place] = msgspec.structs.replace(item, data={**(item.data or {}), file.key: file.found.text})
    return facts.with_part(Part.CONFIGMAPS, replace(facts.configmaps, value=tuple(maps.values())))
