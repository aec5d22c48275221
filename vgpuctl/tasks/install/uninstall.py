"""Takes out what was installed: the plugin first, then its files on the nodes, then the rest, the record last. What
others had before comes back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from vgpuctl.model import pool
from vgpuctl.model.change import Change, How, Line, Target
from vgpuctl.model.facts import Facts, Part
from vgpuctl.model.history import PLACE as HISTORY
from vgpuctl.model.install.manifests import CLEANUP, PART_OF, PLUGIN, is_part, target
from vgpuctl.model.install.options import Options
from vgpuctl.model.install.release import PLACE, Backup, Release
from vgpuctl.model.pod.names import QUEUE
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.model.quota.team import MANAGED_BY, MANAGER, TEAM
from vgpuctl.tasks.apply import Conduct, Group, Outcome, Step, apply, is_ours
from vgpuctl.tasks.install import cleaning, record, rollout, scheduler
from vgpuctl.tasks.install.live import Live, Object, check_rights, find
from vgpuctl.tasks.install.objects import as_installed, backed_up, cleaned, gone
from vgpuctl.tasks.load import load

_PARTS = (Part.PODS, Part.NODES, Part.CONFIGMAPS, Part.DEPLOYMENTS)
_SHARES = (
    ("ResourceQuota", "v1"),
    ("Queue", "scheduling.volcano.sh/v1beta1"),
    ("PriorityClass", "scheduling.k8s.io/v1"),
)
"""Kinds of which `quota set` makes objects."""
_CLEANING = f"a DaemonSet {CLEANUP} takes the library's files off the nodes, and goes again"


@dataclass(frozen=True)
class Wish:
    """What is asked for. force: although vGPU pods run, and without nodes that cannot be cleaned. everything: also
    quotas, queues, team labels and the history. namespace: where it is to be installed, "" for wherever it is."""

    force: bool = False
    everything: bool = False
    namespace: str = ""


def uninstall(cluster: Live, wish: Wish, conduct: Conduct) -> Outcome:
    """Nothing installed is nothing to do. Raises Problem or Missing before any change."""
    kept = record.read(cluster)
    facts = load((cluster,), _PARTS)
    groups: list[Group] = []
    mine = None
    if kept:
        if wish.namespace not in ("", kept.namespace):
            what = f"vgpuctl has installed in {kept.namespace}, not in {wish.namespace}: nothing was changed"
            raise Problem(what, remedy=f"-n {kept.namespace}, or leave it out", exit_code=Exit.FINDINGS)
        if cut_off := record.free(kept, conduct.now()):
            conduct.say(cut_off)
        _idle(cluster, facts, kept, wish, conduct)
        mine = record.holder(cluster, conduct, conduct.timeout)
        begun = msgspec.structs.replace(kept.release, phase="uninstalling", holder=mine)
        groups += _installed(cluster, kept, begun, facts, wish, conduct)
    else:
        _none_left(cluster)
        conduct.say("vgpuctl has installed nothing in this cluster")
    if wish.everything and (steps := _shares(cluster)):
        groups.append(Group(steps, needed=True))
    if kept:
        last = Change(PLACE, How.DELETE, None, kept.item)
        groups.append(Group([*_namespace(cluster, kept, facts, conduct), last], needed=True))
    if not conduct.dry_run:
        check_rights(cluster, [change for group in groups for change in group.changes])
    outcome = record.carry_out(cluster, groups, conduct, mine)
    history = cluster.get(HISTORY) if wish.everything and not outcome.problems else None
    if history is not None:
        # by itself and last: all that comes before it is recorded there
        conduct.say(f"{HISTORY}: delete")
        end = Change(HISTORY, How.DELETE, None, history, routine=True)
        outcome.problems += apply(cluster, [Group([end])], conduct, cluster.name).problems
    return outcome


def _idle(cluster: Live, facts: Facts, kept: record.Kept, wish: Wish, conduct: Conduct) -> None:
    """Raises Problem while vGPU pods run, Missing when that is not known. When a run that was cut off took the plugin
    out, they have been agreed to."""
    names = [pool.full_name(pod.metadata) for pod in pool.vgpu_pods(facts) if pod.spec.node_name]
    if not names:
        return
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    running = f"{len(names)} vGPU pod{'s run' if len(names) > 1 else ' runs'}"
    begun = kept.release.phase == "uninstalling"
    if wish.force or (begun and not is_part(cluster.get(rollout.daemonset(kept.namespace)) or {})):
        conduct.say(f"{running} on without the plugin: {shown}")
    else:
        raise Problem(
            f"{running}: nothing was changed",
            f"{shown}; without the plugin they cannot be started again, and their limits go with the library",
            "end them first, or give --force",
            Exit.FINDINGS,
        )


def _none_left(cluster: Live) -> None:
    """Raises Problem where the plugin is ours all the same."""
    for item in cluster.objects("DaemonSet", query={"labelSelector": f"{PART_OF}={MANAGER}"}):
        one = rollout.daemonset(item["metadata"]["namespace"], item["metadata"]["name"])
        raise Problem(
            f"{one} is vgpuctl's, but there is no record of an installation: nothing was changed",
            f"{PLACE} was deleted, or this was applied from an export",
            f"take the export out as it came in, or vgpuctl install -n {one.namespace} and then uninstall",
            Exit.FINDINGS,
        )


def _installed(
    cluster: Live, kept: record.Kept, begun: Release, facts: Facts, wish: Wish, conduct: Conduct
) -> list[Group]:
    """Everything but the record."""
    space, backups = kept.namespace, kept.release.backups
    found = cluster.get(rollout.daemonset(space))
    plugin = found if found is not None and is_part(found) else None
    others = found is not None and plugin is None  # such as what came back in a run that was cut off
    first: list[Step] = [record.write(kept.release, begun, kept.text)]
    if plugin is not None:
        first += [_delete(plugin), rollout.no_pods(cluster, space, PLUGIN)]
    ours = _objects(cluster, kept)
    undone, notes = scheduler.undo(cluster, facts, backups)
    restored = _restored(cluster, backups, [*ours, *([plugin] if plugin else [])], notes, conduct)
    if others:
        notes.append(f"{rollout.daemonset(space)} is not vgpuctl's: what it has on the nodes stays")
    for line in notes:
        conduct.say(line)
    clean = cleaning.steps(cluster, kept.release.options, facts, conduct, force=wish.force)
    groups = [
        Group(first, needed=True),
        *([] if others else [Group(clean, about=_CLEANING, needed=True)]),
        Group([*map(_delete, ours), *undone, *restored], needed=True),
    ]
    registered = [] if others else cleaning.registered(_may_be_registered(facts, kept.release.options))
    if registered and not any(backup.kind == "DaemonSet" and not backup.path for backup in backups):
        groups.append(Group(registered, about="what the plugin registered is removed from the nodes", needed=True))
    return groups


def _delete(item: Object) -> Change:
    return Change(target(item), How.DELETE, None, item)


def _objects(cluster: Live, kept: record.Kept) -> list[Object]:
    """All of ours but plugin, record and namespace, the last one made first."""
    former = kept.release.former
    options = [kept.release.options, *([former.options] if former else [])]
    names = dict.fromkeys(target(item) for one in options for item in as_installed(one, None))
    query = {"labelSelector": f"{MANAGED_BY}={MANAGER},{PART_OF}={MANAGER}"}
    for library in cluster.objects("ConfigMap", namespace=kept.namespace, query=query):  # of any version
        names[Target("ConfigMap", library["metadata"]["name"], kept.namespace)] = None
    left_out = (PLACE, rollout.daemonset(kept.namespace))
    found = [
        {"kind": one.kind, "apiVersion": one.api_version, **live}
        for one in reversed(names)
        if one not in left_out and one.kind != "Namespace" and (live := find(cluster, one))
    ]
    return [item for item in found if is_part(item)]


def _restored(
    cluster: Live, backups: Iterable[Backup], going: Iterable[Object], notes: list[str], conduct: Conduct
) -> list[Step]:
    """Brings back what others had in the place of ours."""
    ours = {target(item) for item in going}
    steps: list[Step] = []
    for backup in backups:
        if backup.path:
            continue
        one = backed_up(backup)
        there = None if one in ours else cluster.get(one)
        if there is not None and cleaned(there) == backup.before:
            continue  # it came back in a run that was cut off
        if there is not None:
            notes.append(f"{one} is there already: what was there before the install does not come back")
        elif conduct.dry_run == "server" and one in ours:
            notes.append(f"{one} comes back as it was before the install; not checked, since ours is still there")
        else:
            steps.append(Change(one, How.CREATE, backup.before, None, why="as it was before the install"))
    return steps


def _may_be_registered(facts: Facts, options: Options) -> list[str]:
    """The nodes with the plugin's annotations, and all on which it may run, since one may just now be registered."""
    return [
        node.metadata.name
        for node in facts.nodes.value or ()
        if cleaning.is_registered(node) or cleaning.is_for(options, node)
    ]


