"""Changes on this machine: commands that run, fail, are not there; what belongs to a cluster goes there."""

from __future__ import annotations

from pathlib import Path

import pytest

from vgpuctl.model.change import Change, How, Target
from vgpuctl.model.changes import Action
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.sources.commands import MachineWriter
from vgpuctl.tasks.apply import Conduct, Group, apply


def command(*arguments: str) -> Change:
    return Change(Target("Host", " ".join(arguments)), How.COMMAND, arguments)


def silent(text: str) -> None:
    """Takes what is told."""


def test_a_command_runs_as_it_stands_without_a_shell(tmp_path: Path) -> None:
    MachineWriter().write(command("touch", f"{tmp_path}/a b; touch c"))
    assert [path.name for path in tmp_path.iterdir()] == ["a b; touch c"]


def test_what_it_says_is_told(tmp_path: Path) -> None:
    with pytest.raises(Problem) as caught:
        MachineWriter().write(command("ls", str(tmp_path / "none")))
    assert "No such file" in caught.value.why and caught.value.exit_code is Exit.FINDINGS


def test_one_that_is_not_there() -> None:
    with pytest.raises(Problem, match="cannot be run"):
        MachineWriter().write(command("no-such-program-here"))


def test_one_that_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vgpuctl.sources.commands._SECONDS", 0.2)
    with pytest.raises(Problem) as caught:
        MachineWriter().write(command("sleep", "30"))
    assert caught.value.exit_code is Exit.TIMEOUT


def test_objects_need_a_cluster() -> None:
    with pytest.raises(Problem, match="no cluster"):
        MachineWriter().write(Change(Target("Node", "gpu-1"), How.PATCH, []))


class TestApply:
    def test_without_a_terminal_it_wants_a_yes(self, tmp_path: Path) -> None:
        made = tmp_path / "made"
        with pytest.raises(Problem) as caught:
            apply(MachineWriter(), [Group([command("touch", str(made))])], Conduct(silent))
        assert caught.value.exit_code is Exit.USAGE and not made.exists()

    @pytest.mark.parametrize("dry_run", ["client", "server"])
    def test_a_dry_run_runs_nothing(self, dry_run: str, tmp_path: Path) -> None:
        made = tmp_path / "made"
        apply(MachineWriter(), [Group([command("touch", str(made))])], Conduct(silent, dry_run, yes=True))
        assert not made.exists()

    def test_one_that_fails_leaves_the_next_to_be_tried(self, tmp_path: Path) -> None:
        made = tmp_path / "made"
        steps = [Group([command("false")]), Group([command("touch", str(made))])]
        outcome = apply(MachineWriter(), steps, Conduct(silent, yes=True))
        assert made.exists()
        assert [change.action for change in outcome.changes.changes] == [Action.FAILED, Action.CREATED]
