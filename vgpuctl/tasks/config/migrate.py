"""Brings manifests, quotas and queues over to another memory factor so that their MiB stay the same."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from vgpuctl.model import pool
from vgpuctl.model.change import Change, Files, How, Target
from vgpuctl.model.facts import Facts, Part
from vgpuctl.model.migrate.outputs import Migration
from vgpuctl.model.migrate.text import Left, factors, rewrite
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.model.resource import ResourceNames
from vgpuctl.sources.commands import MachineWriter
from vgpuctl.sources.manifests import Collected, ManifestFile
from vgpuctl.tasks.apply import Conduct, Group, Outcome, apply
from vgpuctl.tasks.config.apply import Cluster
from vgpuctl.tasks.config.factor import caps, converted

PARTS = (Part.CONFIGMAPS,)
_NAME = re.compile(rb"resourceMemoryName:[ \t]*[\"']?([\w./-]+)")


def stated_factor(collected: Collected, option: int | None) -> int | None:
    """MiB per unit that files are written for, as their own device config or the user says; None when neither does.
    Raises Problem when they contradict each other."""
    found: dict[int, str] = {}
    for one in collected.files:
        text = _text(one)
        for factor in factors(text, one.path) if one.manifest and text is not None else ():
            found.setdefault(factor, one.path)
    if len(found) > 1:
        told = ", ".join(f"{factor} in {path}" for factor, path in found.items())
        raise Problem("the files state several factors", told, "migrate what belongs together", Exit.FINDINGS)
    own = next(iter(found), None)
    if own is not None and option is not None and own != option:
        raise Problem(
            f"--from-factor {option}, but {found[own]} says {own}",
            "were these files migrated already?",
            "leave the option out, or leave that file out",
            Exit.FINDINGS,
        )
    return own or option


def live_factor(facts: Facts | None, wanted: int) -> int:
    """MiB per unit in the cluster, for files that do not tell. Raises Problem when it does not tell either."""
    there = pool.memory_factor(facts) if facts else None
    if there is None:
        raise Problem(
            "it is not known which factor these files are written for",
            "no device config is among them, and no cluster tells one",
            "give --from-factor N",
            Exit.USAGE,
        )
    if there == wanted:
        raise Problem(
            f"the cluster has gpuMemoryFactor {wanted} already, and no device config is among the files",
            "a file does not tell for which factor it is written",
            "if they are written for another one, give --from-factor N",
            Exit.FINDINGS,
        )
    return there


def migrate(collected: Collected, old: int, new: int, facts: Facts | None = None) -> tuple[Migration, list[Change]]:
    """What becomes of files, and the Change that writes them in place (none when nothing changes)."""
    memory = _memory_name(collected) or (pool.resource_names(facts) if facts else ResourceNames()).memory
    already = [f"the files are written for gpuMemoryFactor {new} already"] if old == new else []
    result = Migration(before=old, after=new, notes=already)
    texts = []
    diff: list[str] = []
    for one in collected.files if old != new else ():
        text = _text(one)
        if not one.manifest or text is None:
            result.left.extend(_unfit(one, memory, text))
            continue
        rewriting = rewrite(text, one.path, old, new, memory)
        result.places.extend(rewriting.places)
        result.left.extend(rewriting.left)
        if rewriting.text != text:
            result.files.append(one.path)
            diff += _diff(one.path, text, rewriting.text)
            texts.append((_below(one.path, collected.folder), one.data, rewriting.text.encode()))
    result.left.extend(Left(file=path, why=f"it cannot be read: {why}") for path, why in collected.unread.items())
    result.steps.extend(_steps(old, new) if texts else ())
    change = Change(Target("Host", collected.folder), How.FILES, Files(tuple(texts)), routine=True)
    return msgspec.structs.replace(result, diff="".join(diff)), [change] if texts else []


def elsewhere(collected: Collected, changes: Sequence[Change], folder: str) -> list[Change]:
    """The same, written into another directory: every manifest, changed or not."""
    new = {name: after for change in changes for name, _, after in change.after.texts}
    texts = [
        (name, None, new.get(name, one.data))
        for one in collected.files
        if one.manifest
        for name in (_below(one.path, collected.folder),)
    ]
    return [Change(Target("Host", folder), How.FILES, Files(tuple(texts)), routine=True)] if texts else []


def write(changes: Sequence[Change], conduct: Conduct) -> Outcome:
    """Writes the files."""
    return apply(MachineWriter(), [Group(changes)], conduct)


def written(result: Migration) -> Migration:
    return msgspec.structs.replace(result, written=True)


def bring_over_caps(cluster: Cluster, facts: Facts, stated: int | None, new: int, conduct: Conduct) -> Outcome:
    """Quotas, limit ranges and queues of a cluster. Raises Problem, Missing."""
    there = pool.memory_factor(facts)
    if there is None and stated is None:
        facts.configmaps.need()
        raise Problem("the cluster's gpuMemoryFactor is not known", remedy="give --from-factor N", exit_code=Exit.USAGE)
    if stated is None and there == new:
        raise Problem(
            f"the cluster has gpuMemoryFactor {new} already",
            "caps do not tell for which factor they are written, unless vgpuctl marked them",
            "if they are written for another one, give --from-factor N",
            Exit.FINDINGS,
        )
    old = stated or there
    assert old is not None
    changes = converted(caps(cluster), pool.resource_names(facts), old, new)
    outcome = apply(cluster, [Group([change]) for change in changes], conduct, cluster.name)
    outcome.changes.notes.extend(f"next: {step}" for step in _steps(old, new)[1:] if there != new)
    return outcome


def _steps(old: int, new: int) -> list[str]:
    return [
        "drain: cordon the GPU nodes, suspend jobs, let vGPU pods end; one that runs on is counted in the new units",
        f"config, quotas and queues: vgpuctl config apply FILE --migrate, with gpuMemoryFactor: {new}; if the factor "
        f"came in another way, quotas and queues by vgpuctl config migrate --factor {new} --from-factor {old}",
        "pods: kubectl apply the rewritten manifests, then uncordon the nodes",
        "vgpuctl doctor",
    ]


def _diff(path: str, before: str, after: str) -> Iterator[str]:
    """As a patch, which keeps line ends as they are."""
    rows, others = (re.findall(r"[^\n]*\n|[^\n]+", text) for text in (before, after))
    for row in difflib.unified_diff(rows, others, path, path, n=0):
        yield row if row.endswith("\n") else f"{row}\n\\ No newline at end of file\n"


def _memory_name(collected: Collected) -> str:
    """As a device config among the files names the memory resource; "" when none does."""
    for one in collected.files:
        found = _NAME.search(one.data) if one.manifest else None
        if found:
            return found[1].decode()
    return ""


def _text(one: ManifestFile) -> str | None:
    try:
        return one.data.decode()
    except UnicodeDecodeError:
        return None


def _unfit(one: ManifestFile, memory: str, text: str | None) -> Iterable[Left]:
    """A file that is not rewritten; told if it speaks of vGPU memory."""
    if memory.encode() in one.data:
        line = one.data[: one.data.index(memory.encode())].count(b"\n") + 1
        yield Left(file=one.path, line=line, why="it is not UTF-8" if text is None else "it is no YAML or JSON file")


def _below(path: str, folder: str) -> str:
    return os.path.relpath(Path(path).absolute(), folder)
