"""`vgpuctl upgrade`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from vgpuctl.cli.conduct import FORMS, DryRun, Force, Yes, conduct, finish
from vgpuctl.cli.help import new_app
from vgpuctl.cli.install import Skip, find_monitoring, whole_cluster
from vgpuctl.cli.options import CONNECTION, OUTPUT, shared
from vgpuctl.cli.plugin import chosen, plugin_options
from vgpuctl.cli.settings import Settings
from vgpuctl.model.problem import Exit, Problem

app = new_app()


@app.command()
@shared(CONNECTION, OUTPUT, forms=FORMS)
@plugin_options
def upgrade(
    settings: Settings,
    given: dict[str, Any],
    nodes: Annotated[
        str | None,
        typer.Option(help="Only these nodes now, as a canary; the next upgrade goes on", metavar="NAMES|LABELS"),
    ] = None,
    rollback: Annotated[bool, typer.Option("--rollback", help="Go back to the release before this one")] = False,
    skip: Skip = None,
    dry_run: DryRun = None,
    yes: Yes = False,
    timeout: Annotated[str, typer.Option("--timeout", help="How long a stage may take", metavar="TIME")] = "5m",
    force_conflicts: Force = False,
) -> Exit | None:
    """Bring the installation to this version, and to the options given; what is not named stays as it is.

    A dash takes away what was given before (--runtime-class -).

    Node by node, as many at a time as --max-unavailable says. It stops at the first node where the plugin does not come
    up, and takes that stage back; running it again goes on. Pods that run keep the library that they started with.
    """
    from vgpuctl.tasks.install.record import need
    from vgpuctl.tasks.install.upgrade import Wish
    from vgpuctl.tasks.install.upgrade import upgrade as task

    if rollback and given:
        raise Problem("--rollback takes the former options", remedy="leave the others out", exit_code=Exit.USAGE)
    if nodes is not None and not nodes.strip():
        raise Problem("--nodes is empty", remedy="write names, or leave it out for all nodes", exit_code=Exit.USAGE)
    if settings.namespace:
        given["namespace"] = settings.namespace
    cluster = whole_cluster(settings)
    kept = need(cluster)
    find_monitoring(cluster, given)
    wish = Wish(chosen(kept.release.options, given), rollback, nodes or "", frozenset(skip or ()))
    return finish(task(cluster, kept, wish, conduct(dry_run, yes, timeout, force_conflicts)), settings)
