"""`vgpuctl quota`: how much each team may use, and how much it uses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Annotated

import typer

from vgpuctl.cli.conduct import FORMS, DryRun, Force, Timeout, Yes, conduct, finish
from vgpuctl.cli.help import new_app
from vgpuctl.cli.lint import FORMS as LINT_FORMS
from vgpuctl.cli.lint import Factor, Files, Gpus, Live, Volcano, read_files, report
from vgpuctl.cli.options import CONNECTION, OUTPUT, SOURCE, shared
from vgpuctl.cli.settings import Settings
from vgpuctl.cli.show import note, show
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.model.quota.team import Amounts, Team, TeamQueue, wrong_name, wrong_namespace, wrong_queue

app = new_app(no_args_is_help=True)


@app.callback()
def quota() -> None:
    """How much may each team use, and how much does it use?"""


@app.command("set")
@shared(CONNECTION, OUTPUT, forms=FORMS)
def set_command(
    settings: Settings,
    team: Annotated[
        str, typer.Argument(metavar="TEAM", help="The team; also its namespace, unless -n names others (a,b)")
    ],
    number: Annotated[int | None, typer.Argument(help="How many vGPUs it may use", metavar="[VGPUS]", min=0)] = None,
    memory: Annotated[
        str | None, typer.Option(help="GPU memory: 200Gi, 20% of the pool, or memory units", metavar="SIZE")
    ] = None,
    cores: Annotated[int | None, typer.Option(help="Percent of cards: 800 is eight cards", metavar="N", min=0)] = None,
    priority: Annotated[
        list[str] | None, typer.Option(help="vGPUs for pods of a priority, such as high=10", metavar="NAME=N")
    ] = None,
    queue: Annotated[str | None, typer.Option(help="Volcano Queue that its namespaces share", metavar="NAME")] = None,
    guarantee: Annotated[
        str | None, typer.Option(help="What the queue keeps free: 10, or number=10,memory=80Gi", metavar="AMOUNTS")
    ] = None,
    dry_run: DryRun = None,
    yes: Yes = False,
    timeout: Timeout = "30s",
    force_conflicts: Force = False,
) -> Exit | None:
    """Give a team its share; what is not named stays as it is.

    Makes the namespace and a ResourceQuota that the API server counts, and moves over what older quotas meant to
    limit under names that are never counted. With --queue also a Volcano Queue with the same amounts as capability.
    """
    from vgpuctl.cli.sources import need_cluster
    from vgpuctl.tasks.quota.work import give

    _check(wrong_name(team))
    places = [place for place in settings.namespace.split(",") if place]
    for place in places or [team]:
        _check(wrong_namespace(place))
    if guarantee and not queue:
        raise Problem("--guarantee needs --queue NAME", exit_code=Exit.USAGE)
    if queue:
        _check(wrong_queue(queue))
    wish = Team(
        name=team,
        namespaces=places,
        number=number,
        memory=_size(memory),
        cores=cores,
        priorities=_priorities(priority or []),
        queue=TeamQueue(name=queue, guarantee=_amounts(guarantee) if guarantee else None) if queue else None,
    )
    if wish.amounts == Amounts() and not wish.priorities and not wish.queue:
        raise Problem(
            "no amount is given",
            remedy=f"vgpuctl quota set {team} 50, --memory, --cores or --priority",
            exit_code=Exit.USAGE,
        )
    cluster = need_cluster(_narrowed(settings, places or [team]))
    return finish(give(cluster, [wish], conduct(dry_run, yes, timeout, force_conflicts), merge=True), settings)


@app.command("list")
@shared(CONNECTION, SOURCE, OUTPUT, forms=("table", "wide", "json", "yaml", "csv", "name"))
def list_command(settings: Settings) -> Exit | None:
    """Show the caps, what the API server counts, what pods really hold, and quotas that enforce nothing."""
    from vgpuctl.cli.sources import pool
    from vgpuctl.tasks.quota.work import listed

    quotas = listed(pool(settings))
    show(quotas, settings)
    for line in quotas.unread:
        note(f"not known: {line}")
    return None


@app.command("delete")
@shared(CONNECTION, OUTPUT, forms=FORMS)
def delete_command(
    settings: Settings,
    team: Annotated[str, typer.Argument(metavar="TEAM", help="The team")],
    dry_run: DryRun = None,
    yes: Yes = False,
) -> Exit | None:
    """Take a team's quotas (and its queue) away; its namespace and pods stay, without any limit."""
    from vgpuctl.cli.sources import need_cluster
    from vgpuctl.tasks.quota.work import take

    _check(wrong_name(team))
    return finish(take(need_cluster(settings), team, conduct(dry_run, yes, "30s", False)), settings)


