"""Brings an installation to this version and other options, node by node, and back.

While it lasts the plugin's pods are made anew only where this command deletes them. A stage that fails goes back to the
former template; what was upgraded before stays, and running it again goes on from there.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import msgspec

import vgpuctl
from vgpuctl.model import kube, pool
from vgpuctl.model.change import Change, How, Line, Target
from vgpuctl.model.changes import Action, Changed, Changes
from vgpuctl.model.facts import Facts
from vgpuctl.model.install import libraries
from vgpuctl.model.install.manifests import PART_OF, TEMPLATE, VERSION, wanted_hashes
from vgpuctl.model.install.manifests import kept as is_kept
from vgpuctl.model.install.options import Options
from vgpuctl.model.install.release import COMMANDS, Former, Holder, Release
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.model.quota.team import MANAGER
from vgpuctl.model.selector import selector
from vgpuctl.model.version_number import VersionNumber
from vgpuctl.tasks.apply import Conduct, Group, Outcome, Reversible, Step, Wait, change_of
from vgpuctl.tasks.install import cleaning, preflight, record, rollout
from vgpuctl.tasks.install.install import installed_objects, prune
from vgpuctl.tasks.install.live import Live, Object, check_rights, read
from vgpuctl.tasks.install.objects import Plan, as_installed, bring_about, cleaned, merged
from vgpuctl.tasks.inventory import WANTED as INVENTORY
from vgpuctl.tasks.load import load

_FIXED = {"namespace": "the installation lives there", "hook_path": "running pods have it mounted"}
"""Options that stay, and why."""


@dataclass(frozen=True)
class Wish:
    """What is asked for. options: as they are to be. back: to the former release instead. nodes: names or a label
    selector of the only nodes to upgrade now, "" for all. skip: checks that are left out."""

    options: Options
    back: bool = False
    nodes: str = ""
    skip: frozenset[str] = frozenset()


@dataclass
class _Aim:
    """The release to arrive at, and its objects."""

    release: Release
    objects: list[Object]

    @property
    def plugin(self) -> Object:
        return next(item for item in self.objects if item["kind"] == "DaemonSet")


@dataclass(frozen=True)
class _Nodes:
    """The nodes that run the plugin. now: to be served in this run, each with the pod that is to be made anew; later:
    those that are left for another run. count: all of them. down: not ready, so left to the DaemonSet's controller."""

    now: list[tuple[str, Object]]
    later: list[str]
    count: int
    down: list[str]


def upgrade(cluster: Live, kept: record.Kept, wish: Wish, conduct: Conduct) -> Outcome:
    """Raises Problem or Missing before any change; what is refused by preflight or belongs to others is in the outcome,
    and nothing is changed then."""
    preflight.check_names(wish.skip)
    cut_off = record.free(kept, conduct.now())
    _fits(kept.release, wish)
    if cut_off:
        conduct.say(cut_off)
    facts = load((cluster,), (*preflight.wanted_parts(wish.skip), *INVENTORY))
    way = _way(cluster, kept.release, facts, wish, conduct)
    problems = list(way.plan.refusals)
    if not wish.back:
        verdict = preflight.look(cluster, facts, way.aim.objects, wish.skip, only=preflight.UPGRADE)
        problems += verdict.problems
        way.plan.notes += verdict.notes
    if problems:
        return Outcome(Changes(source=cluster.name, dry_run=conduct.dry_run), problems)
    if way.is_done(kept.release):
        return record.carry_out(cluster, [Group([], way.plan.unchanged)], conduct, None)
    batches = way.batches()
    waits = 1 + len(batches) + sum(isinstance(step, Wait) for step in way.out.steps)
    mine = record.holder(cluster, conduct, conduct.timeout * waits)
    groups = _groups(cluster, kept, way, batches, mine, conduct)
    if not conduct.dry_run:
        check_rights(cluster, [change for group in groups for change in group.changes])
    for line in way.plan.notes:
        conduct.say(line)
    outcome = record.carry_out(cluster, groups, conduct, mine)
    if not conduct.dry_run and (outcome.problems or way.nodes.later):
        with suppress(Problem):  # the API server may be the trouble
            _tell_how_far(cluster, way, outcome, conduct)
    return outcome


