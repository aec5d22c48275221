"""The options and the person behind commands that change something."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from vgpuctl.cli.settings import Settings, seconds
from vgpuctl.cli.show import note, show
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.tasks.apply import Conduct, Outcome

DryRun = Annotated[
    str | None,
    typer.Option(
        "--dry-run", help="client: only show; server: the API server checks and keeps nothing", metavar="WHERE"
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Answer every question with yes")]
Timeout = Annotated[str, typer.Option("--timeout", help="How long to wait until it is in force", metavar="TIME")]
Force = Annotated[
    bool, typer.Option("--force-conflicts", help="Take fields over from other managers, as kubectl apply does")
]

FORMS = ("table", "wide", "json", "yaml", "name")


def conduct(dry_run: str | None, yes: bool, timeout: str, force: bool) -> Conduct:
    """How to carry changes out. A question needs a terminal on both sides. Raises Problem (wrong use)."""
    if dry_run not in (None, "none", "client", "server"):
        raise Problem(f"--dry-run={dry_run} is not understood", remedy="client or server", exit_code=Exit.USAGE)
    person = sys.stdin.isatty() and sys.stderr.isatty()
    return Conduct(
        note,
        "" if dry_run in (None, "none") else str(dry_run),
        yes,
        _ask if person else None,
        seconds(timeout, "--timeout"),
        force,
        "--force-conflicts",
    )


def _ask(question: str) -> bool:
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    try:
        answer = sys.stdin.readline()
    except KeyboardInterrupt:
        note("")  # what comes next begins its own line
        raise
    return answer.strip().lower() in ("y", "yes")


def finish(outcome: Outcome, settings: Settings) -> Exit:
    """Shows what was done and what failed, and gives the exit code. What was refused as a whole has no result."""
    from vgpuctl.cli.main import complain

    if outcome.changes.changes or not outcome.problems:
        show(outcome.changes, settings)
    for problem in outcome.problems:
        complain(problem)
    return outcome.exit_code
