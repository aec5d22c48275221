"""The record of a check, its result, and the runner that knows nothing of output.

A check states the parts of the facts it needs. The runner gives it the facts; a `Missing` raised on the way makes
the result unknown with that reason, a `Skip` makes it skipped. A failed need of another check (`after`) skips it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum

from vgpuctl.model.change import Change
from vgpuctl.model.doctor import Evidence, Status
from vgpuctl.model.facts import Facts, Part
from vgpuctl.model.reading import Missing

__all__ = ["Check", "Evidence", "Options", "Outcome", "Result", "Run", "Skip", "Status", "Where", "run_checks"]

_RANK = (Status.FAIL, Status.UNKNOWN, Status.WARN, Status.SKIP, Status.PASS)


class Where(str, Enum):
    """Where a check can be read: on the machine, through the plugin's pod, by a probe pod, from the API."""

    MACHINE = "L"
    PLUGIN = "P"
    PROBE = "H"
    API = "A"


@dataclass(frozen=True)
class Result:
    """The outcome of a check. subject: the node, pod or file it is about, "" for the whole.
    summary: one line. remedy: what to do, text. fix: the Changes that `--fix` would carry out."""

    status: Status
    summary: str
    subject: str = ""
    evidence: tuple[Evidence, ...] = ()
    remedy: str = ""
    fix: tuple[Change, ...] = ()


class Skip(Exception):
    """The check does not apply here; the text is the reason."""


@dataclass(frozen=True)
class Options:
    """What the user asked of the checks. cuda: the toolkit version of `--cuda`, "" for none."""

    cuda: str = ""


Run = Callable[[Facts, Options], Result | Iterable[Result]]


@dataclass(frozen=True)
class Check:
    """id: stable, lower case with dashes. title: what is tested, one line. area: one of AREAS. worst: the worst status
    it can give. needs: parts of the facts. also: parts that it uses when they are there. where: how it can be read.
    fixable: `--fix` can mend it. after: ids of checks without whose pass this one says nothing."""

    id: str
    title: str
    area: str
    worst: Status
    needs: tuple[Part, ...]
    where: tuple[Where, ...]
    run: Run = field(repr=False)
    also: tuple[Part, ...] = ()
    fixable: bool = False
    after: tuple[str, ...] = ()
    explain: str = ""


@dataclass(frozen=True)
class Outcome:
    """A check and one of its results."""

    check: Check
    result: Result


def run_checks(checks: Sequence[Check], facts: Facts, options: Options) -> Iterator[Outcome]:
    """Runs checks in order. A check that yields several results gives several outcomes, one that yields none passes."""
    status: dict[str, Status] = {}
    for check in checks:
        results = _results(check, facts, options, status)
        status[check.id] = min((result.status for result in results), key=_RANK.index)
        for result in results:
            yield Outcome(check, result)


def _results(check: Check, facts: Facts, options: Options, status: dict[str, Status]) -> list[Result]:
    for needed in check.after:
        if status.get(needed, Status.PASS) not in (Status.PASS, Status.WARN):
            return [Result(Status.SKIP, f"says nothing without {needed}")]
    results: list[Result] = []
    try:
        outcome = check.run(facts, options)
        for result in [outcome] if isinstance(outcome, Result) else outcome:
            results.append(result)  # noqa: PERF402 - what was found before a fact was missing is kept
    except Skip as skip:
        return [*results, Result(Status.SKIP, str(skip))]
    except Missing as missing:
        evidence = (Evidence(missing.source, missing.reason),) if missing.source else ()
        return [*results, Result(Status.UNKNOWN, missing.reason, evidence=evidence)]
    return results or [Result(Status.PASS, "")]
