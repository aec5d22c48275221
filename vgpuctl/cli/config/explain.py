"""`vgpuctl config explain` and `diff`: what a configuration says, and how two differ."""

from __future__ import annotations

from typing import Annotated

import typer

from vgpuctl.cli.config.base import KindName, app
from vgpuctl.cli.lint import Files, read_files
from vgpuctl.cli.options import CONNECTION, OUTPUT, SOURCE, shared
from vgpuctl.cli.settings import Settings
from vgpuctl.cli.show import show
from vgpuctl.model.problem import Exit

WhichKind = Annotated[KindName | None, typer.Option("--kind", help="What a file is, if it does not tell by itself")]


@app.command("explain")
@shared(CONNECTION, SOURCE, OUTPUT, forms=("table", "wide", "json", "yaml", "csv"))
def explain_command(
    settings: Settings,
    files: Annotated[
        list[str] | None, typer.Argument(help="Files, else what the pool runs on; - is the standard input")
    ] = None,
    node: Annotated[str, typer.Option(help="Only this node", metavar="NODE")] = "",
) -> Exit | None:
    """Show for each key the value in force on each node, what states it, who acts by it, and what it means.

    Without a file it is what the pool runs on, flags and variables of the plugin's DaemonSet included. Nodes with the
    same answers stand together.
    """
    from vgpuctl.cli.sources import pool
    from vgpuctl.tasks.config import explain as task
    from vgpuctl.tasks.load import load

    if files:
        show(task.explain_texts(read_files(files), node), settings)
    else:
        show(task.explain_live(load(pool(settings), task.PARTS), node), settings)
    return None


@app.command("diff")
@shared(CONNECTION, SOURCE, OUTPUT, forms=("table", "wide", "json", "yaml", "csv", "name"))
def diff_command(settings: Settings, files: Files = None, kind: WhichKind = None) -> Exit | None:
    """Compare configuration files with those of the cluster by what they mean; exit 1 when they differ.

    Comments, order and layout do not count, nor values that say what is so anyway.
    """
    from vgpuctl.cli.lint import nothing_named
    from vgpuctl.cli.sources import pool
    from vgpuctl.model.config.kind import KINDS
    from vgpuctl.tasks.config import diff as task
    from vgpuctl.tasks.load import load

    if not files:
        raise nothing_named("config diff", live=False)
    texts = read_files(files)
    result = task.diff(texts, load(pool(settings), task.PARTS), KINDS[kind.value] if kind else None)
    show(result, settings)
    return Exit.FINDINGS if result.differs else None
