"""Prepares a program to run under a limit: its state on this machine and its environment."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vgpuctl import resources
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.model.run import Limits, RunState, environment
from vgpuctl.sources import runs

_LOCKS = Path("/tmp/vgpulock")
OWN_FAILURE = 125


@dataclass(frozen=True)
class Prepared:
    """What to execute, and the directory of its state."""

    command: tuple[str, ...]
    environment: dict[str, str]
    folder: Path

    def forget(self) -> None:
        """Undoes the preparation, when the program could not be started."""
        runs.remove(self.folder)


def prepare(command: Sequence[str], limits: Limits, simulate: str, before: Mapping[str, str]) -> Prepared:
    """Writes the state of the run of this process (which will become the program) and gives what to execute.

    simulate: cards for the fake driver, "" for the real one. Raises Problem.
    """
    machine = platform.machine()
    library = _library(f"shim/build/{machine}/libvgpu.so", "the library")
    simulated = None
    if simulate:
        driver = _library(f"shim/build/{machine}/fake/libcuda.so.1", "the simulated driver")
        simulated = (str(driver.parent), simulate)
    folder = runs.create(runs.base(before))
    pid = os.getpid()
    state = RunState(
        pid=pid,
        started=runs.start_of(pid),
        command=list(command),
        nvml=simulated[0] if simulated else "",
        cards=simulate,
    )
    runs.save(folder, state)
    _make_locks()
    region = str(runs.region_of(folder))
    after = environment(before, limits, str(library), region, simulated)
    return Prepared(tuple(command), after, folder)


def _library(name: str, what: str) -> Path:
    try:
        return resources.path(name)
    except FileNotFoundError:
        raise Problem(
            f"{what} ({name}) is not part of this installation",
            "it was built with VGPUCTL_NO_SHIM=1, or this is a checkout where `make shim` has not run",
            "run `make shim`, or install a wheel that has it",
            Exit.UNKNOWN,
        ) from None


def _make_locks() -> None:
    """/tmp/vgpulock, where the containers of one card meet: everybody may write there, nobody may remove another's."""
    try:
        _LOCKS.mkdir()
        _LOCKS.chmod(0o1777)
    except OSError:
        pass
