"""The core limit beside captures, many threads, default streams, and contexts that come and go: in real time."""

from __future__ import annotations

import subprocess

import pytest
from machine import PROGRAMS, SHIM, Machine


@pytest.mark.parametrize("program", ["core_capture", "core_churn"])
@pytest.mark.parametrize("limit", [10, 60, 99])
def test_the_program_runs_as_ever(machine: Machine, program: str, limit: int) -> None:
    sources = [SHIM / "tests" / "programs" / name for name in (f"{program}.c", "api.c")]
    command = [
        "cc",
        "-std=c11",
        "-O1",
        "-g",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-pthread",
        *sources,
        "-o",
        PROGRAMS / program,
        "-ldl",
    ]
    subprocess.run(command, check=True, capture_output=True)
    container = machine.container(CUDA_DEVICE_SM_LIMIT=str(limit), GPU_CORE_UTILIZATION_POLICY="force")
    done = container.run(PROGRAMS / program, timeout=120)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
