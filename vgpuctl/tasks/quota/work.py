"""Carries the quota commands out on a cluster: loads what a plan needs, applies it, waits."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol

import msgspec

from vgpuctl.model import kube, pool
from vgpuctl.model.change import Target
from vgpuctl.model.facts import Part
from vgpuctl.model.pod.names import QUEUE
from vgpuctl.model.problem import Problem
from vgpuctl.model.quota import share
from vgpuctl.model.quota.team import Team
from vgpuctl.sources.source import Source, Writer
from vgpuctl.tasks.apply import Conduct, Group, Outcome, Wait, apply
from vgpuctl.tasks.load import load
from vgpuctl.tasks.quota.deletion import deletion
from vgpuctl.tasks.quota.plan import Place, Plan, make

LIST_PARTS = (Part.QUOTAS, Part.PODS, Part.NAMESPACES, Part.QUEUES, Part.CONFIGMAPS)
_PARTS = (Part.QUOTAS, Part.PODS, Part.NODES, Part.CONFIGMAPS)
_FEW = 8
"""Up to so many objects are read one by one, more as one list."""


class ClusterSource(Source, Writer, Protocol):
    """A live cluster, as these tasks use it."""

    def objects(
        self, kind: str, *, namespace: str = "", query: dict[str, str] | None = None
    ) -> list[dict[str, Any]]: ...


def listed(sources: Sequence[Source]) -> share.Quotas:
    """What teams may use and use. Raises Missing when quotas cannot be read."""
    facts = load(sources, LIST_PARTS)
    return share.join(facts, pool.resource_names(facts), pool.memory_factor(facts))


def give(cluster: ClusterSource, teams: Sequence[Team], conduct: Conduct, *, merge: bool) -> Outcome:
    """Gives teams their shares. merge: what is not stated stays. Raises Problem or Missing before any change."""
    parts = [*_PARTS]
    if any(team.priorities for team in teams):
        parts.append(Part.PRIORITIES)
    if any(team.queue for team in teams):
        parts += (Part.QUEUES, Part.DEPLOYMENTS)
    spaces = _spaces(cluster, [place for team in teams for place in team.places])
    if Part.QUEUES not in parts and any(space and space.annotation(QUEUE) for space in spaces.values()):
        parts.append(Part.QUEUES)
    plan = make(load((cluster,), parts), spaces, teams, partial(_counted, cluster), merge=merge)
    if plan.counted:
        what = "the API server counts the quota" + ("s" if len(plan.counted) > 1 else "")
        plan.groups.append(Group([Wait(what, partial(_counted, cluster, plan.counted))]))
    return _carry_out(cluster, plan, conduct)


def take(cluster: ClusterSource, team: str, conduct: Conduct) -> Outcome:
    """Takes a team's share away. Raises Problem or Missing before any change."""
    facts = load((cluster,), (Part.QUOTAS, Part.QUEUES, Part.NAMESPACES, Part.CONFIGMAPS))
    spaces: dict[str, kube.Metadata | None] = {
        item.metadata.name: item.metadata for item in facts.namespaces.value or ()
    }
    return _carry_out(cluster, deletion(facts, spaces, team), conduct)


def _carry_out(cluster: ClusterSource, plan: Plan, conduct: Conduct) -> Outcome:
    outcome = apply(cluster, plan.groups, conduct, cluster.name)
    outcome.changes.notes.extend(plan.notes)
    return outcome


def _spaces(cluster: ClusterSource, names: Sequence[str]) -> dict[str, kube.Metadata | None]:
    """Namespaces as they are; None: there is none; not in it: it could not be read."""
    if len(names) > _FEW:
        listed = {item["metadata"]["name"]: item for item in cluster.objects("Namespace")}
        return {name: _metadata(listed.get(name)) for name in names}
    found = {name: _readable(cluster, name) for name in names}
    return {name: read[0] for name, read in found.items() if read is not None}


def _readable(cluster: ClusterSource, name: str) -> tuple[kube.Metadata | None] | None:
    try:
        return (_metadata(cluster.get(Target("Namespace", name))),)
    except Problem as problem:
        if problem.status != 403:
            raise
        return None


def _metadata(item: dict[str, Any] | None) -> kube.Metadata | None:
    return None if item is None else msgspec.convert(item["metadata"], kube.Metadata)


def _counted(cluster: ClusterSource, places: Sequence[Place]) -> bool:
    """The status of each of these quotas holds every cap of its spec."""
    if len(places) > _FEW:
        wanted = set(places)
        items = [
            item
            for item in cluster.objects("ResourceQuota")
            if (item["metadata"]["namespace"], item["metadata"]["name"]) in wanted
        ]
    else:
        read = (cluster.get(Target("ResourceQuota", name, space)) for space, name in places)
        items = [item for item in read if item]
    return all(
        ((item.get("status") or {}).get("hard") or {}) == ((item.get("spec") or {}).get("hard") or {}) for item in items
    )
