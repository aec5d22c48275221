"""One machine as a source of facts: its files, its driver, its region files."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import replace
from typing import Any

from vgpuctl.model import smi
from vgpuctl.model.card import Card, Driver, Library
from vgpuctl.model.facts import Part
from vgpuctl.model.host import Host
from vgpuctl.model.reading import Reading, known, missing
from vgpuctl.model.region import RegionFile
from vgpuctl.model.shim import LIBRARY, LOCKS, PRELOAD, REGIONS
from vgpuctl.sources.driver import NvmlDriver
from vgpuctl.sources.files import Files, LocalFiles
from vgpuctl.sources.host import read_host
from vgpuctl.sources.recorded import RecordedFiles
from vgpuctl.sources.region import Companions, read_regions, recorded_regions
from vgpuctl.sources.shim import read_shim
from vgpuctl.sources.simulated import SimulatedMachine, Simulation, real_regions

_Cards = tuple[Reading[Driver], Reading[tuple[Card, ...]]]


class Machine:
    """This machine, a tree under a directory of it, or one that was recorded. The driver is asked once until
    `refresh`."""

    scope = ""
    parts = frozenset({Part.HOST, Part.DRIVER, Part.CARDS, Part.REGIONS, Part.SHIM})

    def __init__(self, files: Files, driver: NvmlDriver | None = None, *, at: float | None = None) -> None:
        """driver: None where NVML cannot be asked; then a recorded `nvidia-smi -q -x` is read. at: when it was
        recorded, None for now."""
        self._files = files
        self._driver = driver
        if isinstance(files, RecordedFiles):
            self.parts = Machine.parts - _not_recorded(files)
        self._at = at
        self._lock = threading.Lock()
        self._companions = Companions()
        self._simulation = Simulation(self._companions)
        self._cards: _Cards | None = None
        self._host: Reading[Host] | None = None
        self._library: Reading[Library] | None = None

    @classmethod
    def local(cls, root: str = "", deadline: float = 10.0) -> Machine:
        """This machine; with a root, the machine whose file system lies there."""
        if root.rstrip("/"):
            return cls(LocalFiles(root))
        return cls(LocalFiles(), NvmlDriver(deadline))

    @classmethod
    def recorded(cls, files: RecordedFiles, at: float | None = None) -> Machine:
        """A machine of a bundle."""
        return cls(files, at=at)

    @property
    def name(self) -> str:
        kind = "this node" if self._driver else "files of"
        return f"{kind} {self._files.name}"

    def now(self) -> float:
        return time.time() if self._at is None else self._at

    def read(self, part: Part) -> Reading[Any]:
        if part is Part.HOST:
            return self._read_host()
        if part is Part.DRIVER:
            return self._read_driver()
        if part is Part.CARDS:
            return self._read_cards()[1]
        if part is Part.REGIONS:
            return self._read_regions()
        if part is Part.SHIM:
            return known(read_shim(self._files), self._files.name, self.now())
        return missing(f"{self.name} does not hold {part.value}", self.name)

    def has_gpu(self) -> bool:
        """Whether any sign of an NVIDIA GPU is here; False too when nothing could be read."""
        return self._read_host().need().has_gpu is True or bool(self._read_cards()[1].value)

    def refresh(self) -> None:
        """Lets the next reading look again."""
        with self._lock:
            self._cards = None
            self._host = None

    def simulated(self) -> tuple[SimulatedMachine, ...]:
        """The simulated machines that run beside this one."""
        return self._simulation.machines() if self._driver else ()

    def close(self) -> None:
        if self._driver:
            self._driver.close()

    def _read_cards(self) -> _Cards:
        with self._lock:
            if self._cards is None:
                self._cards = self._driver.read() if self._driver else self._recorded_cards()
            return self._cards

    def _read_host(self) -> Reading[Host]:
        with self._lock:
            if self._host is None:
                self._host = known(read_host(self._files), self._files.name, self.now())
            return self._host

    def _read_driver(self) -> Reading[Driver]:
        """The driver with its libcuda, which is looked at once."""
        reading = self._read_cards()[0]
        if reading.value is None or self._driver is None:
            return reading
        if self._library is None:
            self._library = self._driver.library()
        return known(replace(reading.value, library=self._library), reading.source, reading.at)

    def _read_regions(self) -> Reading[tuple[RegionFile, ...]]:
        """The regions of containers, and on this very machine those of `vgpuctl run`."""
        files = self._files
        if not isinstance(files, LocalFiles):
            return recorded_regions(REGIONS, files)
        containers = read_regions(files.outer(REGIONS), files.outer("/"))
        mine = real_regions(os.environ) if self._driver else ()
        if not mine and not containers.known:
            return containers
        unread = "" if containers.known or containers.absent else containers.reason
        found = self._companions.remembered((*(containers.value or ()), *mine), self.now())
        return Reading(found, containers.source, self.now(), note=unread)

    def _recorded_cards(self) -> _Cards:
        text = self._files.read("/commands/nvidia-smi-q-x.txt", 16 << 20)
        if text.value is None:
            reason = f"NVML cannot be asked for {self._files.name}, and no `nvidia-smi -q -x` is recorded"
            return missing(reason, text.source), missing(reason, text.source)
        try:
            driver, cards = smi.xml(text.value)
        except ValueError as error:
            return missing(f"{text.source}: {error}", text.source), missing(f"{text.source}: {error}", text.source)
        return known(driver, text.source), known(cards, text.source)


def _not_recorded(files: RecordedFiles) -> frozenset[Part]:
    """What a recording holds nothing of."""
    lacks = set() if files.list(REGIONS).known else {Part.REGIONS}
    if not any(files.stat(path).known for path in (LIBRARY, PRELOAD, REGIONS, LOCKS)):
        lacks.add(Part.SHIM)
    return frozenset(lacks)
