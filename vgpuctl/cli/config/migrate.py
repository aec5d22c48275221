"""`vgpuctl config migrate`: another memory factor, the same MiB."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from vgpuctl.cli.conduct import DryRun, Timeout, Yes, conduct, finish
from vgpuctl.cli.config.base import app
from vgpuctl.cli.options import CONNECTION, OUTPUT, shared
from vgpuctl.cli.settings import Settings
from vgpuctl.cli.show import note, show
from vgpuctl.model.problem import Exit, Problem

if TYPE_CHECKING:
    from vgpuctl.model.facts import Facts
    from vgpuctl.tasks.apply import Conduct

FORMS = ("table", "wide", "json", "yaml", "csv", "name")


@app.command("migrate")
@shared(CONNECTION, OUTPUT, forms=FORMS)
def migrate_command(
    settings: Settings,
    factor: Annotated[int, typer.Option("--factor", help="The new gpuMemoryFactor", metavar="N", min=1)],
    paths: Annotated[
        list[str] | None, typer.Argument(help="Manifests, or directories of them", metavar="[DIR|FILE]...")
    ] = None,
    from_factor: Annotated[
        int | None,
        typer.Option("--from-factor", help="The factor that they are written for", metavar="N", min=1),
    ] = None,
    in_place: Annotated[bool, typer.Option("--in-place", help="Rewrite the files, all or none")] = False,
    to: Annotated[str, typer.Option("--to", help="Write all manifests into this directory", metavar="DIR")] = "",
    dry_run: DryRun = None,
    yes: Yes = False,
    timeout: Timeout = "30s",
) -> Exit | None:
    """Rewrite amounts of vGPU memory for another factor, so that their MiB stay the same.

    With files: requests in templates, quotas, queues and the device config itself; only digits change, and nothing is
    written without --in-place or --to. Without files: quotas and queues of the cluster.
    """
    how = conduct(dry_run, yes, timeout, False)
    if in_place and to:
        raise Problem("--in-place and --to name two places", exit_code=Exit.USAGE)
    if not paths:
        return _caps(settings, factor, from_factor, how)
    from vgpuctl.sources import manifests
    from vgpuctl.tasks.config import migrate as task

    collected = manifests.collect(paths)
    done = manifests.finish(collected.folder)
    if done:
        note(f"a run that was broken off is finished now: {len(done)} files of {collected.folder} were put in place")
        collected = manifests.collect(paths)
    stated = task.stated_factor(collected, from_factor)
    facts = None if stated else _facts(settings)
    result, changes = task.migrate(collected, stated or task.live_factor(facts, factor), factor, facts)
    if to:
        changes = task.elsewhere(collected, changes, to)
    if (in_place or to) and changes and not how.dry_run:
        outcome = task.write(changes, how)
        if outcome.problems:
            return finish(outcome, settings)
        result = task.written(result)
    show(result, settings)
    return Exit.FINDINGS if result.left else None


def _caps(settings: Settings, factor: int, from_factor: int | None, how: Conduct) -> Exit:
    from vgpuctl.cli.sources import need_cluster
    from vgpuctl.tasks.config import migrate as task
    from vgpuctl.tasks.load import load

    cluster = need_cluster(replace(settings, namespace="", all_namespaces=False))
    facts = load((cluster,), task.PARTS)
    shown = replace(settings, output="table" if settings.output == "csv" else settings.output)
    return finish(task.bring_over_caps(cluster, facts, from_factor, factor, how), shown)


def _facts(settings: Settings) -> Facts | None:
    """What the cluster says of the factor, if there is one."""
    from vgpuctl.cli.sources import find_cluster
    from vgpuctl.tasks.config.migrate import PARTS
    from vgpuctl.tasks.load import load

    cluster = find_cluster(settings)
    return load((cluster,), PARTS) if cluster else None