@dataclass(frozen=True)
class _Out:
    """Nodes that are not the plugin's any more, and the steps that clean them."""

    nodes: list[str]
    steps: list[Step]


@dataclass
class _Way:
    """From what runs to what is aimed at. running: the plugin's DaemonSet as it is. former: what a stage that fails
    goes back to, None when no plugin runs. goal: the release that `--rollback` goes back to, as the record keeps it.
    pruned: the deletion of what is no longer wanted. out: nodes that fall out, and the steps that clean them. back:
    this is the way back."""

    here: Target
    running: Object | None
    former: Former | None
    goal: Former | None
    aim: _Aim
    plan: Plan
    nodes: _Nodes
    pruned: list[Step]
    out: _Out
    back: bool

    def is_done(self, release: Release) -> bool:
        nothing = not (self.plan.steps or self.nodes.now or self.pruned)
        return nothing and msgspec.structs.replace(release, holder=None) == self.aim.release

    def batches(self) -> list[list[tuple[str, Object]]]:
        """The nodes of this run, as many at a time as may be without the plugin."""
        size = _size(self.aim.release.options.max_unavailable, self.nodes.count)
        now = self.nodes.now if self.former else []
        return [now[start : start + size] for start in range(0, len(now), size)]


def _way(cluster: Live, release: Release, facts: Facts, wish: Wish, conduct: Conduct) -> _Way:
    here = rollout.daemonset(release.options.namespace)
    running = cluster.get(here)
    former = release.former if release.phase == "upgrading" else None
    if former is None and running is not None:
        former = Former(version=release.version, options=release.options, plugin=cleaned(running))
    aim = _former(cluster, release) if wish.back else _newest(release, wish.options, facts, former, conduct)
    before = as_installed(former.options, former.plugin) if former else []
    if release.phase == "upgrading":  # which may have come any way towards these
        before += as_installed(release.options, running)
    plan = bring_about(cluster, aim.objects, read(cluster, aim.objects), former=before, force=conduct.force)
    aim.release = msgspec.structs.replace(aim.release, backups=merged(release.backups, plan.backups))
    options = [release.options, *([former.options] if former else [])]
    out = _out(cluster, facts, options, aim.release.options, conduct)
    return _Way(
        here=here,
        running=running,
        former=former,
        goal=release.former if wish.back else former,
        aim=aim,
        plan=plan,
        nodes=_nodes(cluster, facts, wish.nodes, here.namespace, _template(aim.plugin), out.nodes),
        pruned=prune(cluster, options, aim.objects),
        out=out,
        back=wish.back,
    )


def _out(cluster: Live, facts: Facts, before: Sequence[Options], after: Options, conduct: Conduct) -> _Out:
    """The nodes that a narrower selector leaves out. Raises Problem while vGPU pods run there, Missing when nodes or
    pods are not known."""
    names = [
        node.metadata.name
        for node in facts.nodes.need()
        if any(cleaning.is_for(one, node) for one in before) and not cleaning.is_for(after, node) and pool.is_up(node)
    ]
    if not names:
        return _Out([], [])
    used = sorted({pod.spec.node_name for pod in pool.vgpu_pods(facts)} & set(names))
    if used:
        what = f"vGPU pods run on nodes that would fall out: {rollout.some(used)}"
        raise Problem(what, "nothing was changed", "end them first, or choose a wider --node-selector", Exit.FINDINGS)
    gone = f"the plugin has left {rollout.some(names)}"
    steps: list[Step] = [Wait(gone, lambda: not rollout.pods_on(cluster, after.namespace, names))]
    steps += cleaning.steps(cluster, after, facts, conduct, nodes=names)
    steps = [replace(step, timeout=conduct.timeout) if isinstance(step, Wait) else step for step in steps]
    return _Out(names, [*steps, *cleaning.registered(names)])