def _namespace(cluster: Live, kept: record.Kept, facts: Facts, conduct: Conduct) -> list[Step]:
    """The namespace goes if we made it and nobody else runs in it."""
    place = Target("Namespace", kept.namespace)
    found = cluster.get(place)
    if found is None or not is_part(found):
        return []
    pods = [pod for pod in facts.pods.need() if pod.metadata.namespace == kept.namespace]
    others = [pod.metadata.name for pod in pods if pod.metadata.label("name") not in (PLUGIN, CLEANUP)]
    if others:
        conduct.say(f"{place} stays: {others[0]} runs in it")
        return []
    item = {"kind": "Namespace", "apiVersion": "v1", **found}
    return [_delete(item), *gone(cluster, item)]


def _shares(cluster: Live) -> list[Step]:
    """Takes away what `quota set` made: quotas, queues and priorities of ours, and the teams' marks on namespaces."""
    steps: list[Step] = []
    gone_queues = set()
    for kind, api_version in _SHARES:
        for item in _ours(cluster, kind):
            steps.append(_delete({"kind": kind, "apiVersion": api_version, **item}))
            gone_queues |= {item["metadata"]["name"]} if kind == "Queue" else set()
    for item in cluster.objects("Namespace", query={"labelSelector": TEAM}):
        labels = {TEAM: None, **({MANAGED_BY: None} if is_ours(item) else {})}
        metadata: dict[str, object] = {"labels": labels}
        lines = [Line(f"label {key}", item["metadata"]["labels"][key], None) for key in labels]
        queue = (item["metadata"].get("annotations") or {}).get(QUEUE)
        if queue in gone_queues:
            metadata["annotations"] = {QUEUE: None}
            lines.append(Line(QUEUE, queue, None))
        where = Target("Namespace", item["metadata"]["name"])
        steps.append(Change(where, How.MERGE, {"metadata": metadata}, item, tuple(lines)))
    return steps


def _ours(cluster: Live, kind: str) -> list[Object]:
    """The objects of a kind that are ours; none where the cluster does not know it."""
    try:
        return cluster.objects(kind, query={"labelSelector": f"{MANAGED_BY}={MANAGER}"})
    except Problem as problem:
        if problem.status != 404:
            raise
        return []
