"""The machines that exist only for programs of `vgpuctl run --simulate`: cards of the simulated driver, real regions.

Runs with the same cards and the same state of the simulated driver share a machine, as their programs share the cards.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vgpuctl.model.facts import Part
from vgpuctl.model.host import Host
from vgpuctl.model.reading import Reading, known, missing
from vgpuctl.model.region import RegionFile
from vgpuctl.sources import runs
from vgpuctl.sources.driver import NvmlDriver
from vgpuctl.sources.region import Companions, read_processes, region_file

_TITLE = 40
_PROC = Path("/proc")
_CARDS = "VGPUCTL_FAKE_GPUS"


class SimulatedMachine:
    """One simulated machine, read anew at each question."""

    scope = ""
    parts = frozenset({Part.HOST, Part.DRIVER, Part.CARDS, Part.REGIONS})

    def __init__(self, driver: NvmlDriver, programs: tuple[runs.Run, ...], companions: Companions) -> None:
        self._driver = driver
        self._programs = programs
        self._companions = companions
        self.name = f"simulated {programs[0].state.simulated[_CARDS]}"

    def now(self) -> float:
        return time.time()

    def read(self, part: Part) -> Reading[Any]:
        if part is Part.HOST:
            return known(Host(name=self.name), self.name, self.now())
        if part is Part.DRIVER:
            return self._driver.read()[0]
        if part is Part.CARDS:
            return self._driver.read()[1]
        if part is Part.REGIONS:
            found = self._companions.remembered(regions(self._programs), self.now())
            return known(found, self.name, self.now())
        return missing(f"{self.name} does not hold {part.value}", self.name)


class Simulation:
    """All simulated machines of this user; a driver's child process is kept while one of its programs runs."""

    def __init__(self, companions: Companions, environment: Mapping[str, str] | None = None) -> None:
        self._companions = companions
        self._environment = os.environ if environment is None else environment
        self._drivers: dict[tuple[tuple[str, str], ...], NvmlDriver] = {}

    def machines(self) -> tuple[SimulatedMachine, ...]:
        """The machines that have a running program now."""
        groups: dict[tuple[tuple[str, str], ...], list[runs.Run]] = {}
        for run in runs.running(self._environment):
            if _CARDS in run.state.simulated:
                groups.setdefault(tuple(sorted(run.state.simulated.items())), []).append(run)
        for key in [key for key in self._drivers if key not in groups]:
            self._drivers.pop(key).close()
        for key in groups:
            self._drivers.setdefault(key, NvmlDriver(environment=dict(key)))
        return tuple(
            SimulatedMachine(self._drivers[key], tuple(found), self._companions) for key, found in groups.items()
        )


def real_regions(environment: Mapping[str, str]) -> tuple[RegionFile, ...]:
    """The regions of runs on the real driver."""
    return regions(tuple(run for run in runs.running(environment) if not run.state.simulated))


def regions(programs: tuple[runs.Run, ...]) -> tuple[RegionFile, ...]:
    """The regions of some runs, each titled by its process and its command."""
    processes = read_processes(_PROC) if programs else None
    return tuple(region_file(run.region, processes, container=_title(run)) for run in programs)


def _title(run: runs.Run) -> str:
    command = run.state.command
    words = " ".join([Path(command[0]).name, *command[1:]]).split()
    return f"run {run.state.pid} {' '.join(words)}"[:_TITLE].rstrip()