def _groups(
    cluster: Live,
    kept: record.Kept,
    way: _Way,
    batches: Sequence[Sequence[tuple[str, Object]]],
    mine: Holder,
    conduct: Conduct,
) -> list[Group]:
    """The objects, the nodes stage by stage, and the end, where no node is left for another run."""
    aim, former = way.aim, way.former
    # on the way back it still says what is to be gone from, should the command be cut off
    told = kept.release if way.back else aim.release
    begun = msgspec.structs.replace(told, phase="upgrading", backups=aim.release.backups, former=way.goal, holder=mine)
    steps = _held(way, former) if batches and former else way.plan.steps
    about = _about(way.nodes, batches)
    groups = [Group([record.take(kept, begun), *steps], way.plan.unchanged, about, needed=True)]
    for number, batch in enumerate(batches, 1):
        title = f"stage {number} of {len(batches)}: " if len(batches) > 1 else ""
        assert former is not None
        groups.append(_stage(cluster, title, batch, aim, former, conduct))
    if not way.nodes.later:
        groups.append(_end(cluster, way, conduct))
        if not conduct.dry_run:
            groups.append(Group([record.write(begun, aim.release)]))
    return groups


def _tell_how_far(cluster: Live, way: _Way, outcome: Outcome, conduct: Conduct) -> None:
    """Says how many nodes are done and how to go on; the DaemonSet's row too, where a stage failed after its change."""
    pods = rollout.pods_of(cluster, way.here.namespace)
    done = sum(rollout.template_of(pod) == _template(way.aim.plugin) for pod in pods)
    where = f"{done} of {way.nodes.count} nodes run what was asked for"
    if _under_way(cluster):
        on = "vgpuctl upgrade --rollback" if way.back else "vgpuctl upgrade; go back: vgpuctl upgrade --rollback"
        conduct.say(f"{where}; go on: {on}")
    if outcome.problems:
        _correct(outcome.changes.changes, way.here, outcome.problems[0], where)


def _under_way(cluster: Live) -> bool:
    """The record says so; an upgrade whose first steps were refused and taken back has left no trace."""
    kept = record.read(cluster)
    return kept is not None and kept.release.phase == "upgrading"


def _fits(release: Release, wish: Wish) -> None:
    """Raises Problem where another command, or another vgpuctl, is the one to run."""
    if release.phase in ("installing", "uninstalling"):
        doing = COMMANDS[release.phase]
        raise Problem(f"an {doing} is half done", remedy=f"finish it with vgpuctl {doing}", exit_code=Exit.FINDINGS)
    if not wish.back and VersionNumber(release.version) > VersionNumber(vgpuctl.__version__):
        raise Problem(
            f"version {release.version} is installed, and this vgpuctl is older: {vgpuctl.__version__}",
            remedy="use that version or a newer one; vgpuctl upgrade --rollback goes back to the former release",
            exit_code=Exit.FINDINGS,
        )
    for name, why in _FIXED.items():
        old, new = getattr(release.options, name), getattr(wish.options, name)
        if old != new:
            what = f"an upgrade cannot change the {name.replace('_', ' ')} ({old} → {new})"
            raise Problem(what, why, "vgpuctl uninstall, then vgpuctl install", Exit.FINDINGS)


def _newest(release: Release, options: Options, facts: Facts, former: Former | None, conduct: Conduct) -> _Aim:
    """This version with these options. Where that is what is installed, the former release stays what it was."""
    objects, notes = installed_objects(options, facts)
    for line in notes:
        conduct.say(line)
    same = release.phase == "installed" and (release.version, release.options) == (vgpuctl.__version__, options)
    kept = release.former if same else former
    return _Aim(Release(phase="installed", options=options, backups=release.backups, former=kept), objects)


