"""`vgpuctl doctor`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from vgpuctl.checks.check import Options
from vgpuctl.cli.conduct import DryRun, Yes, conduct
from vgpuctl.cli.help import new_app
from vgpuctl.cli.main import complain
from vgpuctl.cli.options import CONNECTION, OUTPUT, SOURCE, shared
from vgpuctl.cli.settings import Settings, seconds
from vgpuctl.cli.show import note, show
from vgpuctl.cli.sources import sources
from vgpuctl.model.change import Change
from vgpuctl.model.cuda import version
from vgpuctl.model.doctor import Counts
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.sources.cluster import Cluster
from vgpuctl.sources.commands import MachineWriter
from vgpuctl.sources.machine import Machine
from vgpuctl.sources.source import Source
from vgpuctl.tasks.apply import Conduct, Group, apply
from vgpuctl.tasks.doctor import Diagnosis, choose, diagnose, explanation, listing, report, verdict, wait
from vgpuctl.tasks.load import watched

app = new_app()


@app.command()
@shared(CONNECTION, SOURCE, OUTPUT, forms=("table", "wide", "short", "json", "yaml", "csv", "junit", "name"))
def doctor(
    settings: Settings,
    only: Annotated[list[str] | None, typer.Option(help="Run only these checks or areas", metavar="ID|AREA")] = None,
    skip: Annotated[list[str] | None, typer.Option(help="Leave out these checks or areas", metavar="ID|AREA")] = None,
    fix: Annotated[bool, typer.Option("--fix", help="Mend what can be mended, after asking")] = False,
    dry_run: DryRun = None,
    yes: Yes = False,
    cuda: Annotated[str, typer.Option(help="Does this CUDA toolkit run here? Such as 11.4", metavar="VERSION")] = "",
    wait_for: Annotated[str, typer.Option("--wait", help="Look again until all is well", metavar="TIME")] = "",
    list_checks: Annotated[bool, typer.Option("--list", help="List the checks")] = False,
    explain: Annotated[str, typer.Option(help="Explain one check", metavar="ID")] = "",
) -> Exit | None:
    """What is wrong with this machine, this cluster, this pool?"""
    choice = choose(_split(only), _split(skip))
    if list_checks:
        show(listing(choice.checks), settings)
        return None
    if explain:
        show(explanation(explain), settings)
        return None
    options = Options(cuda=_toolkit(cuda))
    found = _sources(settings)

    def look() -> Diagnosis:
        diagnosis = diagnose(watched(found), choice.checks, options)
        for source in found:
            if isinstance(source, Machine):
                source.refresh()  # the next look reads again
        return diagnosis

    well = True
    if wait_for:
        diagnosis, well = wait(look, seconds(wait_for, "--wait"), _tell)
    else:
        diagnosis = look()
    if fix:
        _mend(diagnosis.fixes, found, settings, conduct(dry_run, yes, "30s", False))
        diagnosis = look() if diagnosis.fixes else diagnosis
    result = report(diagnosis, choice)
    show(result, settings)
    return verdict(result.counts, strict=settings.fail_on == "warn") if well else Exit.TIMEOUT


def _split(names: list[str] | None) -> list[str]:
    return [name for text in names or () for name in text.split(",") if name]


def _toolkit(text: str) -> str:
    try:
        if text and len(version(text)) > 3:
            raise ValueError(text)
    except ValueError:
        raise Problem(f"--cuda {text!r} is not a version", remedy="write --cuda 11.4", exit_code=Exit.USAGE) from None
    return text


def _sources(settings: Settings) -> tuple[Source, ...]:
    """The sources; on a machine that is neither a GPU node nor connected to a cluster there is nothing to look at."""
    found = sources(settings, machine=True)
    asked = settings.local or settings.root
    if asked or any(not isinstance(source, Machine) or source.has_gpu() for source in found):
        return found
    raise Problem(
        "this machine has no NVIDIA GPU, and no cluster is configured (no kubeconfig, not in a pod)",
        remedy="run it on a GPU node, give --kubeconfig FILE, or look at a made-up pool: vgpuctl doctor --demo",
    )


def _mend(fixes: Sequence[Change], found: Sequence[Source], settings: Settings, how: Conduct) -> None:
    """Carries out the fixes, each on its own: one that fails is told, and the next is tried."""
    if settings.demo or settings.bundle or settings.root:
        raise Problem(
            "--fix changes what runs, not a recording", remedy="run it on the machine itself", exit_code=Exit.USAGE
        )
    if not fixes:
        note("there is nothing that --fix can mend")
        return
    cluster = next((source for source in found if isinstance(source, Cluster)), None)
    outcome = apply(MachineWriter(cluster), [Group([change]) for change in fixes], how)
    for problem in outcome.problems:
        complain(problem)


def _tell(counts: Counts) -> None:
    note(f"waiting: {counts.failed} failed, {counts.unknown} unknown")
