"""Doctor: which checks run, on which facts, and what they amount to."""

from __future__ import annotations

import difflib
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import vgpuctl
from vgpuctl.checks.check import Check, Options, Outcome, Result, Status, Where, run_checks
from vgpuctl.checks.registry import AREAS, all_checks
from vgpuctl.model.change import Change, How
from vgpuctl.model.changes import story
from vgpuctl.model.doctor import Area, CheckExplanation, CheckInfo, CheckList, CheckResult, Counts, DoctorReport
from vgpuctl.model.facts import Facts, Part
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.sources.bundle import Bundle
from vgpuctl.sources.machine import Machine
from vgpuctl.sources.source import Source
from vgpuctl.tasks.load import load

_PAUSE = 5.0
"""Seconds between two looks under --wait."""
_WHERE = {
    Where.MACHINE: "on the machine",
    Where.PLUGIN: "in the plugin's pod",
    Where.PROBE: "by a probe pod",
    Where.API: "from the API server",
}


@dataclass(frozen=True)
class Choice:
    """The checks to run, and the ids of those that the user left out."""

    checks: tuple[Check, ...]
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class Diagnosis:
    """Every outcome in the order of the registry. reads: by area, the sources of its facts. at: Unix seconds."""

    source: str
    at: float
    outcomes: tuple[Outcome, ...]
    reads: dict[str, str]

    @property
    def fixes(self) -> tuple[Change, ...]:
        """The changes that mend what was found, each once."""
        found: list[Change] = []
        for outcome in self.outcomes:
            found += [change for change in outcome.result.fix if change not in found]
        return tuple(found)


def choose(only: Iterable[str], skip: Iterable[str], checks: Sequence[Check] | None = None) -> Choice:
    """The checks that `--only` and `--skip` (ids or areas) leave. Raises Problem for a name that is neither."""
    every = all_checks() if checks is None else checks
    wanted, unwanted = set(only), set(skip)
    names = {check.id for check in every} | {area.id for area in AREAS}
    for name in sorted((wanted | unwanted) - names):
        near = difflib.get_close_matches(name, names, 1)
        hint = f"did you mean {near[0]}?" if near else "`vgpuctl doctor --list` shows all"
        raise Problem(f"there is no check or area {name!r}", remedy=hint, exit_code=Exit.USAGE)
    kept = tuple(
        check
        for check in every
        if (not wanted or {check.id, check.area} & wanted) and not {check.id, check.area} & unwanted
    )
    return Choice(kept, tuple(check.id for check in every if check not in kept))


def patients(sources: Sequence[Source]) -> tuple[list[Source], list[Machine]]:
    """The sources of a pool and the machines among the sources; a bundle holds both."""
    machines = [source for source in sources if isinstance(source, Machine)]
    for source in sources:
        if isinstance(source, Bundle):
            machines += [Machine.recorded(source.files(node), source.now()) for node in source.nodes]
    return [source for source in sources if not isinstance(source, Machine)], machines


def diagnose(sources: Sequence[Source], checks: Sequence[Check], options: Options) -> Diagnosis:
    """Runs the checks: those about a machine once for each machine, the others once. Of the machines that `vgpuctl run
    --simulate` made, the regions are looked at.

    A machine without a GPU beside a cluster is left alone: it is where the administrator sits.
    """
    pool, machines = patients(sources)
    if pool and not any(isinstance(source, Bundle) for source in pool):
        machines = [machine for machine in machines if machine.has_gpu()]
    parts = [part for check in checks for part in (*check.needs, *check.also)]
    facts = load(pool, [part for part in parts if part not in Machine.parts])
    held = frozenset(part for source in pool for part in source.parts) - Machine.parts
    outcomes: list[Outcome] = []
    names = [machine.name for machine in machines]
    for machine in machines:
        mine = [check for check in checks if _about_machine(check)]
        seen = _with_machine(facts, machine, parts)
        outcomes += _run(mine, seen, options, held | machine.parts)
        for made_up in machine.simulated():
            regions = [check for check in mine if Part.REGIONS in check.needs]
            outcomes += _run(regions, _with_machine(facts, made_up, parts), options, held | made_up.parts)
            names.append(made_up.name)
    rest = [check for check in checks if not machines or not _about_machine(check)]
    outcomes += _run(rest, facts, options, held)
    order = {check.id: number for number, check in enumerate(checks)}
    unique = {_key(outcome): outcome for outcome in sorted(outcomes, key=lambda outcome: order[outcome.check.id])}
    reads = {area.id: _reads(area.id, checks, pool, names) for area in AREAS}
    source = ", ".join([*(source.name for source in pool), *names])
    return Diagnosis(source, facts.now or time.time(), tuple(unique.values()), reads)


