"""The scheduler's part: its configuration is patched on demand, and it is restarted, since it reads what concerns vGPUs
once. Both come back at uninstall, unless somebody changed them since."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone

import msgspec

from vgpuctl.model import pool
from vgpuctl.model.change import Change, How, Line, Target
from vgpuctl.model.facts import Facts, Part
from vgpuctl.model.install.owner import Owner, owner
from vgpuctl.model.install.release import Backup
from vgpuctl.model.install.scheduler import BY_HAND, SWITCH, Edited, switched_on
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.tasks.apply import Reversible, Step, Wait
from vgpuctl.tasks.install import rollout
from vgpuctl.tasks.install.live import Live, Object
from vgpuctl.tasks.install.objects import backed_up

OPTION = "--patch-scheduler"
RESTARTED = "vgpuctl.dev/restarted"
_ANNOTATION = "/spec/template/metadata/annotations/vgpuctl.dev~1restarted"
_HELM_VALUE = "custom.scheduler_config_override"
"""Of Volcano's chart: the whole text of the scheduler's configuration."""


@dataclass
class Patch:
    """steps: what to write. waits: what must come true then. backups: what was there before. facts: as they will be.
    notes: for the user."""

    facts: Facts
    steps: list[Step] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    backups: list[Backup] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def patch(cluster: Live, facts: Facts, backups: Iterable[Backup], now: float, *, fresh: bool) -> Patch:
    """What turns vGPU sharing on in the scheduler. fresh: the device configuration is new, so that the scheduler must
    start anew in any case. backups: of an earlier, interrupted run.

    Raises Problem when the configuration is not ours to change, or cannot be edited; Missing when it is not known.
    """
    found = pool.scheduler_config(facts)
    if found is None:
        raise Problem(
            f"{OPTION}: no configuration of Volcano's scheduler was found",
            remedy="install Volcano first",
            exit_code=Exit.FINDINGS,
        )
    edited = switched_on(found.text, found.place)
    done = Patch(_with_text(facts, found, edited.text))
    if edited.lines:
        _edit(cluster, done, found, edited)
    started = any(backup.path == _ANNOTATION for backup in backups)
    where = _deployment(facts)
    if where is None:
        if edited.lines or fresh:
            done.notes.append("no Deployment of the scheduler was found: restart it yourself, it reads this once")
    elif edited.lines or fresh or (started and not _is_restarted(cluster, where)):
        _restart(cluster, done, where, now)
    elif started:
        done.waits.append(rollout.deployment(cluster, where, "the scheduler to run again"))
    return done


def needed(facts: Facts) -> str:
    """What to do with the scheduler by hand when the device configuration is new; "" when there is none."""
    where = _deployment(facts)
    command = f"kubectl -n {where.namespace} rollout restart deployment {where.name}" if where else ""
    return f"the scheduler reads the device configuration once: {command}, or give {OPTION}" if where else ""


def undo(cluster: Live, facts: Facts, backups: Iterable[Backup]) -> tuple[list[Step], list[str]]:
    """The steps that bring the scheduler back, and notes on what stays. Whatever command of ours restarted it, its
    pods lose the mark of that."""
    steps: list[Step] = []
    notes: list[str] = []
    for backup in backups:
        live = cluster.get(backed_up(backup)) if backup.path and backup.path != _ANNOTATION else None
        if live is None:
            continue
        one, have = backed_up(backup), _at(live, backup.path)
        if have == backup.after:
            lines = (Line(backup.path.rpartition("/")[2], "with vGPU sharing", "as before the install"),)
            steps.append(Change(one, How.PATCH, _replace(backup.path, have, backup.before), live, lines))
        elif have != backup.before:
            notes.append(f"{one} was changed since the install: it stays as it is, {SWITCH} included")
    where = _deployment(facts)
    live = cluster.get(where) if where else None
    if where and live and (mark := _at(live, _ANNOTATION)) is not None:
        lines = (Line(f"annotation {RESTARTED} of its pods", mark, None),)
        steps.append(Change(where, How.MERGE, _annotations({RESTARTED: None}), live, lines, why="it starts anew"))
        steps.append(rollout.deployment(cluster, where, "the scheduler to run again"))
    return steps, notes


def _edit(cluster: Live, done: Patch, found: pool.Text, edited: Edited) -> None:
    metadata = found.map.metadata
    one = Target("ConfigMap", metadata.name, metadata.namespace)
    live = cluster.get(one)
    if live is None:
        raise Problem(f"{one} is gone meanwhile", remedy="run the command again", exit_code=Exit.FINDINGS)
    _check(one, owner(live))
    path = f"/data/{found.key}"
    done.steps.append(
        Reversible(
            Change(one, How.PATCH, _replace(path, found.text, edited.text), live, edited.lines),
            lambda: [Change(one, How.PATCH, _replace(path, edited.text, found.text), live)],
        )
    )
    done.backups.append(
        Backup(
            api_version="v1",
            kind="ConfigMap",
            name=one.name,
            namespace=one.namespace,
            path=path,
            before=found.text,
            after=edited.text,
        )
    )


def _check(one: Target, whose: Owner | None) -> None:
    """Raises Problem where a tool would undo the patch."""
    if whose is None or not whose.elsewhere:
        return
    remedy = f"turn vGPU sharing on in {whose.elsewhere}; {BY_HAND}"
    if "Helm" in whose.name:
        remedy = f"set {_HELM_VALUE} of Volcano's chart to the text with deviceshare, and leave {OPTION} out"
    raise Problem(
        f"{one} belongs to {whose.name}", "a patch would be undone by its next upgrade", remedy, Exit.FINDINGS
    )


def _restart(cluster: Live, done: Patch, where: Target, now: float) -> None:
    live = cluster.get(where)
    if live is None:
        return
    moment = f"{datetime.fromtimestamp(now, timezone.utc):%Y-%m-%dT%H:%M:%SZ}"
    have = _at(live, _ANNOTATION)
    change = Change(
        where,
        How.MERGE,
        _annotations({RESTARTED: moment}),
        live,
        (Line(f"annotation {RESTARTED} of its pods", have, moment),),
        why="it starts anew",
    )
    done.steps.append(Reversible(change, lambda: [Change(where, How.MERGE, _annotations({RESTARTED: have}), live)]))
    done.waits.append(rollout.deployment(cluster, where, "the scheduler to run again"))
    done.backups.append(
        Backup(
            api_version=where.api_version, kind=where.kind, name=where.name, namespace=where.namespace, path=_ANNOTATION
        )
    )


def _annotations(values: dict[str, str | None]) -> Object:
    return {"spec": {"template": {"metadata": {"annotations": values}}}}


def _is_restarted(cluster: Live, where: Target) -> bool:
    live = cluster.get(where)
    return live is not None and _at(live, _ANNOTATION) is not None


def _deployment(facts: Facts) -> Target | None:
    mounted = pool.mounted_config(facts)
    return Target("Deployment", mounted.deployment, mounted.namespace, "apps/v1") if mounted else None


def _replace(path: str, old: str | None, new: str | None) -> list[Object]:
    return [{"op": "test", "path": path, "value": old}, {"op": "replace", "path": path, "value": new}]


def _at(item: Object, path: str) -> str | None:
    """The text at a JSON pointer, None when there is none."""
    here: object = item
    for word in path.split("/")[1:]:
        here = here.get(word.replace("~1", "/").replace("~0", "~")) if isinstance(here, dict) else None
    return here if isinstance(here, str) else None


def _with_text(facts: Facts, found: pool.Text, text: str) -> Facts:
    """The facts with another text of the scheduler's configuration, for the checks of what will be."""
    assert facts.configmaps.value is not None
    data = {**(found.map.data or {}), found.key: text}
    items = tuple(
        msgspec.structs.replace(item, data=data) if item is found.map else item for item in facts.configmaps.value
    )
    return facts.with_part(Part.CONFIGMAPS, replace(facts.configmaps, value=items))
