"""`vgpuctl history`."""

from __future__ import annotations

from typing import Annotated

import typer

from vgpuctl.cli.help import new_app
from vgpuctl.cli.options import CONNECTION, OUTPUT, SOURCE, shared
from vgpuctl.cli.settings import Settings, seconds
from vgpuctl.cli.show import show
from vgpuctl.cli.sources import objects
from vgpuctl.model.history import Wanted
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.tasks.history import past

app = new_app()


@app.command()
@shared(CONNECTION, SOURCE, OUTPUT, forms=("table", "wide", "json", "yaml", "csv"))
def history(
    settings: Settings,
    last: Annotated[
        int | None, typer.Option("--last", help="Only so many, the newest", metavar="N", min=1, show_default=False)
    ] = None,
    since: Annotated[str, typer.Option("--since", help="Only the last 30m, 24h, 7d", metavar="TIME")] = "",
    who: Annotated[str, typer.Option("--who", help="Only this user's (a part of the name)", metavar="USER")] = "",
    about: Annotated[
        str, typer.Option("--object", help="Only of such objects: resourcequotas, queue/lab", metavar="KIND[/NAME]")
    ] = "",
) -> Exit | None:
    """Who changed what with vgpuctl, old → new, and the command that undoes it; the newest is the last.

    The last 500 changes are kept, in ConfigMap vgpuctl-history of kube-system. -n narrows them to objects of a
    namespace. Lines that cannot be read are shown with the reason.
    """
    kind, _, name = about.partition("/")
    if about and not kind:
        raise Problem(f"--object {about} names no kind", remedy="write quota/NAME or queue", exit_code=Exit.USAGE)
    age = seconds(since, "--since") if since else None
    source = objects(settings)
    wanted = Wanted(
        since=None if age is None else source.now() - age,
        who=who,
        kind=kind,
        name=name,
        namespace="" if settings.all_namespaces else settings.namespace,
        last=last,
    )
    show(past(source, wanted), settings)
    return None
