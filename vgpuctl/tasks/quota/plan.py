"""What must change so that teams have the shares that are wished; from facts alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from vgpuctl.model import configmaps, kube, pool
from vgpuctl.model.change import Change
from vgpuctl.model.facts import Facts
from vgpuctl.model.pod.names import QUEUE
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.model.quantity import integer
from vgpuctl.model.quota.share import total, uncounted
from vgpuctl.model.quota.team import PRIORITIES, QUOTA, Amounts, Team, quota_name
from vgpuctl.model.quota.units import Pool, counts, memory_units
from vgpuctl.model.resource import What
from vgpuctl.tasks.apply import Group, Wait
from vgpuctl.tasks.quota import objects
from vgpuctl.tasks.quota.objects import Wanted

Place = tuple[str, str]
"""Namespace and name of a quota."""

Counted = Callable[[Sequence[Place]], bool]
"""Whether the API server counts these quotas: their status is filled."""

_IGNORED_BEFORE = "1.13.0"


@dataclass
class Plan:
    """groups: what to do, one for each team. counted: the quotas that the API server must count at the end.
    notes: what a person should know."""

    groups: list[Group] = field(default_factory=list)
    counted: list[Place] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def pool_of(facts: Facts) -> Pool:
    """What amounts are measured by, as far as the facts tell."""
    names = pool.resource_names(facts)
    factor = pool.memory_factor(facts)
    why = facts.configmaps.reason or f"no {configmaps.DEVICE} was found"
    nodes = facts.nodes.value
    if nodes is None:
        return Pool(names, factor, why=facts.nodes.reason if factor else why)
    units = sum(pool.amount(node.status.allocatable, names.memory) for node in nodes)
    vgpus = sum(pool.amount(node.status.allocatable, names.number) for node in nodes)
    return Pool(names, factor, units or None, vgpus or None, why)


def make(
    facts: Facts,
    spaces: Mapping[str, kube.Metadata | None],
    teams: Sequence[Team],
    counted: Counted,
    *,
    merge: bool,
) -> Plan:
    """The plan for teams. spaces: their namespaces as they are, None for those that do not exist; a namespace that
    could not be read is not in it. merge: amounts that are not stated stay as they are, else they go.

    Old names that are never counted go last, after the API server counts what replaces them.

    Raises Problem for a wish that cannot be, Missing when quotas (or what a size needs) are not known.
    """
    planner = _Planner(facts, spaces, counted, merge)
    for team in teams:
        planner.team(team)
    planner.check_guarantees(teams)
    return planner.plan


class _Planner:
    def __init__(self, facts: Facts, spaces: Mapping[str, kube.Metadata | None], counted: Counted, merge: bool) -> None:
        self.facts = facts
        self.counted = counted
        self.pool = pool_of(facts)
        self.names = self.pool.names
        self.spaces = spaces
        self.merge = merge
        self.plan = Plan()
        self.quotas: dict[str, dict[str, kube.ResourceQuota]] = {}
        for item in facts.quotas.need():
            self.quotas.setdefault(item.metadata.namespace, {})[item.metadata.name] = item
        self.classes = {item.metadata.name: item for item in facts.priorities.value or ()}
        self.queues = {item.metadata.name: item for item in facts.queues.value or ()}
        self.pods: dict[str, list[kube.Pod]] = {}
        for pod in facts.pods.value or ():
            if pool.alive(pod) and pool.is_vgpu_pod(pod, self.names):
                self.pods.setdefault(pod.metadata.namespace, []).append(pod)

    def note(self, text: str) -> None:
        if text not in self.plan.notes:
            self.plan.notes.append(text)

    def team(self, team: Team) -> None:
        if team.memory is not None and (said := memory_units(team.memory, self.pool).note):
            self.note(f"memory {said}")
        found: list[Wanted] = []
        if team.queue:
            found.append(self.queue(team))
        extra: list[Change] = []
        for priority in team.priorities:
            extra += self.priority_class(priority)
        places: list[Place] = []
        old: list[Change] = []
        for place in team.places:
            found += self.namespace(place, team)
            for quota in self.namespace_quotas(place, team):
                found.append(quota)
                places.append((place, quota.change.target.name))
            old += self.old_keys(place)
        steps: list[Change | Wait] = [*extra, *(one.change for one in found if not one.done)]
        if old:
            steps += [Wait(f"the API server counts the quota of {team.name}", partial(self.counted, places)), *old]
        self.plan.counted += places
        self.plan.groups.append(Group(steps, [one.change for one in found if one.done]))
        if self.pool.vgpus is not None and team.number is not None and team.number > self.pool.vgpus:
            self.note(f"{team.number} vGPUs for {team.name} are more than the pool offers ({self.pool.vgpus})")

    def namespace(self, place: str, team: Team) -> Iterator[Wanted]:
        if place not in self.spaces:
            self.note(f"namespace {place} could not be read; it is taken to exist")
            return
        before = self.spaces[place]
        if before is None or team.queue or not self.merge:
            yield objects.namespace(place, team.name, team.queue.name if team.queue else None, before)

    def namespace_quotas(self, place: str, team: Team) -> Iterator[Wanted]:
        present = self.quotas.get(place, {})
        hard = counts(team.amounts, self.pool)
        if self.merge:
            hard = {**self.present(present.get(QUOTA)), **self.migrated(present), **hard}
        stated = bool(hard) or QUOTA in present
        if not hard and not team.priorities and not self.merge:
            self.note(f"team {team.name} has no amount in {place}: nothing limits it there")
        if hard or (stated and not self.merge):
            yield self.quota(place, QUOTA, team, hard, present)
        self.warn_others(place, present, hard)
        self.warn_queue(place, team, hard)
        for priority, number in team.priorities.items():
            name = quota_name(priority)
            yield self.quota(place, name, team, {What.NUMBER: number}, present, quota_name(priority))
        self.over(place, hard, present.get(QUOTA))

    def old_keys(self, place: str) -> Iterator[Change]:
        """Takes the keys away that were never counted."""
        for _, quota in sorted(self.quotas.get(place, {}).items()):
            keys = [key for key, what in uncounted(quota, self.names) if what is not What.PERCENTAGE]
            if keys:
                yield objects.without_keys(quota, keys, "these names are never counted")

    def present(self, quota: kube.ResourceQuota | None) -> dict[What, int]:
        """The counted amounts that a quota has now."""
        return objects.amounts(quota.spec.hard if quota else None, self.pool)

    def migrated(self, present: Mapping[str, kube.ResourceQuota]) -> dict[What, int]:
        """What uncounted keys meant to limit: the least of each."""
        found: dict[What, int] = {}
        for quota in present.values():
            for key, what in uncounted(quota, self.names):
                number = integer((quota.spec.hard or {}).get(key))
                if number is not None and what is not What.PERCENTAGE:
                    found[what] = min(number, found.get(what, number))
        return found

    def quota(
        self,
        place: str,
        name: str,
        team: Team,
        hard: Mapping[What, int],
        present: Mapping[str, kube.ResourceQuota],
        priority_class: str = "",
    ) -> Wanted:
        before = present.get(name)
        undo = self.undo(team, place, name, before)
        return objects.quota((place, name), team.name, hard, self.pool, before, priority_class, undo)

    def undo(self, team: Team, place: str, name: str, before: kube.ResourceQuota | None) -> str:
        had = self.present(before)
        if had:
            return objects.set_command(team.name, place, name, had, self.pool)
        space = "" if place == team.name else f" -n {place}"
        return f"vgpuctl quota delete {team.name}{space}" if before is None else ""

    def warn_others(self, place: str, present: Mapping[str, kube.ResourceQuota], hard: Mapping[What, int]) -> None:
        for name, quota in sorted(present.items()):
            theirs = self.present(quota)
            scoped = quota.spec.scope_selector or quota.spec.scopes
            if name == QUOTA or name.startswith(f"{QUOTA}-") or scoped:
                continue
            for what, number in theirs.items():
                if what in hard:
                    self.note(f"quota {place}/{name} limits {what.value} to {number} too; the smaller one decides")

    def warn_queue(self, place: str, team: Team, hard: Mapping[What, int]) -> None:
        """The namespace's queue caps it lower than the quota does."""
        space = self.spaces.get(place)
        name = (space.annotation(QUEUE) if space else None) or ""
        queue = self.queues.get(name)
        if team.queue or queue is None:
            return
        for what, cap in self.plain(queue.spec.capability).items():
            if what in hard and cap < hard[what]:
                self.note(f"queue {name} caps {what.value} at {cap}; --queue {name} gives it the same amounts")

    def over(self, place: str, hard: Mapping[What, int], quota: kube.ResourceQuota | None) -> None:
        """Tells who is above a new cap."""
        if self.facts.pods.value is None:
            return
        held = total(self.pods.get(place, ()), self.names)
        for what, used in (
            (What.NUMBER, held.number),
            (What.MEMORY, held.counted_memory),
            (What.CORES, held.counted_cores),
        ):
            cap = hard.get(what)
            if cap is not None and used > cap:
                unit = "vGPUs" if what is What.NUMBER else "memory units" if what is What.MEMORY else "% of cores"
                self.note(
                    f"{place} uses {used} {unit}, {used - cap} above the cap of {cap}: nothing is evicted, "
                    "new pods are refused until it is below"
                )

    def priority_class(self, priority: str) -> list[Change]:
        name = quota_name(priority)
        if self.facts.priorities.value is None:
            self.note(f"PriorityClass {name} is taken to exist: {self.facts.priorities.reason}")
            return []
        if name in self.classes:
            return []
        if priority not in PRIORITIES:
            raise Problem(
                f"there is no PriorityClass {name}",
                f"vgpuctl makes those of {', '.join(PRIORITIES)} only, since it knows no value for {priority}",
                f"create it: kubectl create priorityclass {name} --value=…",
                Exit.FINDINGS,
            )
        self.classes[name] = kube.PriorityClass(metadata=kube.Metadata(name=name), value=PRIORITIES[priority])
        return [objects.priority(name, PRIORITIES[priority], priority)]

    def queue(self, team: Team) -> Wanted:
        assert team.queue
        self.facts.queues.need()
        before = self.queues.get(team.queue.name)
        capability, guarantee = self.queue_amounts(team)
        for what, least in guarantee.items():
            if what in capability and least > capability[what]:
                raise Problem(
                    f"queue {team.queue.name} cannot guarantee {least} {what.value} and cap it at {capability[what]}",
                    remedy="the guarantee must be within the capability",
                    exit_code=Exit.FINDINGS,
                )
        self.version({*capability, *guarantee}, team.queue.name)
        undo = f"kubectl delete queue {team.queue.name}" if before is None else ""
        return objects.queue(team.queue.name, team.name, capability, guarantee, self.pool, before, undo)

    def queue_amounts(self, team: Team) -> tuple[dict[What, int], dict[What, int]]:
        assert team.queue
        before = self.queues.get(team.queue.name)
        capability = counts(team.queue.capability or team.amounts, self.pool)
        guarantee = counts(team.queue.guarantee or Amounts(), self.pool)
        if self.merge and before:
            had = self.plain(before.spec.capability)
            kept = self.plain((before.spec.guarantee or {}).get("resource"))
            return {**had, **capability}, {**kept, **guarantee}
        return capability, guarantee

    def plain(self, values: Mapping[str, object] | None) -> dict[What, int]:
        """The vGPU amounts of a section of a queue."""
        return objects.amounts(values, self.pool, "")

    def version(self, amounts: set[What], queue: str) -> None:
        if not amounts & {What.MEMORY, What.CORES}:
            return
        version = pool.volcano_version(self.facts)
        if version is None:
            self.note(f"Volcano's version is not known: before 1.13 it ignores memory and cores of queue {queue}")
        elif version < type(version)(_IGNORED_BEFORE):
            self.note(f"Volcano {version} ignores memory and cores of queue {queue}: only the number of vGPUs is kept")

    def check_guarantees(self, teams: Sequence[Team]) -> None:
        """All guarantees together must leave something of the pool."""
        mine = {team.queue.name: self.queue_amounts(team)[1] for team in teams if team.queue}
        if not any(mine.values()):
            return
        sizes = {What.NUMBER: self.pool.vgpus, What.MEMORY: self.pool.units}
        for what, size in sizes.items():
            if not any(what in amounts for amounts in mine.values()):
                continue
            if size is None:
                self.note(f"guarantees are not checked against the pool: {self.facts.nodes.reason or self.pool.why}")
                continue
            others = sum(
                self.plain((queue.spec.guarantee or {}).get("resource")).get(what, 0)
                for name, queue in self.queues.items()
                if name not in mine and queue.spec.parent in ("", "root")
            )
            whole = others + sum(amounts.get(what, 0) for amounts in mine.values())
            if whole > size:
                unit = "vGPUs" if what is What.NUMBER else "memory units"
                raise Problem(
                    f"the guarantees of all queues would be {whole} {unit} in sum, the pool has {size}",
                    "pods of queues without a guarantee would stay pending while cards idle",
                    "guarantee less",
                    Exit.FINDINGS,
                )
