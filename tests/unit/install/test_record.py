"""The record as a lock: who may go on, and what is said of a command that was cut off."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from typing import Any

import msgspec
import pytest

from tests.unit.quota.memory import MemoryCluster
from vgpuctl.model.change import Change, How, Target
from vgpuctl.model.install.release import Holder, Release, config_map, text
from vgpuctl.model.problem import Problem
from vgpuctl.tasks.apply import Conduct, Group, Reversible
from vgpuctl.tasks.install import record

NOW = 1_800_000_000.0


HERE = {"host": socket.gethostname(), "space": record.holder(MemoryCluster(), Conduct(print), 0).space}  # type: ignore[arg-type]


def holder(pid: int = 1, host: str = "elsewhere", until: float = NOW + 60, space: str = "") -> Holder:
    return Holder(who="ana", host=host, pid=pid, space=space, since=NOW - 30, until=until)


def kept(found: Holder | None, phase: Any = "installing") -> record.Kept:
    release = Release(phase=phase, holder=found)
    return record.Kept(release, text(release), config_map(release))


def gone() -> int:
    """The number of a process that ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


class TestWhoMayGoOn:
    def test_nobody_at_work(self) -> None:
        assert record.free(kept(None, "installed"), NOW) == ""
        assert record.free(kept(None, "upgrading"), NOW) == "an upgrade was left half done"

    @pytest.mark.parametrize(
        "found",
        [
            holder(until=NOW - 1),
            holder(pid=os.getpid(), **HERE),
            holder(pid=gone(), **HERE),
        ],
        ids=["its time is over", "it was this process", "its process is gone"],
    )
    def test_what_was_cut_off_is_gone_over_and_told(self, found: Holder) -> None:
        assert record.free(kept(found), NOW).endswith("was cut off: taking over")

    @pytest.mark.parametrize(
        "found",
        [holder(), holder(pid=1, **HERE), holder(pid=gone(), host=socket.gethostname(), space="pid:[1]")],
        ids=["elsewhere", "here", "in another container here, where that number is of another process"],
    )
    def test_who_is_at_work_is_named(self, found: Holder) -> None:
        with pytest.raises(Problem) as raised:
            record.free(kept(found, "upgrading"), NOW)
        assert raised.value.what.startswith(f"ana on {found.host} began to upgrade at ")
        assert "nothing was changed here" in raised.value.why


def conduct() -> Conduct:
    return Conduct(lambda _: None, yes=True, pause=lambda _: None)


def run(cluster: MemoryCluster, found: record.Kept | None, release: Release) -> Any:
    step = record.take(found, release)
    return record.carry_out(cluster, [Group([step])], conduct(), release.holder)  # type: ignore[arg-type]


class TestTaking:
    def test_it_is_made_if_there_is_none_and_put_down_at_the_end(self) -> None:
        cluster = MemoryCluster()
        release = Release(phase="installing", holder=holder())
        assert run(cluster, None, release).problems == []
        found = record.read(cluster)  # type: ignore[arg-type]
        assert found and found.release == msgspec.structs.replace(release, holder=None)

    def test_of_two_that_make_it_one_is_told_who_was_first(self) -> None:
        cluster = MemoryCluster(config_map(Release(phase="installing", holder=holder())))
        (problem,) = run(cluster, None, Release(phase="installing", holder=holder(pid=2))).problems
        assert problem.what == "somebody else works on this installation"
        assert problem.why.startswith("ana on elsewhere is at it since ")

    def test_of_two_that_take_it_over_too(self) -> None:
        before = kept(holder(until=0))
        cluster = MemoryCluster(config_map(Release(phase="installing", holder=holder(pid=3))))
        (problem,) = run(cluster, before, Release(phase="installing", holder=holder(pid=2))).problems
        assert problem.what == "somebody else works on this installation"
        found = record.read(cluster)  # type: ignore[arg-type]
        assert found and found.release.holder == holder(pid=3)

    def test_taking_back_the_first_step_removes_it(self) -> None:
        step = record.take(None, Release(phase="installing", holder=holder()))
        assert isinstance(step, Reversible)
        assert [change.how for change in step.back()] == [How.DELETE]  # type: ignore[union-attr]


class TestAQuestion:
    """Before it is answered nothing is written, and time goes by."""

    @pytest.mark.parametrize(("minutes", "written"), [(9, True), (11, False)])
    def test_an_answer_counts_as_long_as_the_record_can_hold(self, minutes: float, written: bool) -> None:
        times = [NOW]

        def ask(_: str) -> bool:
            times.append(NOW + minutes * 60)
            return True

        cluster = MemoryCluster()
        asking = Conduct(lambda _: None, ask=ask, now=lambda: times[-1], pause=lambda _: None)
        mine = record.holder(cluster, asking, seconds=300)  # type: ignore[arg-type]
        steps = [
            record.take(None, Release(phase="installing", holder=mine)),
            Change(Target("Pod", "a", "b"), How.DELETE, None, {"metadata": {}}),
        ]

        def carry_out() -> list[Problem]:
            return record.carry_out(cluster, [Group(steps)], asking, mine).problems  # type: ignore[arg-type]

        if written:
            assert carry_out() == [] and mine.until >= times[-1] + 300
        else:
            with pytest.raises(Problem, match="nothing was changed"):
                carry_out()
        assert bool(cluster.sent) is written
