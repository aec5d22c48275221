"""What `config validate`, `pod lint` and `quota lint` share: reading files, the context, the exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vgpuctl.cli.settings import Settings
from vgpuctl.cli.show import show
from vgpuctl.model.context import Context, gpu_list
from vgpuctl.model.finding import Findings, Severity
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.model.version_number import VersionNumber

if TYPE_CHECKING:  # what files alone do not need is imported late
    from vgpuctl.model.facts import Facts, Part

Files = Annotated[list[str] | None, typer.Argument(help="Files to look into; - is the standard input", metavar="FILE")]
Volcano = Annotated[
    str | None, typer.Option("--volcano-version", help="The Volcano that it is for, such as 1.15.1", metavar="VERSION")
]
Factor = Annotated[int | None, typer.Option("--factor", help="gpuMemoryFactor of the pool", metavar="N", min=1)]
Gpus = Annotated[
    str | None, typer.Option("--gpus", help="The pool's cards, such as 8xH100-80GB,4xV100-32GB", metavar="LIST")
]
Live = Annotated[bool, typer.Option("--live", help="Look into what the cluster (or the bundle) holds")]

FORMS = ("table", "wide", "json", "yaml", "junit", "csv", "name")


def read_files(files: Sequence[str]) -> list[tuple[str, str]]:
    """The texts of files, `-` once for the standard input. Raises Problem (wrong use) for one that cannot be read."""
    texts = []
    for file in files:
        try:
            data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        except OSError as error:
            raise Problem(
                f"cannot read {file or repr(file)}", str(error.strerror or error), exit_code=Exit.USAGE
            ) from None
        texts.append(("<stdin>" if file == "-" else file, data.decode("utf-8", "replace")))
    return texts


def context_for(settings: Settings, live: bool, parts: Sequence[Part] = ()) -> tuple[Facts | None, Context]:
    """The facts (these parts, and what the context needs) and the context, where a source is named; else nothing."""
    if not (live or settings.bundle or settings.demo):
        return None, Context()
    from vgpuctl.cli.sources import pool
    from vgpuctl.model.pool import context
    from vgpuctl.tasks.context import PARTS
    from vgpuctl.tasks.load import load

    facts = load(pool(settings), (*PARTS, *parts))
    return facts, context(facts)


def with_options(context: Context, volcano: str | None, factor: int | None, gpus: str | None) -> Context:
    """A context with what the options say of the pool. Raises Problem (wrong use) for what is not understood."""
    try:
        return replace(
            context,
            volcano=VersionNumber(volcano) if volcano else context.volcano,
            factor=factor or context.factor,
            nodes=gpu_list(gpus) if gpus else context.nodes,
            names_known=context.names_known and not gpus,
        )
    except ValueError as error:
        raise Problem(str(error), exit_code=Exit.USAGE) from None


def report(
    command: str,
    settings: Settings,
    files: Sequence[str] | None,
    live: bool,
    told: tuple[str | None, int | None, str | None],
    of_facts: Callable[[Facts, Context], Findings],
    of_texts: Callable[[list[tuple[str, str]], Context], Findings],
    parts: Sequence[Part] = (),
) -> Exit:
    """Shows the findings in a live pool, or in files with what is known of their pool. told: --volcano-version,
    --factor and --gpus. parts: of the facts, that of_facts needs. Raises Problem (wrong use)."""
    if not files and not live:
        raise nothing_named(command)
    facts, context = context_for(settings, live, parts)
    context = with_options(context, *told)
    findings = of_facts(facts, context) if live and facts else of_texts(read_files(files or ()), context)
    show(findings, settings)
    return verdict(findings, settings)


def verdict(findings: Findings, settings: Settings) -> Exit:
    """Errors are findings, warnings too under --fail-on warn."""
    bad = (Severity.ERROR, Severity.WARNING) if settings.fail_on == "warn" else (Severity.ERROR,)
    return Exit.FINDINGS if findings.worst in bad else Exit.FINE


def nothing_named(command: str, *, live: bool = True) -> Problem:
    """live: the command can read the cluster's instead."""
    ways = "FILE…, - for the standard input, or --live" if live else "FILE…, or - for the standard input"
    return Problem("no file is named", remedy=f"vgpuctl {command} {ways}", exit_code=Exit.USAGE)
