"""`vgpuctl uninstall`."""

from __future__ import annotations

from typing import Annotated

import typer

from vgpuctl.cli.conduct import FORMS, DryRun, Yes, conduct, finish
from vgpuctl.cli.help import new_app
from vgpuctl.cli.install import whole_cluster
from vgpuctl.cli.options import CONNECTION, OUTPUT, shared
from vgpuctl.cli.settings import Settings
from vgpuctl.model.problem import Exit

app = new_app()


@app.command()
@shared(CONNECTION, OUTPUT, forms=FORMS)
def uninstall(
    settings: Settings,
    force: Annotated[
        bool, typer.Option("--force", help="Although vGPU pods run, and without nodes that cannot be cleaned")
    ] = False,
    everything: Annotated[bool, typer.Option("--all", help="Quotas, queues, team labels and the history too")] = False,
    dry_run: DryRun = None,
    yes: Yes = False,
    timeout: Annotated[str, typer.Option("--timeout", help="How long to wait for the nodes", metavar="TIME")] = "5m",
) -> Exit | None:
    """Take out what vgpuctl installed, its files on the nodes included, and put back what was there before.

    Quotas, queues and the history stay unless --all is given. Cut off at any point, it is finished by running it again.
    """
    from vgpuctl.tasks.install.uninstall import Wish
    from vgpuctl.tasks.install.uninstall import uninstall as task

    cluster = whole_cluster(settings)
    wish = Wish(force, everything, settings.namespace)
    return finish(task(cluster, wish, conduct(dry_run, yes, timeout, False)), settings)