def _former(cluster: Live, release: Release) -> _Aim:
    """The release before this one, its plugin exactly as it was."""
    former = release.former
    if former is None:
        raise Problem(
            "there is no former release to go back to",
            "it is kept from one upgrade to the next",
            "vgpuctl upgrade with the options that you want",
            Exit.FINDINGS,
        )
    digests = wanted_hashes(former.plugin)
    for name in _library_names(digests):
        place = Target("ConfigMap", name, former.options.namespace)
        if cluster.get(place) is None:
            what = f"the former release's library is gone: there is no {place}"
            raise Problem(what, remedy="vgpuctl upgrade, by the vgpuctl of that version", exit_code=Exit.FINDINGS)
    others = [
        item
        for item in as_installed(former.options, former.plugin)
        if item["kind"] != "DaemonSet" and not (item["kind"] == "ConfigMap" and is_kept(item))
    ]
    for item in others:
        if VERSION in item["metadata"]["labels"]:
            item["metadata"]["labels"][VERSION] = former.version
    aim = Release(phase="installed", version=former.version, options=former.options, backups=release.backups)
    return _Aim(aim, [*others, former.plugin])


def _nodes(cluster: Live, facts: Facts, chosen: str, namespace: str, template: str, out: Collection[str]) -> _Nodes:
    """out: nodes that are left out. Raises Problem (wrong use) for a choice that is no node of the plugin, Missing when
    nodes are not known."""
    known = {node.metadata.name: node for node in facts.nodes.need() if node.metadata.name not in out}
    pods = {
        rollout.node_of(pod): pod
        for pod in rollout.pods_of(cluster, namespace)
        if rollout.node_of(pod) in known and not pod["metadata"].get("deletionTimestamp")
    }
    wanted = _chosen(chosen, {name: known[name] for name in pods}) if chosen else set(pods)
    old = sorted(name for name, pod in pods.items() if rollout.template_of(pod) != template)
    down = [name for name in old if not pool.is_up(known[name])]
    up = [name for name in old if name not in down]
    return _Nodes(
        [(name, pods[name]) for name in up if name in wanted],
        [name for name in up if name not in wanted],
        len(pods),
        down,
    )


_NODES_REMEDY = "write names with commas between them, or a label selector"


def _chosen(text: str, nodes: dict[str, kube.Node]) -> set[str]:
    names = {name.strip() for name in text.split(",")}
    if names <= set(nodes):
        return names
    try:
        labels = selector(text)
    except ValueError as error:
        raise Problem(f"--nodes {text} is not understood", str(error), _NODES_REMEDY, Exit.USAGE) from None
    found = {name for name, node in nodes.items() if labels.matches(node.metadata.labels or {})}
    if not found:
        strange = sorted(names - set(nodes))
        where = f"does not run on {', '.join(strange)}" if len(strange) < len(names) else "runs on no such node"
        what = f"--nodes {text}: the plugin {where}"
        raise Problem(what, f"it runs on {rollout.some(nodes)}", _NODES_REMEDY, Exit.USAGE)
    return found


def _size(max_unavailable: str, count: int) -> int:
    """How many nodes are served at once; a percentage is rounded up, as for a DaemonSet."""
    if max_unavailable.endswith("%"):
        return max(1, math.ceil(count * int(max_unavailable[:-1]) / 100))
    return int(max_unavailable)


def _held(way: _Way, former: Former) -> list[Step]:
    """The steps to the objects, but no pod is made anew by the change of the DaemonSet."""
    here, nodes = way.here, way.nodes
    steps = way.plan.steps
    rest = [step for step in steps if (change := change_of(step)) is None or change.target != here]
    told = next((change.lines for step in steps if (change := change_of(step)) and change.target == here), ())
    before = nodes.count - len(nodes.now) - len(nodes.later) - len(nodes.down)
    after = before + len(nodes.now)
    lines = [Line("nodes up to date", f"{before} of {nodes.count}", f"{after} of {nodes.count}")]
    lines += [line for line in told if not line.path.startswith("spec.updateStrategy") and TEMPLATE not in line.path]
    undo = "" if way.back else "vgpuctl upgrade --rollback"
    held = Change(here, How.APPLY, _on_delete(way.aim.plugin), way.running, tuple(lines), undo=undo)
    return [*rest, Reversible(held, lambda: [Change(here, How.APPLY, former.plugin, way.aim.plugin)])]


def _on_delete(plugin: Object) -> Object:
    """A DaemonSet whose pods are made anew only when they are deleted."""
    held = copy.deepcopy(plugin)
    held["spec"]["updateStrategy"] = {"type": "OnDelete"}
    return held