def wait(look: Callable[[], Diagnosis], seconds: float, tell: Callable[[Counts], None]) -> tuple[Diagnosis, bool]:
    """Looks again until nothing fails or is unknown, or the time is over; whether it was well in the end."""
    end = time.monotonic() + seconds
    while True:
        diagnosis = look()
        counts = count(diagnosis.outcomes)
        if not counts.failed and not counts.unknown:
            return diagnosis, True
        left = end - time.monotonic()
        if left <= 0:
            return diagnosis, False
        tell(counts)
        time.sleep(min(_PAUSE, left))


def report(diagnosis: Diagnosis, choice: Choice) -> DoctorReport:
    """What doctor prints."""
    present = {outcome.check.area for outcome in diagnosis.outcomes}
    return DoctorReport(
        source=diagnosis.source,
        version=vgpuctl.__version__,
        at=diagnosis.at,
        areas=tuple(
            Area(id=area.id, title=area.title, read=diagnosis.reads.get(area.id, ""))
            for area in AREAS
            if area.id in present
        ),
        results=tuple(_result(outcome) for outcome in diagnosis.outcomes),
        counts=count(diagnosis.outcomes),
        left_out=choice.left_out,
    )


def count(outcomes: Iterable[Outcome]) -> Counts:
    statuses = [outcome.result.status for outcome in outcomes]
    return Counts(
        passed=statuses.count(Status.PASS),
        warnings=statuses.count(Status.WARN),
        failed=statuses.count(Status.FAIL),
        unknown=statuses.count(Status.UNKNOWN),
        skipped=statuses.count(Status.SKIP),
    )


def verdict(counts: Counts, *, strict: bool) -> Exit:
    """The exit code; a failure beats an unknown. strict: warnings are findings too."""
    if counts.failed or (strict and counts.warnings):
        return Exit.FINDINGS
    return Exit.UNKNOWN if counts.unknown else Exit.FINE


def listing(checks: Iterable[Check]) -> CheckList:
    """All checks, for `--list`."""
    return CheckList(checks=tuple(_info(check) for check in checks))


def explanation(name: str) -> CheckExplanation:
    """One check, for `--explain`. Raises Problem for an id that does not exist."""
    choose([name], [])
    found = next((check for check in all_checks() if check.id == name), None)
    if found is None:
        raise Problem(
            f"{name} is an area, not a check", remedy="`vgpuctl doctor --list` shows its checks", exit_code=Exit.USAGE
        )
    return CheckExplanation(check=_info(found))


def _info(check: Check) -> CheckInfo:
    return CheckInfo(
        id=check.id,
        area=check.area,
        title=check.title,
        worst=check.worst,
        fixable=check.fixable,
        where=tuple(_WHERE[where] for where in check.where),
        explain=check.explain,
    )


def _result(outcome: Outcome) -> CheckResult:
    check, result = outcome.check, outcome.result
    return CheckResult(
        check=check.id,
        area=check.area,
        title=check.title,
        status=result.status,
        summary=result.summary,
        subject=result.subject,
        evidence=result.evidence,
        remedy=result.remedy,
        fix=tuple(_told(change) for change in result.fix),
    )


def _told(change: Change) -> str:
    return change.target.name if change.how is How.COMMAND else f"{change.target}: {story(change.lines)}"


def _about_machine(check: Check) -> bool:
    return bool(Machine.parts & {*check.needs, *check.also})


def _with_machine(facts: Facts, machine: Source, parts: Sequence[Part]) -> Facts:
    for part in dict.fromkeys(parts):
        if part in machine.parts:
            facts = facts.with_part(part, machine.read(part))
    return facts


def _run(checks: Sequence[Check], facts: Facts, options: Options, held: frozenset[Part]) -> list[Outcome]:
    """The outcomes; checks whose parts no source holds are skipped with that reason."""
    lacking = {check.id: result for check in checks if (result := _lacking(check, held))}
    ran = run_checks([check for check in checks if check.id not in lacking], facts, options)
    skipped = (Outcome(check, lacking[check.id]) for check in checks if check.id in lacking)
    return [*ran, *skipped]


def _key(outcome: Outcome) -> tuple[str, ...]:
    """What makes two outcomes one: a check of the pool says the same beside each machine."""
    result = outcome.result
    return (outcome.check.id, result.status.value, result.subject, result.summary)


def _lacking(check: Check, held: frozenset[Part]) -> Result | None:
    parts = {*check.needs} or {*check.also}
    absent = parts - held if check.needs else (parts if not parts & held else set())
    if not absent:
        return None
    if absent & Machine.parts:
        return Result(Status.SKIP, "needs the machine itself: run doctor on a GPU node")
    if not held - Machine.parts:
        return Result(Status.SKIP, "needs a cluster")
    names = ", ".join(sorted(part.value for part in absent))
    return Result(Status.SKIP, f"the source does not hold {names}")


def _reads(area: str, checks: Sequence[Check], pool: Sequence[Source], machines: Sequence[str]) -> str:
    """Which sources the checks of an area draw on."""
    parts = {part for check in checks if check.area == area for part in check.needs or check.also}
    names = [source.name for source in pool if parts & source.parts - Machine.parts]
    if parts & Machine.parts:
        names = [*machines, *names]
    return ", ".join(names)
