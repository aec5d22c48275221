"""Takes a team's share away: the quotas and the queue that vgpuctl made. Pods and namespaces stay."""

from __future__ import annotations

from collections.abc import Mapping

from vgpuctl.model import kube
from vgpuctl.model.change import Change, How, Line, Target
from vgpuctl.model.facts import Facts
from vgpuctl.model.pod.names import QUEUE
from vgpuctl.model.quota.team import MANAGED_BY, MANAGER, TEAM
from vgpuctl.model.quota.units import Pool
from vgpuctl.tasks.apply import Group
from vgpuctl.tasks.quota import objects
from vgpuctl.tasks.quota.plan import Plan, pool_of


def deletion(facts: Facts, spaces: Mapping[str, kube.Metadata | None], team: str) -> Plan:
    """The plan for one team; its queue goes too when no other team's namespace uses it. Raises Missing when quotas
    are not known."""
    quotas = [quota for quota in facts.quotas.need() if _ours(quota.metadata, team)]
    pool = pool_of(facts)
    steps = [_quota(quota, team, pool) for quota in quotas]
    others = {space.annotation(QUEUE) for space in spaces.values() if space and space.label(TEAM) != team}
    steps += [
        _without_queue(name, space)
        for name, space in spaces.items()
        if space and space.label(TEAM) == team and space.annotation(QUEUE)
    ]
    steps += [
        objects.delete(Target("Queue", queue.metadata.name, "", objects.QUEUES), queue.metadata)
        for queue in facts.queues.value or ()
        if _ours(queue.metadata, team) and queue.metadata.name not in others
    ]
    if not steps:
        return Plan(notes=[f"team {team} has no quota that vgpuctl made"])
    return Plan([Group(steps)], notes=["namespaces and pods stay; nothing limits them any more"])


def _ours(metadata: kube.Metadata, team: str) -> bool:
    return metadata.label(MANAGED_BY) == MANAGER and metadata.label(TEAM) == team


def _quota(quota: kube.ResourceQuota, team: str, pool: Pool) -> Change:
    metadata = quota.metadata
    lines = tuple(Line(key, value, None) for key, value in sorted((quota.spec.hard or {}).items()))
    had = objects.amounts(quota.spec.hard, pool)
    undo = objects.set_command(team, metadata.namespace, metadata.name, had, pool)
    return objects.delete(Target("ResourceQuota", metadata.name, metadata.namespace), metadata, lines, undo=undo)


def _without_queue(name: str, space: kube.Metadata) -> Change:
    """Gives up the annotation: an apply without it removes it if it is ours."""
    kept = {key: value for key, value in (space.labels or {}).items() if key in (MANAGED_BY, TEAM)}
    body = {"metadata": {"name": name, "labels": kept}}
    lines = (Line(QUEUE, space.annotation(QUEUE), None),)
    return Change(Target("Namespace", name), How.APPLY, body, {"metadata": {"uid": space.uid}}, lines)
