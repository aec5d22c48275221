"""Writes the teams that vgpuctl made as a teams file that `quota apply -f` reads back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vgpuctl.model import kube
from vgpuctl.model.facts import Facts, Part
from vgpuctl.model.pod.names import QUEUE
from vgpuctl.model.quantity import integer
from vgpuctl.model.quota.cap import COUNTED
from vgpuctl.model.quota.team import MANAGED_BY, MANAGER, QUOTA, TEAM, Amounts, Team, TeamQueue, Teams
from vgpuctl.model.quota.units import Pool, size_text
from vgpuctl.model.resource import What
from vgpuctl.sources.source import Source
from vgpuctl.tasks.load import load
from vgpuctl.tasks.quota.plan import pool_of


def export(sources: Sequence[Source]) -> tuple[Teams, list[str]]:
    """The teams that vgpuctl made, and what was left out, in words: a namespace that is being deleted is no team any
    more, and a file with it would make it anew. Raises Missing when quotas cannot be read."""
    facts = load(sources, (Part.QUOTAS, Part.QUEUES, Part.NAMESPACES, Part.CONFIGMAPS, Part.NODES))
    known = pool_of(facts)
    ending = {place.metadata.name for place in facts.namespaces.value or () if place.metadata.deletion_timestamp}
    ours = [
        quota
        for quota in facts.quotas.need()
        if quota.metadata.label(MANAGED_BY) == MANAGER and quota.metadata.namespace not in ending
    ]
    names = sorted({quota.metadata.label(TEAM) or quota.metadata.namespace for quota in ours})
    teams: list[Team] = []
    notes: list[str] = []
    for name in names:
        mine = [quota for quota in ours if (quota.metadata.label(TEAM) or quota.metadata.namespace) == name]
        teams += _teams(name, mine, facts, known, notes)
    others = sum(
        1
        for quota in facts.quotas.need()
        if quota.metadata.label(MANAGED_BY) != MANAGER
        and any(f"{COUNTED}{resource}" in (quota.spec.hard or {}) for resource in known.names.all)
    )
    if others:
        notes.append(f"{others} quotas on vGPUs were not made by vgpuctl and are left out")
    if not known.factor:
        notes.append("the pool's gpuMemoryFactor is not known: memory is written in memory units")
    return Teams(source=facts.source, teams=teams), notes


def _teams(name: str, quotas: Sequence[kube.ResourceQuota], facts: Facts, known: Pool, notes: list[str]) -> list[Team]:
    by_place: dict[str, dict[str, kube.ResourceQuota]] = {}
    for quota in quotas:
        by_place.setdefault(quota.metadata.namespace, {})[quota.metadata.name] = quota
    stated = {place: _stated(found, known) for place, found in sorted(by_place.items())}
    first = next(iter(stated.values()))
    same = [place for place, what in stated.items() if what == first]
    notes += (
        f"namespace {place} of team {name} has other amounts than {same[0]} and is left out"
        for place in stated
        if place not in same
    )
    amounts, priorities = first
    return [
        Team(
            name=name,
            namespaces=[] if same == [name] else same,
            number=amounts.number,
            memory=amounts.memory,
            cores=amounts.cores,
            priorities=priorities,
            queue=_queue(name, amounts, same, facts, known),
        )
    ]


def _stated(quotas: dict[str, kube.ResourceQuota], known: Pool) -> tuple[Amounts, dict[str, int]]:
    main = quotas.get(QUOTA)
    amounts = _amounts(main.spec.hard if main else None, known, COUNTED)
    priorities = {}
    for name, quota in sorted(quotas.items()):
        number = _amounts(quota.spec.hard, known, COUNTED).number
        if name.startswith(f"{QUOTA}-") and number is not None:
            priorities[name[len(QUOTA) + 1 :]] = number
    return amounts, priorities


def _amounts(hard: Any, known: Pool, prefix: str = "") -> Amounts:
    found = {what: integer((hard or {}).get(f"{prefix}{known.names.name(what)}")) for what in What}
    units = found[What.MEMORY]
    return Amounts(
        number=found[What.NUMBER],
        memory=None if units is None else size_text(units, known),
        cores=found[What.CORES],
    )


def _queue(team: str, amounts: Amounts, places: Sequence[str], facts: Facts, known: Pool) -> TeamQueue | None:
    spaces = {item.metadata.name: item.metadata for item in facts.namespaces.value or ()}
    name = next(
        (found for place in places if (space := spaces.get(place)) and (found := space.annotation(QUEUE))), None
    )
    queue = next((item for item in facts.queues.value or () if item.metadata.name == name), None)
    if not name or queue is None or queue.metadata.label(MANAGED_BY) != MANAGER:
        return None
    capability = _amounts(queue.spec.capability, known)
    guarantee = _amounts((queue.spec.guarantee or {}).get("resource"), known)
    return TeamQueue(
        name=name,
        capability=None if capability == amounts else capability,
        guarantee=None if guarantee == Amounts() else guarantee,
    )
