"""`vgpuctl config apply`: bring a configuration into the cluster, and everything that it means."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vgpuctl.cli.conduct import FORMS, DryRun, Force, Timeout, Yes, conduct, finish
from vgpuctl.cli.config.base import app
from vgpuctl.cli.config.explain import WhichKind
from vgpuctl.cli.lint import Files, nothing_named, read_files
from vgpuctl.cli.options import CONNECTION, OUTPUT, shared
from vgpuctl.cli.settings import Settings
from vgpuctl.cli.show import show
from vgpuctl.model.migrate.accept import Accepted, accepted
from vgpuctl.model.problem import Exit, Problem

Accept = Annotated[
    list[str] | None,
    typer.Option(
        help="Agree that this means something else under the new factor; * for any kind or name; @FILE: a list",
        metavar="KIND/NAMESPACE/NAME",
    ),
]


@app.command("apply")
@shared(CONNECTION, OUTPUT, forms=FORMS)
def apply_command(
    settings: Settings,
    files: Files = None,
    kind: WhichKind = None,
    accept: Accept = None,
    migrate: Annotated[
        bool, typer.Option("--migrate", help="Under a new factor quotas and queues keep their MiB")
    ] = False,
    dry_run: DryRun = None,
    yes: Yes = False,
    timeout: Timeout = "5m",
    force_conflicts: Force = False,
) -> Exit | None:
    """Validate configuration files, show what they change, apply them, restart what reads them, and verify.

    A new gpuMemoryFactor changes what every request, quota and queue cap means. Each is listed with its MiB before and
    after, and nothing is done until it is named by --accept or brought over by --migrate.
    """
    from dataclasses import replace

    from vgpuctl.cli.main import complain
    from vgpuctl.cli.sources import need_cluster
    from vgpuctl.model.config.kind import KINDS
    from vgpuctl.model.finding import Severity
    from vgpuctl.model.pool import context
    from vgpuctl.tasks.config import apply as task
    from vgpuctl.tasks.config.texts import found_in
    from vgpuctl.tasks.config.validate import validate_texts
    from vgpuctl.tasks.load import load

    if not files:
        raise nothing_named("config apply", live=False)
    named = _accepted(accept or [])
    texts = read_files(files)
    wanted = KINDS[kind.value] if kind else None
    how = conduct(dry_run, yes, timeout, force_conflicts)
    cluster = need_cluster(replace(settings, namespace="", all_namespaces=False))
    facts = load((cluster,), task.PARTS)
    findings = validate_texts(texts, context(facts), wanted)
    if findings.worst is Severity.ERROR:
        show(findings, replace(settings, output="table" if settings.output == "name" else settings.output))
        return Exit.FINDINGS
    plan = task.plan(cluster, facts, found_in(texts, wanted), how, named, migrate=migrate)
    if plan.factor and plan.factor.open:
        show(plan.factor, settings)
        number = len({use.title for use in plan.factor.open})
        complain(
            Problem(
                f"nothing was changed: {number} object{'s' if number > 1 else ''} would mean something else, and "
                f"{'were' if number > 1 else 'was'} not named",
                remedy="name them with --accept, or bring them over",
            )
        )
        return Exit.FINDINGS
    return finish(task.carry_out(cluster, plan, how), settings)


def _accepted(texts: list[str]) -> list[Accepted]:
    found = []
    for text in texts:
        lines = _list(text[1:]) if text.startswith("@") else [text]
        for line in lines:
            try:
                found.append(accepted(line))
            except ValueError as error:
                raise Problem(f"--accept: {error}", exit_code=Exit.USAGE) from None
    return found


def _list(file: str) -> list[str]:
    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Problem(f"--accept: cannot read {file}", str(error), exit_code=Exit.USAGE) from None
    return [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
