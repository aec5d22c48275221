"""Shows Changes and carries them out; the only place that writes.

Rules, the same for every command:

* old → new is told first; with `--dry-run=client` that is all, with `server` the API server checks and keeps nothing.
* Creating and changing our own objects needs no question. A delete, and an edit of what others own, is asked about on
  a terminal; `--yes` answers; without a terminal and without `--yes` it is wrong use (exit 2).
* A change that changes nothing is not sent.
* Work comes in groups; when a step fails the rest of its group is left, and the next group is tried.
* What was changed is recorded (`history`), also when the work is interrupted; a record that fails is a warning.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from vgpuctl.model.change import Change, How
from vgpuctl.model.changes import Action, Changes, changed, story
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.sources.source import Writer
from vgpuctl.tasks.history import Recorder


@dataclass(frozen=True)
class Wait:
    """Something that must come true before the next step. what: in words. done: asks; may raise Problem."""

    what: str
    done: Callable[[], bool]


@dataclass(frozen=True)
class Group:
    """Steps that belong together, in order. unchanged: what was looked at and is right already."""

    steps: Sequence[Change | Wait] = ()
    unchanged: Sequence[Change] = ()


@dataclass(frozen=True)
class Conduct:
    """How to carry out. dry_run: `client`, `server` or "". yes: every question is answered. ask: asks a person, None
    where there is none. say: tells progress. timeout: seconds for all waits together. force: takes fields over;
    force_option: what a user writes for that."""

    say: Callable[[str], None]
    dry_run: str = ""
    yes: bool = False
    ask: Callable[[str], bool] | None = None
    timeout: float = 30.0
    force: bool = False
    force_option: str = ""
    now: Callable[[], float] = time.time
    pause: Callable[[float], None] = time.sleep


@dataclass
class Outcome:
    """changes: the Output. problems: what failed, in order."""

    changes: Changes
    problems: list[Problem] = field(default_factory=list)

    @property
    def exit_code(self) -> Exit:
        """A failure beats an unknown, which beats a timeout."""
        codes = {problem.exit_code for problem in self.problems}
        order = (Exit.FINDINGS, Exit.UNKNOWN, Exit.TIMEOUT)
        return next((code for code in order if code in codes), next(iter(codes), Exit.FINE))


def takes_away(change: Change) -> bool:
    """The change wants a question."""
    return change.how in (How.DELETE, How.PATCH, How.COMMAND, How.FILE)


def apply(cluster: Writer, groups: Sequence[Group], conduct: Conduct, source: str = "") -> Outcome:
    """Carries out groups of steps. Raises Problem (wrong use, declined) before anything is changed."""
    changes = [step for group in groups for step in group.steps if isinstance(step, Change)]
    for change in changes:
        conduct.say(f"{change.target}: {_preview(change)}")
    _confirm([change for change in changes if takes_away(change)], conduct)
    outcome = Outcome(Changes(source=source, dry_run=conduct.dry_run))
    history = Recorder(cluster, conduct.say, conduct.now)
    deadline = conduct.now() + conduct.timeout
    try:
        for group in groups:
            outcome.changes.changes.extend(changed(change, Action.UNCHANGED) for change in group.unchanged)
            _run(cluster, group, conduct, history, outcome, deadline)
    except KeyboardInterrupt:
        conduct.say("interrupted: what was changed stays and is recorded; run the command again to finish")
        raise
    finally:
        history.flush()
    return outcome


def _preview(change: Change) -> str:
    what = {How.DELETE: "delete"}.get(change.how, "create" if change.before is None else "change")
    told = story(change.lines)
    why = f" ({change.why})" if change.why else ""
    return f"{what}{': ' if told else ''}{told}{why}"


def _confirm(risky: Sequence[Change], conduct: Conduct) -> None:
    if not risky or conduct.yes or conduct.dry_run:
        return
    named = ", ".join(str(change.target) for change in risky[:3]) + (" and more" if len(risky) > 3 else "")
    if conduct.ask is None:
        raise Problem(
            f"this takes something away ({named}), and there is no terminal to ask on",
            remedy="give --yes if it is meant, or --dry-run=client to look",
            exit_code=Exit.USAGE,
        )
    if not conduct.ask(f"Go on ({named})?"):
        raise Problem("nothing was changed", exit_code=Exit.FINDINGS)


def _run(cluster: Writer, group: Group, conduct: Conduct, history: Recorder, outcome: Outcome, deadline: float) -> None:
    fresh: set[str] = set()
    for index, step in enumerate(group.steps):
        try:
            if isinstance(step, Wait):
                if not conduct.dry_run:
                    _wait(step, conduct, deadline)
                continue
            if conduct.dry_run == "server" and step.target.namespace in fresh:
                conduct.say(f"{step.target}: not checked, its namespace does not exist yet")
                after: dict[str, Any] = {}
            else:
                after = _send(cluster, step, conduct)
        except Problem as problem:
            outcome.problems.append(problem)
            told = "; ".join(problem.lines())
            rest = [later for later in group.steps[index + 1 :] if isinstance(later, Change)]
            if isinstance(step, Change):
                outcome.changes.changes.append(changed(step, Action.FAILED, told))
            outcome.changes.changes.extend(changed(later, Action.UNDONE, f"after: {problem.what}") for later in rest)
            return
        if step.target.kind == "Namespace" and step.before is None:
            fresh.add(step.target.name)
        outcome.changes.changes.append(changed(step, _action(step)))
        if not conduct.dry_run:
            history.add(step, _uid(after or step.before))


def _uid(found: Any) -> str:
    """Of an object; "" for files and commands."""
    return str((found.get("metadata") or {}).get("uid", "")) if isinstance(found, dict) else ""


def _send(cluster: Writer, change: Change, conduct: Conduct) -> dict[str, Any]:
    if conduct.dry_run == "client":
        return {}
    try:
        return cluster.write(change, dry_run=conduct.dry_run == "server", force=conduct.force)
    except Problem as problem:
        if change.how is How.APPLY and problem.status == 409 and conduct.force_option:
            problem.remedy = f"leave these fields to them, or take them over with {conduct.force_option}"
        if change.how is not How.PATCH or problem.status != 422:
            raise
        # A `test` of the patch failed: the values are not those that were read.
        raise Problem(
            f"{change.target} was changed by someone else meanwhile",
            remedy="run the command again",
            exit_code=Exit.FINDINGS,
        ) from None


def _action(change: Change) -> Action:
    if change.how is How.DELETE:
        return Action.DELETED
    return Action.CREATED if change.before is None else Action.CONFIGURED


def _wait(step: Wait, conduct: Conduct, deadline: float) -> None:
    told = False
    gap = 0.05
    while not step.done():
        if conduct.now() >= deadline:
            raise Problem(
                f"{step.what} did not come true within {conduct.timeout:g} s",
                "what was changed stays",
                "run the command again, or wait longer with --timeout",
                Exit.TIMEOUT,
            )
        if not told:
            told = True
            conduct.say(f"waiting: {step.what}")
        conduct.pause(gap)
        gap = min(gap * 1.5, 1.0)
