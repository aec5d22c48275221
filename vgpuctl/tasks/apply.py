"""Shows Changes and carries them out; the only place that writes.

Rules, the same for every command:

* old → new is told first; with `--dry-run=client` that is all, with `server` the API server checks and keeps nothing.
* Creating and changing our own objects needs no question. A delete, and an edit of what others own, is asked about on
  a terminal; `--yes` answers; without a terminal and without `--yes` it is wrong use (exit 2).
* A change that changes nothing is not sent.
* Work comes in groups; when a step fails the rest of its group is left, what can be taken back of the group is, and the
  next group is tried, unless it needs this one.
* An API server that goes away meanwhile is waited for: each change may be sent twice without harm.
* What was changed is recorded (`history`), also when the work is interrupted; a record that fails is a warning.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from vgpuctl.model.change import Change, How, changed_meanwhile
from vgpuctl.model.changes import Action, Changes, changed, story
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.model.quota.team import MANAGED_BY, MANAGER
from vgpuctl.sources.source import Writer
from vgpuctl.tasks.history import Recorder


@dataclass(frozen=True)
class Wait:
    """Something that must come true before the next step. what: in words. done: asks; may raise Problem. why: asked
    when the time is over: what is in its way. timeout: seconds for it alone, None for what is left of all."""

    what: str
    done: Callable[[], bool]
    why: Callable[[], str] = lambda: ""
    timeout: float | None = None


@dataclass(frozen=True)
class Reversible:
    """A change that is taken back when a later step of its group fails. back: the steps that do it, asked for then."""

    change: Change
    back: Callable[[], Sequence[Change | Wait]]


Step = Change | Wait | Reversible


@dataclass(frozen=True)
class Group:
    """Steps that belong together, in order. unchanged: what was looked at and is right already. about: what its routine
    changes do, for the preview. needed: without it the groups after it are not tried."""

    steps: Sequence[Step] = ()
    unchanged: Sequence[Change] = ()
    about: str = ""
    needed: bool = False

    @property
    def changes(self) -> list[Change]:
        return [change for step in self.steps if (change := change_of(step))]


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
    if change.routine:
        return False
    if change.how in (How.PATCH, How.MERGE):
        return not is_ours(change.before)
    return change.how in (How.DELETE, How.COMMAND, How.FILE)


def is_ours(item: Any) -> bool:
    """An object that vgpuctl made."""
    metadata = item.get("metadata") if isinstance(item, dict) else None
    return ((metadata or {}).get("labels") or {}).get(MANAGED_BY) == MANAGER


def apply(cluster: Writer, groups: Sequence[Group], conduct: Conduct, source: str = "") -> Outcome:
    """Carries out groups of steps. Raises Problem (wrong use, declined) before anything is changed."""
    for group in groups:
        for change in group.changes:
            if not change.routine:
                conduct.say(f"{change.target}: {_preview(change)}")
        if group.about:
            conduct.say(group.about)
    _confirm([change for group in groups for change in group.changes if takes_away(change)], conduct)
    work = _Work(cluster, conduct, Outcome(Changes(source=source, dry_run=conduct.dry_run)))
    try:
        for index, group in enumerate(groups):
            work.outcome.changes.changes.extend(changed(change, Action.UNCHANGED) for change in group.unchanged)
            problem = work.run(group)
            if problem and group.needed:
                work.leave([change for later in groups[index + 1 :] for change in later.changes], problem)
                break
    except KeyboardInterrupt:
        conduct.say("interrupted: what was changed stays and is recorded; run the command again to finish")
        raise
    finally:
        work.history.flush()
    return work.outcome


def change_of(step: Step) -> Change | None:
    """What a step changes, None when it waits."""
    if isinstance(step, Reversible):
        return step.change
    return step if isinstance(step, Change) else None


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


class _Work:
    """One run of `apply`."""

    def __init__(self, cluster: Writer, conduct: Conduct, outcome: Outcome) -> None:
        self.cluster = cluster
        self.conduct = conduct
        self.outcome = outcome
        self.history = Recorder(cluster, conduct.say, conduct.now)
        self.deadline = conduct.now() + conduct.timeout
        self.fresh: set[str] = set()
        """Namespaces that are made in this run."""

    def run(self, group: Group) -> Problem | None:
        """Carries out the steps of a group; the problem at which it ended."""
        done: list[tuple[Reversible, int | None]] = []
        for index, step in enumerate(group.steps):
            change = change_of(step)
            try:
                self._step(step)
            except Problem as problem:
                self.outcome.problems.append(problem)
                if change:
                    self._row(change, Action.FAILED, "; ".join(problem.lines()))
                self.leave([later for step in group.steps[index + 1 :] if (later := change_of(step))], problem)
                self._take_back(done, problem)
                return problem
            if isinstance(step, Reversible):
                done.append((step, None if step.change.routine else len(self.outcome.changes.changes) - 1))
        return None

    def leave(self, changes: Sequence[Change], problem: Problem) -> None:
        """Tells what is not reached because of a problem."""
        for change in changes:
            if not change.routine:
                self._row(change, Action.UNDONE, f"after: {problem.what}")

    def _step(self, step: Step) -> None:
        if isinstance(step, Wait):
            if not self.conduct.dry_run:
                self._wait(step)
            return
        change = step.change if isinstance(step, Reversible) else step
        if self.conduct.dry_run == "server" and change.target.namespace in self.fresh:
            self.conduct.say(f"{change.target}: not checked, its namespace does not exist yet")
            after: dict[str, Any] = {}
        else:
            after = self._send(change)
        if change.target.kind == "Namespace" and change.before is None:
            self.fresh.add(change.target.name)
        self._row(change, _action(change))
        if not self.conduct.dry_run and not change.routine:
            self.history.add(change, _uid(after or change.before))

    def _row(self, change: Change, action: Action, error: str = "") -> None:
        if not change.routine or error:
            self.outcome.changes.changes.append(changed(change, action, error))

    def _take_back(self, done: Sequence[tuple[Reversible, int | None]], problem: Problem) -> None:
        """Reverts what was done of a group, the last first, as far as that can be done."""
        if not done or self.conduct.dry_run or problem.passing:
            return
        why = f" ({problem.why})" if problem.why else ""
        self.conduct.say(f"{problem.what}{why}: taking back what was changed")
        self.deadline = self.conduct.now() + self.conduct.timeout
        rows = self.outcome.changes.changes
        for step, row in reversed(done):
            try:
                for back in step.back():
                    if isinstance(back, Wait):
                        self._wait(back)
                    else:
                        after = self._send(back)
                        if not back.routine:
                            self.history.add(back, _uid(after or back.before))
            except Problem as second:
                if second.lines() != problem.lines():
                    self.outcome.problems.append(second)
                self.conduct.say(f"{step.change.target}: going back failed too: {'; '.join(second.lines())}")
                return  # what came before it may be needed to mend that, such as the record of what others had
            if row is not None:
                rows[row] = msgspec.structs.replace(rows[row], action=Action.TAKEN_BACK)

    def _send(self, change: Change) -> dict[str, Any]:
        if self.conduct.dry_run == "client":
            return {}
        try:
            after: dict[str, Any] = self._patiently(lambda again: self._write(change, again))
        except Problem as problem:
            if change.how is How.APPLY and problem.status == 409 and self.conduct.force_option:
                problem.remedy = f"leave these fields to them, or take them over with {self.conduct.force_option}"
            if (change.how, problem.status) not in ((How.PATCH, 422), (How.CREATE, 409)):
                raise
            # A `test` of the patch failed, or the object is there: things are not as they were read.
            raise changed_meanwhile(change.target) from None
        return after

    def _write(self, change: Change, again: bool) -> dict[str, Any]:
        """Sends a change. again: it was sent before and no answer came, so it may be in force already."""
        try:
            return self.cluster.write(change, dry_run=self.conduct.dry_run == "server", force=self.conduct.force)
        except Problem as problem:
            found = self.cluster.get(change.target) if again and problem.status in (409, 422) else None
            if found is None or not _in_force(change, found):
                raise
            return found

    def _patiently(self, act: Callable[[bool], Any]) -> Any:
        """Acts, again while the API server is away. act: gets whether it was tried before."""
        end, again, gap = None, False, 0.2
        while True:
            try:
                return act(again)
            except Problem as problem:
                now = self.conduct.now()
                end = now + self.conduct.timeout if end is None else end
                if not problem.passing:
                    raise
                if now >= end:
                    problem.remedy = "what was changed stays; run the command again when it answers"
                    raise
                if not again:
                    self.conduct.say(f"{problem.what}: trying again for {self.conduct.timeout:g} s")
            again = True
            self.conduct.pause(gap)
            gap = min(gap * 1.5, 2.0)

    def _wait(self, step: Wait) -> None:
        told = False
        gap = 0.05
        seconds = self.conduct.timeout if step.timeout is None else step.timeout
        deadline = self.deadline if step.timeout is None else self.conduct.now() + step.timeout
        while not self._patiently(lambda _: step.done()):
            if self.conduct.now() >= deadline:
                why = self._patiently(lambda _: step.why())
                raise Problem(
                    f"not within {seconds:g} s: {step.what}",
                    why or "what was changed stays",
                    "run the command again, or wait longer with --timeout",
                    Exit.TIMEOUT,
                )
            if not told:
                told = True
                self.conduct.say(f"waiting: {step.what}")
            self.conduct.pause(gap)
            gap = min(gap * 1.5, 1.0)


def _uid(found: Any) -> str:
    """Of an object; "" for files and commands."""
    return str((found.get("metadata") or {}).get("uid", "")) if isinstance(found, dict) else ""


def _action(change: Change) -> Action:
    if change.how is How.DELETE:
        return Action.DELETED
    return Action.CREATED if change.before is None else Action.CONFIGURED


def _in_force(change: Change, found: Mapping[str, Any]) -> bool:
    """A live object says what a change was to make of it."""
    if change.how is How.CREATE:
        return all(found.get(key) == value for key, value in change.after.items() if key in ("data", "spec"))
    if change.how is not How.PATCH:
        return False
    values = {operation["path"]: operation for operation in change.after if operation["op"] != "test"}
    return all(_at(found, path) == operation.get("value") for path, operation in values.items())


def _at(item: Any, path: str) -> Any:
    """The value at a JSON pointer, None where there is none."""
    for word in path.split("/")[1:]:
        key = word.replace("~1", "/").replace("~0", "~")
        item = item.get(key) if isinstance(item, dict) else None
    return item
