"""From the objects that are wanted and those that live to the steps that bring them about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec

from vgpuctl.model.change import Change, How, Line, Target
from vgpuctl.model.config.kind import DEVICE
from vgpuctl.model.document import Scalar, find, read_yaml
from vgpuctl.model.install.compare import differences, dropped, together
from vgpuctl.model.install.libraries import SHA256
from vgpuctl.model.install.manifests import TEMPLATE, kept, manifests, target, wanted_hashes
from vgpuctl.model.install.options import Options
from vgpuctl.model.install.owner import Owner, owner
from vgpuctl.model.install.release import Backup
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.tasks.apply import Reversible, Step, Wait, is_ours
from vgpuctl.tasks.install.live import Live, Object, selected_pods

FORCE = "--force-conflicts"
_OWN_ANNOTATIONS = ("deprecated.daemonset.template.generation",)
"""Annotations that the API server makes anew."""


@dataclass
class Plan:
    """steps: in order. unchanged: what is right already. refusals: what is others' and stays theirs. backups: what was
    others' and is replaced. notes: for the user."""

    steps: list[Step] = field(default_factory=list)
    unchanged: list[Change] = field(default_factory=list)
    refusals: list[Problem] = field(default_factory=list)
    backups: list[Backup] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def as_installed(options: Options, plugin: Object | None) -> list[Object]:
    """The objects that these options had made, libraries without their content. plugin: its DaemonSet, which tells
    which libraries those are."""
    digests = wanted_hashes(plugin) if plugin else {}
    if not digests:
        return manifests(msgspec.structs.replace(options, shim="upstream"), {})
    return manifests(options, {}, digests=digests)


def bring_about(
    cluster: Live,
    wanted: Sequence[Object],
    live: Mapping[Target, Object | None],
    *,
    former: Iterable[Object] = (),
    force: bool = False,
) -> Plan:
    """The steps to objects. former: what was applied before, to see what it set and we do not; of two states of one
    object the first is what a failure goes back to. force: what others made by hand is replaced; what a tool keeps
    elsewhere never is."""
    plan = Plan()
    before: dict[Target, list[Object]] = {}
    for item in former:
        before.setdefault(target(item), []).append(item)
    others: dict[Owner, list[Target]] = {}
    for item in wanted:
        one = target(item)
        have = live[one]
        if have is None:
            plan.steps.append(Reversible(_apply(item, None), partial(_undone, item)))
        elif kept(item):
            plan.unchanged.append(_apply(item, have))
            if not is_ours(have) and "immutable" not in item:
                plan.notes.append(f"{one} is there already and is used as it is")
        elif (whose := owner(have)) is None:
            _ours(plan, item, have, before.get(one, []))
        elif force and not whose.elsewhere:
            _taken_over(plan, cluster, item, have)
        else:
            others.setdefault(whose, []).append(one)
    plan.refusals += _refusals(others)
    return plan


def _ours(plan: Plan, item: Object, have: Object, former: Sequence[Object]) -> None:
    left = dict.fromkeys(line for one in former for line in dropped(one, item, have))
    lines = _in_words(item, have, [*differences(item, have), *left])
    change = Change(target(item), How.APPLY, item, have, lines)
    if not lines:
        plan.unchanged.append(change)
    elif not former:
        plan.steps.append(change)
    else:
        plan.steps.append(Reversible(change, lambda: [_apply(former[0], item)]))


_LIBRARY = ("env[LIBRARIES]", "volumes[libraries]", TEMPLATE)
"""What in a path tells that a library's hash stands there."""


def _in_words(item: Object, have: Object, lines: Sequence[Line]) -> tuple[Line, ...]:
    """The lines for a person: another library by its hash alone, not by every place where that stands."""
    new, old = (wanted_hashes(one) if one["kind"] == "DaemonSet" else {} for one in (item, {**item, **have}))
    if not (new and old and new != old):
        return together(lines)
    rest = [line for line in lines if not any(part in line.path for part in _LIBRARY)]
    hashes = ((name, old.get(name), new.get(name)) for name in sorted({*new, *old}))
    libraries = [Line(f"library for {name}", _short(was), _short(now)) for name, was, now in hashes if was != now]
    return (*together(rest), *libraries)


def _short(digest: str | None) -> str | None:
    """As in the name of the library's ConfigMap."""
    return digest and digest[:10]


