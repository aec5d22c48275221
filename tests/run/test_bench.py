"""`vgpuctl bench`: the real load program under the real library, on the simulated driver, in real time."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.run.test_run import FILL, ROOT, TOOL
from vgpuctl.sources import runs

SHORT = ("--seconds", "0.5", "--kernels", "1ms")
CARD = ("--simulate", "1xT4-16GB")


def bench(place: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "vgpuctl", "bench", *arguments]
    return subprocess.run(command, cwd=ROOT, env=place, capture_output=True, text=True, check=False, timeout=120)


def told(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture
def holder(place: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """A program that holds 2 GiB of the card."""
    command = [*TOOL, "--memory", "2Gi", *CARD, "--", sys.executable, "-c", FILL, "60"]
    process = subprocess.Popen(command, cwd=ROOT, env=place, text=True, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline()
    yield process
    process.kill()
    process.communicate()


def test_each_kernel_at_each_limit_is_a_cell(place: dict[str, str]) -> None:
    """Real time on a machine that does other things: that the shares follow the limits, not how exactly."""
    arguments = ("--seconds", "1", "--kernels", "1ms,10ms", "--limits", "20,80")
    done = bench(place, *CARD, *arguments, "-o", "json")
    found = told(done)
    assert (found["simulated"], found["card"]) == (True, "Tesla T4")
    assert [(cell["kernel"], cell["limit"]) for cell in found["cells"]] == [
        (0.001, 0.2),
        (0.001, 0.8),
        (0.01, 0.2),
        (0.01, 0.8),
    ]
    for cell in found["cells"]:
        assert cell["share"] == pytest.approx(cell["limit"], abs=0.1)
        assert cell["held"] == (abs(cell["share"] - cell["limit"]) <= cell["promise"])
    assert done.returncode == (0 if all(cell["held"] for cell in found["cells"]) else 1)


def test_a_missed_promise_is_exit_code_1(place: dict[str, str]) -> None:
    """A library that is switched off holds no limit."""
    done = bench({**place, "CUDA_DISABLE_CONTROL": "true"}, *CARD, *SHORT, "--limits", "20", "-o", "json")
    (cell,) = told(done)["cells"]
    assert (done.returncode, cell["held"]) == (1, False)
    assert cell["share"] > 0.8


def test_jobs_in_vgpus_are_done_sooner_than_one_after_another(place: dict[str, str]) -> None:
    found = told(bench(place, "sharing", *CARD, "--seconds", "1", "-o", "json"))
    first, together = found["arrangements"]
    assert [len(first["jobs"]), len(together["jobs"])] == [4, 4]
    assert first["makespan"] >= sum(first["jobs"])
    assert first["utilisation"] == pytest.approx(0.25, abs=0.08)
    assert together["makespan"] < first["makespan"]
    assert together["utilisation"] > first["utilisation"]


def test_who_uses_the_card_already_is_named(place: dict[str, str], holder: subprocess.Popen[str]) -> None:
    done = bench(place, *CARD, *SHORT, "--limits", "50")
    assert f"is in use by python{sys.version_info[0]}" in done.stderr
    assert f" {holder.pid} (" in done.stderr
    assert "simulated" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--limits", "0"), 2, "'0' is not a limit"),
        (("--kernels", "1"), 2, "not the length of a kernel"),
        (("--seconds", "0"), 2, "--seconds 0"),
        (("sharing", "--limits", "20"), 2, "--limits with sharing"),
        (("--card", "7", *CARD), 3, "--card 7 names no card"),
        (("--simulate", "nonsense"), 3, "nonsense"),
        (("sharing", "--simulate", "1xT4-16GB:memory=2048"), 3, "too little free memory"),
        (("everything",), 2, "everything"),
    ],
)
def test_what_cannot_be_measured_is_said(
    place: dict[str, str], arguments: tuple[str, ...], code: int, said: str
) -> None:
    done = bench(place, *arguments)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert not done.stdout


def test_a_machine_without_a_card_is_told_of_the_simulated_one(place: dict[str, str]) -> None:
    done = bench({**place, "LD_LIBRARY_PATH": ""}, "--seconds", "0.5", "--limits", "50", "--kernels", "1ms")
    if done.returncode != 3:
        pytest.skip("this machine has a card")
    assert "--simulate" in done.stderr


def test_nothing_is_left_when_it_is_interrupted(place: dict[str, str]) -> None:
    command = [sys.executable, "-m", "vgpuctl", "bench", *CARD, "--seconds", "30", "--kernels", "1ms"]
    process = subprocess.Popen(command, cwd=ROOT, env=place, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    end = time.monotonic() + 30
    while not runs.running(place) and time.monotonic() < end:
        time.sleep(0.05)
    (run,) = runs.running(place)
    time.sleep(1)
    process.send_signal(2)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130, err
    assert not run.folder.exists()
    loads = [path for path in Path("/proc").glob("[0-9]*/environ") if str(run.folder) in _text(path)]
    assert not loads


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
