"""`vgpuctl top`."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from typing import Annotated

import typer

from vgpuctl.cli.help import new_app
from vgpuctl.cli.options import CONNECTION, OUTPUT, SOURCE, shared
from vgpuctl.cli.settings import Settings
from vgpuctl.cli.show import here, note, show, write
from vgpuctl.cli.sources import labels, sources
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.model.reading import Missing
from vgpuctl.model.usage.arrange import GROUPS, arrange
from vgpuctl.model.usage.order import SORTS, sort_keys
from vgpuctl.render.json import line
from vgpuctl.tasks.load import watched
from vgpuctl.tasks.top import Picture, Wanted, read

app = new_app()

_SHORTEST = 0.25


@app.command()
@shared(CONNECTION, SOURCE, OUTPUT, forms=("table", "wide", "json", "yaml", "csv", "name"))
def top(
    settings: Settings,
    once: Annotated[bool, typer.Option("--once", help="One shot instead of the live screen")] = False,
    interval: Annotated[float, typer.Option("--interval", help="Seconds between readings", metavar="SECONDS")] = 2.0,
    group: Annotated[str, typer.Option("--group", help=f"Rows: {', '.join(GROUPS)}", metavar="BY")] = "node",
    sort: Annotated[
        str, typer.Option("--sort", help=f"Keys, - reverses: {', '.join(SORTS)}", metavar="KEY,…")
    ] = "name",
    node: Annotated[
        list[str] | None, typer.Option("--node", help="Only this node (repeatable)", metavar="NAME")
    ] = None,
    queue: Annotated[
        list[str] | None, typer.Option("--queue", help="Only this queue (repeatable)", metavar="NAME")
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="With -o json: a JSON line for each reading")] = False,
) -> Exit | None:
    """Who uses what right now: nodes, cards, vGPUs; live on a terminal, one shot elsewhere.

    Memory used over its limit, compute used over its limit in percent of a card, when the last kernel ran. A dash is
    unknown (-o wide says why), ≥ a lower bound. ! is above the limit, ~ idle for a minute.
    """
    if watch and settings.output != "json":
        raise _wrong(
            f"--watch with -o {settings.output}", "it gives JSON lines: add -o json; a terminal is live anyway"
        )
    if group not in GROUPS:
        raise _wrong(f"--group {group}", f"use one of: {', '.join(GROUPS)}")
    if not interval >= _SHORTEST:
        raise _wrong(f"--interval {interval:g}", f"{_SHORTEST:g} seconds is the shortest")
    try:
        sort_keys(sort)
    except ValueError as unknown:
        raise _wrong(f"--sort {unknown}", f"use some of: {', '.join(SORTS)}") from None
    namespace = "" if settings.all_namespaces else settings.namespace
    wanted = Wanted(namespace, labels(settings), tuple(node or ()), tuple(queue or ()))
    origins = watched(sources(settings))

    def take() -> Picture:
        return read(origins, wanted)

    if watch:
        return _lines(take, interval, group, sort)
    live = here(settings).live and sys.stdin.isatty() and not once
    if live and settings.output in ("table", "wide"):
        from vgpuctl.cli.live import run

        return run(take, settings, interval, group, sort)
    gc.disable()  # one shot makes no garbage, and hundreds of thousands of objects to look through for it
    picture = take()
    show(arrange(picture.holdings, group, sort, picture.wanted), settings)
    return None


def _lines(take: Callable[[], Picture], interval: float, group: str, sort: str) -> Exit | None:
    """One JSON document a line for each reading, until the reader goes away; a failed reading is told on stderr."""
    while True:
        began = time.monotonic()
        try:
            picture = take()
        except Missing as missing:
            note(f"not read: {missing.reason}")
        else:
            write(line(arrange(picture.holdings, group, sort, picture.wanted)) + "\n")
        time.sleep(max(interval - (time.monotonic() - began), 0.05))


def _wrong(what: str, remedy: str) -> Problem:
    return Problem(f"{what} is not understood", remedy=remedy, exit_code=Exit.USAGE)