def _taken_over(plan: Plan, cluster: Live, item: Object, have: Object) -> None:
    """What others made goes, and ours comes in its place."""
    one = target(item)
    bare = cleaned(have)
    plan.backups.append(whole(bare))
    plan.steps += [
        Reversible(_deletion(have), lambda: [Change(one, How.CREATE, bare)]),
        *gone(cluster, have),
        Reversible(_apply(item, None), lambda: [_deletion(item), *gone(cluster, item)]),
    ]


def _refusals(others: Mapping[Owner, Sequence[Target]]) -> list[Problem]:
    """One for each owner of what is in the way."""
    found = []
    for whose, targets in others.items():
        named = ", ".join(map(str, targets))
        if whose.elsewhere:
            what = f"{named} belong{'s' if len(targets) == 1 else ''} to {whose.name}"
            why = f"vgpuctl and {whose.name} would change it back and forth"
            remedy = f"take it out there first, or change it there, in {whose.elsewhere}"
        else:
            one = len(targets) == 1
            what = f"{named} {'is' if one else 'are'} there already, and vgpuctl did not make {'it' if one else 'them'}"
            why = f"written by {whose.name}"
            remedy = f"remove what is in the way, or have it replaced with {FORCE}: it comes back at uninstall"
        found.append(Problem(what, why, remedy, Exit.FINDINGS))
    return found


def _apply(item: Object, before: Object | None) -> Change:
    return Change(target(item), How.APPLY, item, before, () if before else _worth_telling(item))


def _worth_telling(item: Object) -> tuple[Line, ...]:
    """What a person wants to know of a new object before it is made."""
    if item["kind"] == "DaemonSet":
        image = item["spec"]["template"]["spec"]["containers"][0]["image"]
        return (Line("image", None, image),)
    if digest := item["metadata"].get("annotations", {}).get(SHA256):
        return (Line("library's sha256", None, digest),)
    text = item.get("data", {}).get(DEVICE.data_key)
    section = find(read_yaml(text)[0].root, "nvidia") if text else None
    values = ((key, find(section, key)) for key in ("deviceSplitCount", "gpuMemoryFactor"))
    return tuple(Line(key, None, value.text) for key, value in values if isinstance(value, Scalar))


def _undone(item: Object) -> list[Change | Wait]:
    return [Change(target(item), How.DELETE, None, item)]


def _deletion(item: Object) -> Change:
    return Change(target(item), How.DELETE, None, item, why=f"replaced; {FORCE}")


def gone(cluster: Live, item: Object) -> list[Wait]:
    """Until an object that was deleted is there no more, nor a DaemonSet's pods, since two plugins on one node would
    take each other's socket."""
    one = target(item)
    waits = [Wait(f"{one} is gone", lambda: cluster.get(one) is None)]
    if item["kind"] == "DaemonSet":
        waits.append(Wait(f"the pods of {one.name} are gone", lambda: not selected_pods(cluster, item)))
    return waits


def cleaned(item: Mapping[str, Any]) -> Object:
    """A live object as one would write it: without what the API server adds."""
    metadata = item["metadata"]
    annotations = {
        key: value for key, value in (metadata.get("annotations") or {}).items() if key not in _OWN_ANNOTATIONS
    }
    said = {
        "name": metadata["name"],
        "namespace": metadata.get("namespace"),
        "labels": metadata.get("labels"),
        "annotations": annotations,
    }
    rest = {key: value for key, value in item.items() if key not in ("metadata", "status")}
    return {**rest, "metadata": {key: value for key, value in said.items() if value}}


def whole(item: Object) -> Backup:
    """The backup of a whole object."""
    one = target(item)
    return Backup(api_version=one.api_version, kind=one.kind, name=one.name, namespace=one.namespace, before=item)


def backed_up(backup: Backup) -> Target:
    """Which object a backup is of."""
    return Target(backup.kind, backup.name, backup.namespace, backup.api_version)


def merged(old: Iterable[Backup], new: Iterable[Backup]) -> tuple[Backup, ...]:
    """All backups. Of two of one object the older one is what was there before us; of two of one text the newer, since
    somebody wrote it after us, else there were none."""
    found: dict[tuple[Target, str], Backup] = {}
    for backup in (*old, *new):
        place = (backed_up(backup), backup.path)
        if backup.path or place not in found:
            found[place] = backup
    return tuple(found.values())