def _stage(
    cluster: Live, title: str, batch: Sequence[tuple[str, Object]], aim: _Aim, former: Former, conduct: Conduct
) -> Group:
    """Makes the pods of some nodes anew; if they do not come up, they go back to the former template."""
    names = {name for name, _ in batch}
    namespace = aim.plugin["metadata"]["namespace"]
    settle = float(aim.plugin["spec"].get("minReadySeconds", 0))

    def back() -> list[Change | Wait]:
        old = _template(former.plugin)
        pods = [pod for pod in rollout.pods_on(cluster, namespace, names) if rollout.template_of(pod) != old]
        template = Change(rollout.daemonset(namespace), How.APPLY, _on_delete(former.plugin), aim.plugin, routine=True)
        return [template, *map(_anew, pods), rollout.stage(cluster, namespace, names, old, settle, conduct)]

    first, *rest = [_anew(pod) for _, pod in batch]
    wait = rollout.stage(cluster, namespace, names, _template(aim.plugin), settle, conduct, title)
    return Group([Reversible(first, back), *rest, wait], needed=True)


def _anew(pod: Object) -> Change:
    return Change(
        Target("Pod", pod["metadata"]["name"], pod["metadata"]["namespace"]), How.DELETE, None, pod, routine=True
    )


def _end(cluster: Live, way: _Way, conduct: Conduct) -> Group:
    """Gives the pods back to the DaemonSet's controller, and takes away what nobody uses any more."""
    end: Step = Change(way.here, How.APPLY, way.aim.plugin, way.aim.plugin, routine=True)
    if way.running is None:
        end = rollout.whole_rollout(cluster, way.here, "the plugin", conduct)
    out = way.out
    removed = f"the library's files and what was registered are removed from {rollout.some(out.nodes)}"
    steps = [end, *way.pruned, *_unused(cluster, way.aim), *out.steps]
    return Group(steps, about=removed if out.nodes else "", needed=True)


def _unused(cluster: Live, aim: _Aim) -> list[Step]:
    """Deletes the libraries that neither this release nor the one before it places."""
    plugins = [aim.plugin, *([aim.release.former.plugin] if aim.release.former else [])]
    used = {name for plugin in plugins for name in _library_names(wanted_hashes(plugin))}
    space = str(aim.plugin["metadata"]["namespace"])
    found = cluster.objects("ConfigMap", namespace=space, query={"labelSelector": f"{PART_OF}={MANAGER}"})
    return [
        Change(Target("ConfigMap", item["metadata"]["name"], space), How.DELETE, None, item, routine=True)
        for item in found
        if libraries.SHA256 in (item["metadata"].get("annotations") or {}) and item["metadata"]["name"] not in used
    ]


def _library_names(digests: dict[str, str]) -> list[str]:
    return [libraries.name(architecture, digest) for architecture, digest in digests.items()]


def _template(plugin: Object) -> str:
    return str((plugin["spec"]["template"]["metadata"].get("annotations") or {}).get(TEMPLATE, ""))


def _about(nodes: _Nodes, batches: Sequence[Sequence[tuple[str, Object]]]) -> str:
    """What happens to the nodes, for the preview."""
    parts = []
    if batches:
        names = rollout.some([name for name, _ in nodes.now])
        stages = f" in {len(batches)} stages of {len(batches[0])}" if len(batches) > 1 else ""
        parts.append(f"the plugin starts anew on {names}{stages}; pods that run keep their library")
    if nodes.later:
        parts.append(f"left for later: {rollout.some(nodes.later)}")
    if nodes.down:
        parts.append(f"not ready, and served when they are: {rollout.some(nodes.down)}")
    return "; ".join(parts)


def _correct(rows: list[Changed], here: Target, problem: Problem, where: str) -> None:
    """The DaemonSet's row says how far it came, where its own change was made and a stage failed later."""
    for index, row in enumerate(rows):
        if (row.object_kind, row.name) == (here.kind, here.name) and row.action is Action.CONFIGURED:
            error = f"{where}: {'; '.join(filter(None, (problem.what, problem.why)))}"
            rows[index] = msgspec.structs.replace(row, action=Action.FAILED, error=error)
