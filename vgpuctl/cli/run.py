"""`vgpuctl run`: any program under a limit, on this machine, without a cluster.

The program takes this process's place, so signals, the terminal and the exit code are its own.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from vgpuctl.cli.help import new_app
from vgpuctl.cli.main import complain, unix_pipe
from vgpuctl.cli.show import note
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.model.quantity import Size, show_mib, size
from vgpuctl.tasks import run as task

NOT_EXECUTABLE, NOT_FOUND = 126, 127

app = new_app(context_settings={"allow_interspersed_args": False, "help_option_names": ["-h", "--help"]})


@app.command()
def run(
    command: Annotated[list[str], typer.Argument(metavar="CMD [ARG]...", help="The program, after --")],
    memory: Annotated[str, typer.Option(metavar="SIZE", help="Memory limit on each card, such as 4Gi")] = "",
    cores: Annotated[int | None, typer.Option(min=1, max=100, help="Percent of each card's compute")] = None,
    gpu: Annotated[str, typer.Option(metavar="N|UUID", help="The card to use [all]")] = "",
    simulate: Annotated[str, typer.Option(metavar="SPEC", help="Simulated cards, such as 2xT4-16GB")] = "",
) -> None:
    """Run a program under a memory and a core limit.

    vgpuctl run --memory 4Gi -- python train.py
    """
    limit = _size(memory) if memory else None
    try:
        prepared = task.prepare(command, limit, cores, gpu, simulate, os.environ)
    except Problem as problem:
        complain(problem)
        raise typer.Exit(task.OWN_FAILURE) from None
    sys.stdout.flush()
    unix_pipe()
    try:
        os.execvpe(command[0], list(prepared.command), prepared.environment)
    except OSError as error:
        prepared.forget()
        missing = isinstance(error, FileNotFoundError)
        complain(Problem(f"{command[0]}: {'not found' if missing else error.strerror}"))
        raise typer.Exit(NOT_FOUND if missing else NOT_EXECUTABLE) from None


def _size(memory: str) -> Size:
    try:
        amount = size(memory)
    except ValueError as error:
        raise Problem(f"--memory: {error}", exit_code=Exit.USAGE) from None
    if not (amount.mib or amount.units or amount.percent):
        raise Problem("--memory 0 would be no limit", remedy="leave --memory out for that", exit_code=Exit.USAGE)
    if amount.units:
        note(f"--memory {memory} is taken as MiB: {show_mib(amount.units)}")
    return amount