@app.command("apply")
@shared(CONNECTION, OUTPUT, forms=FORMS)
def apply_command(
    settings: Settings,
    file: Annotated[str, typer.Option("-f", "--filename", help="Teams file; - is the standard input", metavar="FILE")],
    dry_run: DryRun = None,
    yes: Yes = False,
    timeout: Timeout = "2m",
    force_conflicts: Force = False,
) -> Exit | None:
    """Give all teams of a file exactly the shares that it states; other teams stay as they are."""
    from vgpuctl.cli.sources import need_cluster
    from vgpuctl.model.finding import Checked, Findings
    from vgpuctl.model.quota.teams_file import read_teams
    from vgpuctl.tasks.quota.work import give

    ((name, text),) = read_files([file])
    teams, findings = read_teams(text, name)
    if findings:
        wrong = Findings(findings=findings, checked=[Checked(file=name, subject="teams file")])
        show(wrong, replace(settings, output="table" if settings.output == "name" else settings.output))
        return Exit.FINDINGS
    places = [place for team in teams for place in team.places]
    cluster = need_cluster(_narrowed(settings, places))
    return finish(give(cluster, teams, conduct(dry_run, yes, timeout, force_conflicts), merge=False), settings)


@app.command("export")
@shared(CONNECTION, SOURCE, OUTPUT, forms=("yaml", "json"))
def export_command(settings: Settings) -> Exit | None:
    """Write the shares that vgpuctl gave as a teams file for `quota apply -f`."""
    from vgpuctl.cli.sources import pool
    from vgpuctl.tasks.quota.export import export

    teams, notes = export(pool(settings))
    show(teams, settings)
    for line in notes:
        note(line)
    return None


@app.command("lint")
@shared(CONNECTION, SOURCE, OUTPUT, forms=LINT_FORMS)
def lint_command(
    settings: Settings,
    files: Files = None,
    live: Live = False,
    volcano_version: Volcano = None,
    factor: Factor = None,
    gpus: Gpus = None,
) -> Exit | None:
    """Find what is wrong with ResourceQuotas, Volcano Queues and PriorityClasses.

    With --from BUNDLE, --demo or --live the pool is known, else tell of it by --volcano-version, --factor and --gpus;
    a rule that needs more than is known stays silent.
    """
    from vgpuctl.model.facts import Part
    from vgpuctl.model.quota.lint import lint
    from vgpuctl.tasks.lint import lint_facts, lint_texts

    objects = (
        (Part.QUOTAS, "ResourceQuota", "v1"),
        (Part.QUEUES, "Queue", "scheduling.volcano.sh/v1beta1"),
        (Part.PRIORITIES, "PriorityClass", "scheduling.k8s.io/v1"),
    )
    return report(
        "quota lint",
        settings,
        files,
        live,
        (volcano_version, factor, gpus),
        partial(lint_facts, lint, objects),
        partial(lint_texts, lint),
        tuple(part for part, _, _ in objects),
    )


def _narrowed(settings: Settings, places: list[str]) -> Settings:
    """Reads one namespace where one is enough, so that rights in it are enough too."""
    return replace(settings, namespace=places[0] if len(set(places)) == 1 else "", all_namespaces=False)


def _check(why: str) -> None:
    if why:
        raise Problem(why, exit_code=Exit.USAGE)


def _size(text: str | None) -> str | None:
    from vgpuctl.model.quantity import size

    try:
        return text if text is None or size(text) else None
    except ValueError as error:
        raise Problem(f"--memory: {error}", exit_code=Exit.USAGE) from None


def _pairs(option: str, texts: list[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    for name, sign, value in pairs:
        if not (name and sign and value):
            raise Problem(
                f"{option} {name}{sign}{value} is not understood", remedy="write NAME=N", exit_code=Exit.USAGE
            )
    return {name: value for name, _, value in pairs}


def _whole(option: str, value: str) -> int:
    if not value.isdigit():
        raise Problem(f"{option}: {value!r} is not a whole number from 0 on", exit_code=Exit.USAGE)
    return int(value)


def _priorities(texts: list[str]) -> dict[str, int]:
    found = _pairs("--priority", texts)
    for name in found:
        _check(wrong_name(name, "a priority's name"))
    return {name: _whole("--priority", value) for name, value in found.items()}


def _amounts(text: str) -> Amounts:
    if text.isdigit():
        return Amounts(number=int(text))
    pairs: Mapping[str, str] = _pairs("--guarantee", text.split(","))
    unknown = sorted(set(pairs) - {"number", "memory", "cores"})
    if unknown:
        raise Problem(f"--guarantee: there is no {unknown[0]}", remedy="number, memory and cores", exit_code=Exit.USAGE)
    return Amounts(
        number=_whole("--guarantee", pairs["number"]) if "number" in pairs else None,
        memory=_size(pairs.get("memory")),
        cores=_whole("--guarantee", pairs["cores"]) if "cores" in pairs else None,
    )
