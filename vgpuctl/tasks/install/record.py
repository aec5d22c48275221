"""The record of the installation as lock and memory: who takes it, how far the work came, who puts it down."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from vgpuctl.model.change import Change, How, Line
from vgpuctl.model.install.manifests import VERSION
from vgpuctl.model.install.release import COMMANDS, KEY, NAME, PLACE, Holder, Release, config_map, decode, text
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.sources.source import Objects
from vgpuctl.tasks.apply import Conduct, Group, Outcome, Reversible, apply
from vgpuctl.tasks.history import Recorder
from vgpuctl.tasks.install.live import Live

_MARGIN = 60.0
"""Seconds that a command may take beside its waits."""
_THOUGHT = 600.0
"""Seconds for which a person may think about an answer."""


@dataclass(frozen=True)
class Kept:
    """The record as it was read. text: exactly, for the test of a later write."""

    release: Release
    text: str
    item: dict[str, Any]

    @property
    def namespace(self) -> str:
        """Where the installation is."""
        return self.release.options.namespace


def read(cluster: Objects) -> Kept | None:
    """The record, None when vgpuctl is not installed. Raises Problem, also for a record that cannot be read."""
    found = cluster.get(PLACE)
    return Kept(decode(found), found["data"][KEY], found) if found else None


def need(cluster: Live) -> Kept:
    """The record. Raises Problem when there is none."""
    kept = read(cluster)
    if kept is None:
        raise Problem(
            "vgpuctl has installed nothing in this cluster",
            f"there is no ConfigMap {NAME}",
            "vgpuctl install; what was applied from an export is changed where the export is kept",
            Exit.FINDINGS,
        )
    return kept


def free(kept: Kept, now: float) -> str:
    """Raises Problem while somebody is at work. Of a command that did not come to its end: what to say when it is gone
    over."""
    holder = kept.release.holder
    if holder is None:
        command = COMMANDS.get(kept.release.phase)
        return f"an {command} was left half done" if command else ""
    begun = (
        f"{holder.who} on {holder.host} began to {COMMANDS.get(kept.release.phase, 'work')} at {_clock(holder.since)}"
    )
    if holder.until <= now or _is_dead(holder):
        return f"{begun} and was cut off: taking over"
    raise Problem(
        f"{begun} and is still at it",
        f"it ends by {_clock(holder.until)} at the latest; nothing was changed here",
        "wait for it; if that command is dead, run this one after that time",
        Exit.FINDINGS,
    )


def _clock(moment: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(moment))


def _is_dead(holder: Holder) -> bool:
    """On this very machine, and its process is gone. Containers may have the machine's name, and numbers of their
    own."""
    if (holder.host, holder.space) != (socket.gethostname(), _space()):
        return False
    if holder.pid == os.getpid():
        return True
    try:
        os.kill(holder.pid, 0)
    except ProcessLookupError:
        return True
    except OSError:  # it is another user's
        pass
    return False


def _space() -> str:
    """The namespace of processes that this one lives in, "" where the system has but one."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def holder(cluster: Live, conduct: Conduct, seconds: float) -> Holder:
    """Ourselves. seconds: all waits together."""
    now = conduct.now()
    thought = _THOUGHT if conduct.ask and not conduct.yes else 0.0
    return Holder(
        who=Recorder(cluster, conduct.say, conduct.now).who(),
        host=socket.gethostname(),
        pid=os.getpid(),
        space=_space(),
        since=now,
        until=now + thought + seconds + _MARGIN,
    )


def take(kept: Kept | None, release: Release) -> Reversible:
    """The first write of a command: makes the record, or takes it over if it still says what was read. It is the last
    to be taken back, so that it stays while anything else does."""
    if kept is not None:
        as_it_was = msgspec.structs.replace(kept.release, holder=None)
        return Reversible(write(kept.release, release, kept.text), lambda: [write(release, as_it_was)])
    made = Change(
        PLACE,
        How.CREATE,
        config_map(release),
        None,
        (Line("version", None, release.version),),
        undo="vgpuctl uninstall",
    )
    return Reversible(made, lambda: [Change(PLACE, How.DELETE, None, config_map(release), routine=True)])


def write(before: Release, after: Release, exactly: str = "") -> Change:
    """A later write: if the record still says what it said."""
    operations = [
        {"op": "test", "path": f"/data/{KEY}", "value": exactly or text(before)},
        {"op": "replace", "path": f"/data/{KEY}", "value": text(after)},
        {"op": "add", "path": f"/metadata/labels/{VERSION.replace('/', '~1')}", "value": after.version},
    ]
    return Change(PLACE, How.PATCH, operations, config_map(before), routine=True)


def carry_out(cluster: Live, groups: Sequence[Group], conduct: Conduct, mine: Holder | None) -> Outcome:
    """Applies groups, and puts the record down at the end, however that comes. mine: None when it is not taken."""
    try:
        outcome = apply(cluster, groups, _in_time(conduct, mine) if mine else conduct, cluster.name)
    finally:
        if mine and not conduct.dry_run:
            with suppress(Problem):
                _put_down(cluster, replace(conduct, timeout=5.0, say=lambda _: None), mine)
    outcome.problems = [_lost(cluster, problem) for problem in outcome.problems]
    return outcome


def _in_time(conduct: Conduct, mine: Holder) -> Conduct:
    """The same, but an answer that comes too late is none: by then the record would name an end that is past."""
    if conduct.ask is None:
        return conduct
    ask = conduct.ask

    def asked(question: str) -> bool:
        answer = ask(question)
        if answer and conduct.now() > mine.since + _THOUGHT:
            raise Problem(
                f"nothing was changed: the answer came after more than {_THOUGHT / 60:g} minutes",
                "the cluster may not be any more what was shown",
                "run the command again",
                Exit.FINDINGS,
            )
        return answer

    return replace(conduct, ask=asked)


def _lost(cluster: Live, problem: Problem) -> Problem:
    """The problem; where the record was not ours to write any more, who took it."""
    if NAME not in problem.what or "by someone else" not in problem.what:
        return problem
    try:
        kept = read(cluster)
    except Problem:
        return problem
    found = kept.release.holder if kept else None
    why = f"{found.who} on {found.host} is at it since {_clock(found.since)}" if found else "it ended meanwhile"
    return Problem("somebody else works on this installation", why, "wait for it, then run this again", Exit.FINDINGS)


def _put_down(cluster: Live, conduct: Conduct, mine: Holder) -> None:
    kept = read(cluster)
    if kept and kept.release.holder == mine:
        put_down = msgspec.structs.replace(kept.release, holder=None)
        apply(cluster, [Group([write(kept.release, put_down, kept.text)])], conduct)
