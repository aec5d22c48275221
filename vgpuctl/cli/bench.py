"""`vgpuctl bench`: what a core limit is worth on this machine's card."""

from __future__ import annotations

import os
import sys
from enum import Enum
from typing import Annotated

import typer

from vgpuctl.cli.help import new_app
from vgpuctl.cli.options import OUTPUT, shared
from vgpuctl.cli.settings import Settings
from vgpuctl.cli.show import note, show
from vgpuctl.model.bench import JOBS, KERNELS, LIMITS, cell_seconds, kernel_list, limit_list
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.tasks import bench as task

app = new_app()

_SHORTEST, _LONGEST = 0.5, 600.0


class What(str, Enum):
    LIMITS = "limits"
    SHARING = "sharing"


@app.command()
@shared(OUTPUT, forms=("table", "json", "yaml", "csv"))
def bench(
    settings: Settings,
    what: Annotated[
        What, typer.Argument(help="limits: shares against the promise; sharing: four jobs", metavar="[limits|sharing]")
    ] = What.LIMITS,
    limits: Annotated[
        str, typer.Option("--limits", help=f"Percent of the card [{','.join(map(str, LIMITS))}]", metavar="N,…")
    ] = "",
    kernels: Annotated[
        str, typer.Option("--kernels", help="Lengths of the kernels [20us,1ms,10ms]", metavar="TIME,…")
    ] = "",
    seconds: Annotated[
        float, typer.Option("--seconds", help="Of each cell, or of each job alone", metavar="SECONDS")
    ] = 4.0,
    card: Annotated[str, typer.Option("--card", help="The card to measure [the first]", metavar="N|UUID")] = "",
    simulate: Annotated[str, typer.Option(help="Simulated cards, such as 1xT4-16GB", metavar="SPEC")] = "",
) -> Exit | None:
    """Measure the core limit on a card of this machine, and whether it keeps the promise.

    Programs of fixed work run under the library, as `vgpuctl run` puts it in place; a share is of their speed without a
    limit. Exit code 1 when a cell is further off than promised.

    vgpuctl bench sharing: four jobs that each need the card a quarter of the time, one after another and in four vGPUs.
    """
    if not _SHORTEST <= seconds <= _LONGEST:
        raise _wrong(f"--seconds {seconds:g}", f"{_SHORTEST:g} to {_LONGEST:g}")
    if what is What.SHARING:
        if limits or kernels:
            raise _wrong(f"--{'limits' if limits else 'kernels'} with sharing", "its jobs are always the same")
        place = _stage(card, simulate, JOBS)
        note(f"{place.name}: about {(JOBS + 2) * seconds + 5:.0f} s")
        show(task.sharing(place, seconds, _progress), settings)
        return None
    try:
        percents = limit_list(limits) if limits else LIMITS
        lengths = kernel_list(kernels) if kernels else KERNELS
    except ValueError as error:
        raise Problem(str(error), exit_code=Exit.USAGE) from None
    place = _stage(card, simulate, 1)
    cells = [cell_seconds(seconds, kernel, limit) for kernel in lengths for limit in percents]
    count = f"{len(cells)} cells" if len(cells) > 1 else "1 cell"
    note(f"{place.name}: {count}, about {sum(cells) + len(cells) + 3 * len(lengths):.0f} s")
    found = task.limits(place, lengths, percents, seconds, _progress)
    show(found, settings)
    return Exit.FINDINGS if found.missed else None


def _stage(card: str, simulate: str, programs: int) -> task.Stage:
    place = task.stage(card, simulate, os.environ, programs)
    users = task.disturbers(place.card)
    if users:
        shown = ", ".join(users[:3]) + (f" and {len(users) - 3} more" if len(users) > 3 else "")
        note(f"warning: {place.name} is in use by {shown}: the figures will be of what they leave")
    return place


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        note(text)


def _wrong(what: str, remedy: str) -> Problem:
    return Problem(f"{what} is not understood", remedy=remedy, exit_code=Exit.USAGE)
