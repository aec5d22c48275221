"""Installs the pool's parts, or finishes an installation that was cut off."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

import vgpuctl
from vgpuctl.model import pool
from vgpuctl.model.change import Change, How, Target
from vgpuctl.model.changes import Changes
from vgpuctl.model.config.generate import ASSUMED
from vgpuctl.model.facts import Facts
from vgpuctl.model.install import libraries
from vgpuctl.model.install.compare import shown
from vgpuctl.model.install.manifests import PLUGIN, is_device, is_part, manifests, target
from vgpuctl.model.install.manifests import kept as is_kept
from vgpuctl.model.install.options import Options
from vgpuctl.model.install.release import COMMANDS, Release
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.tasks.apply import Conduct, Group, Outcome, Step
from vgpuctl.tasks.install import preflight, record, rollout, scheduler
from vgpuctl.tasks.install.live import Live, Object, check_rights, find, read
from vgpuctl.tasks.install.objects import as_installed, bring_about, merged
from vgpuctl.tasks.inventory import WANTED as INVENTORY
from vgpuctl.tasks.inventory import inventory
from vgpuctl.tasks.load import load

_GUESSED = (
    f"the nodes do not tell their cards: gpuMemoryFactor is chosen for {ASSUMED.cards} cards of "
    f"{ASSUMED.memory // 1024} GiB a node; for a finer one apply what vgpuctl config generate --gpus writes first"
)


@dataclass(frozen=True)
class Wish:
    """What is asked for. skip: checks that are left out. wait: until the plugin runs on every node."""

    options: Options
    patch_scheduler: bool = False
    skip: frozenset[str] = frozenset()
    wait: bool = True


def install(cluster: Live, kept: record.Kept | None, wish: Wish, conduct: Conduct) -> Outcome:
    """Brings the objects about, waits for the plugin, and records that it is done. Raises Problem or Missing before any
    change; what is refused by preflight or belongs to others is in the outcome, and nothing is changed then."""
    preflight.check_names(wish.skip)
    if kept:
        cut_off = record.free(kept, conduct.now())
        _fits(kept.release, wish.options)
        _say(conduct, cut_off)
    facts = load((cluster,), (*preflight.wanted_parts(wish.skip), *INVENTORY))
    wanted, notes = installed_objects(wish.options, facts)
    notes += [] if kept else _nodes(wish.options, facts)
    live = read(cluster, wanted)
    plan = bring_about(cluster, wanted, live, force=conduct.force)
    backups = kept.release.backups if kept else ()
    fresh = any(is_device(item) and live[target(item)] is None for item in wanted)
    if fresh and not inventory(facts).context.nodes:
        notes.append(_GUESSED)
    patch = scheduler.Patch(facts)
    if wish.patch_scheduler:
        patch = scheduler.patch(cluster, facts, backups, conduct.now(), fresh=fresh)
    elif fresh and (note := scheduler.needed(facts)):
        notes.append(note)
    verdict = preflight.look(cluster, patch.facts, wanted, wish.skip, patched=wish.patch_scheduler)
    problems = [*plan.refusals, *verdict.problems]
    if problems:
        return Outcome(Changes(source=cluster.name, dry_run=conduct.dry_run), problems)
    _say(conduct, *notes, *plan.notes, *patch.notes, *verdict.notes)
    steps: list[Step] = [*prune(cluster, [kept.release.options] if kept else [], wanted), *plan.steps, *patch.steps]
    done = Release(phase="installed", options=wish.options, backups=merged(backups, (*plan.backups, *patch.backups)))
    if kept:
        done = msgspec.structs.replace(done, former=kept.release.former)
    if not steps and kept and msgspec.structs.replace(kept.release, holder=None) == done:
        return record.carry_out(cluster, [Group([], plan.unchanged)], conduct, None)
    mine = record.holder(cluster, conduct, conduct.timeout * 2)  # what is refused is taken back
    begun = msgspec.structs.replace(done, phase="installing", holder=mine)
    groups = [Group([record.take(kept, begun), *steps], plan.unchanged, needed=True)]
    if wish.wait:
        whole = rollout.whole_rollout(cluster, rollout.daemonset(wish.options.namespace), "the plugin", conduct)
        groups.append(Group([*patch.waits, whole], needed=True))
    if not conduct.dry_run:
        groups.append(Group([record.write(begun, done)]))
        check_rights(cluster, [change for group in groups for change in group.changes])
    outcome = record.carry_out(cluster, groups, conduct, mine)
    if not outcome.problems and not conduct.dry_run:
        conduct.say("next: vgpuctl doctor, then vgpuctl quota set TEAM N")
    return outcome


def _say(conduct: Conduct, *lines: str) -> None:
    for line in filter(None, lines):
        conduct.say(line)


def built(options: Options) -> dict[str, bytes]:
    """The library that these options want of us. Raises Problem when this vgpuctl carries none."""
    return {} if options.shim == "upstream" else libraries.built()


def prune(cluster: Live, before: Iterable[Options], wanted: Sequence[Object]) -> list[Step]:
    """Deletes what other options had made and these do not want, if it is ours."""
    names = {target(item) for item in wanted}
    made = [item for options in before for item in as_installed(options, None)]
    old = dict.fromkeys(target(item) for item in made if target(item) not in names and not _stays(item))
    found = [(one, live) for one in old if (live := find(cluster, one)) and is_part(live)]
    return [Change(one, How.DELETE, None, live, why="no longer wanted") for one, live in found]


def _stays(item: Object) -> bool:
    """Configuration and namespace stay until the uninstall."""
    return is_kept(item) and item["kind"] != "RuntimeClass"


def _fits(release: Release, options: Options) -> None:
    """Raises Problem where another command is the one to run."""
    if release.phase in ("upgrading", "uninstalling"):
        other = COMMANDS[release.phase]
        raise Problem(
            f"an {other} is half done",
            remedy=f"finish it with vgpuctl {other}"
            + (", or go back with vgpuctl upgrade --rollback" if other == "upgrade" else ""),
            exit_code=Exit.FINDINGS,
        )
    if release.options.namespace != options.namespace:
        raise Problem(
            f"vgpuctl has installed in {release.options.namespace} already",
            remedy=f"-n {release.options.namespace}, or vgpuctl uninstall first",
            exit_code=Exit.FINDINGS,
        )
    if release.phase == "installed" and release.version != vgpuctl.__version__:
        raise Problem(
            f"version {release.version} is installed, this is {vgpuctl.__version__}",
            remedy="vgpuctl upgrade",
            exit_code=Exit.FINDINGS,
        )
    if release.phase == "installed" and (told := changed(release.options, options)):
        raise Problem(
            "vgpuctl is installed with other options",
            told,
            "vgpuctl upgrade changes them, stage by stage",
            Exit.FINDINGS,
        )


def changed(before: Options, after: Options) -> str:
    """Which options differ, as old → new."""
    old: Mapping[str, object] = msgspec.to_builtins(before)
    new: Mapping[str, object] = msgspec.to_builtins(after)
    return ", ".join(
        f"{name} {shown(old[name] or 'none')} → {shown(new[name] or 'none')}" for name in new if old[name] != new[name]
    )


def installed_objects(options: Options, facts: Facts) -> tuple[list[Object], list[str]]:
    """The objects of these options in this cluster, and notes. Raises Missing when ConfigMaps are not known."""
    known = inventory(facts)
    notes = [f"the nodes could not be read: {known.note}"] if known.note else []
    objects = manifests(options, built(options), known.context, named=known.named)
    there = pool.plugin_config(facts)
    if there is not None:
        elsewhere = there.map.metadata
        mine = [item for item in objects if is_device(item)]
        if any(target(item) != Target("ConfigMap", elsewhere.name, elsewhere.namespace) for item in mine):
            notes.append(f"{there.place} is used as it is")
            objects = [item for item in objects if not is_device(item)]
    return objects, notes


def _nodes(options: Options, facts: Facts) -> list[str]:
    """What the node selector means for this cluster."""
    nodes = facts.nodes.value or ()
    picked = [node for node in nodes if options.node_selector.items() <= (node.metadata.labels or {}).items()]
    gpus = {gpu.name for gpu in pool.gpu_nodes(facts)} if facts.nodes.known else set()
    idle = [node.metadata.name for node in picked if node.metadata.name not in gpus]
    if nodes and not picked:
        return [f"no node has the labels of --node-selector: {PLUGIN} will run nowhere"]
    if gpus and idle and not options.node_selector:
        shows = "shows" if len(idle) == 1 else "show"
        return [
            f"{rollout.some(idle)} {shows} no sign of an NVIDIA GPU, and the plugin will run there too: "
            "--node-selector nvidia.com/gpu.present=true or the like limits it"
        ]
    return []
