"""The load program as it may end: every way is told, none hangs or ends in a traceback."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from vgpuctl.model.problem import Problem
from vgpuctl.sources import load_program
from vgpuctl.sources.load_program import LoadProgram

READY = """echo '{"simulated": true, "filled_mib": 0}'; read line; """


def program(script: str) -> LoadProgram:
    return LoadProgram(["sh", "-c", script], os.environ)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("exit 3", "it ended with 3 and said nothing"),
        ("echo 'the driver has no cuInit: not found' >&2; exit 3", "the driver has no cuInit: not found"),
        ("echo hello; sleep 60", "it said 'hello'"),
        ("printf '{\"simulated\"'", "it ended with 0 and said nothing"),
    ],
)
def test_one_that_does_not_stand_ready(script: str, said: str) -> None:
    with pytest.raises(Problem) as told:
        program(script)
    assert told.value.why == said
    assert "doctor" in told.value.remedy


@pytest.mark.parametrize(
    ("script", "what"),
    [
        ("exit 4", "the load program failed"),
        ("echo 'cuMemAlloc: CUDA error 2' >&2; exit 4", "the card has too little free memory for the load program"),
        ("echo 'cuLaunchKernel: CUDA error 719' >&2; exit 4", "the load program failed"),
        ("kill -SEGV $$", "the load program failed"),
    ],
)
def test_one_that_ends_in_the_middle(script: str, what: str) -> None:
    found = program(READY + script)
    assert found.simulated
    with pytest.raises(Problem) as told:
        found.run("dense,20,50,1", 1000, 1.0)
    assert told.value.what == what
    found.close()


def test_one_that_is_silent_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    found = program(READY + "exec sleep 60")
    monkeypatch.setattr(load_program, "_PATIENCE", 0.2)
    with pytest.raises(Problem) as told:
        found.calibrate("dense,20,100,1")
    assert told.value.why == "it did not answer in 0.2 s"
    found.close()


def test_one_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="cannot be started"):
        LoadProgram([str(tmp_path / "share")], os.environ)
