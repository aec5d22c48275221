"""Programs on one card, each in a container's environment, led line by line (share.c --follow)."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from vgpuctl.model import region_layout as layout  # noqa: E402  (these need the standard library only)
from vgpuctl.model.problem import Problem  # noqa: E402
from vgpuctl.sources.load_program import Alone, LoadProgram  # noqa: E402

__all__ = ["NO_LIMIT", "ROOT", "Alone", "Bench", "Load", "Problem", "Row", "Tenant", "spinners", "tenants"]

Row = dict[str, Any]
NO_LIMIT = 100
SHORT_US = 20
"""The rate alone of kernels up to so long is measured before and after each cell, that of longer ones once."""
LONGEST_SECONDS = 60.0


@dataclass
class Bench:
    """The library under test, the programs, a folder for regions; what was measured once and holds for later cells."""

    library: Path
    programs: Path
    directory: Path
    iterations: dict[float, int] = field(default_factory=dict)
    alone: dict[str, Alone] = field(default_factory=dict)

    def region(self, name: str) -> Path:
        return self.directory / name / "v.cache"

    def environment(self, name: str, limit: int, policy: str = "force", memory: str = "") -> dict[str, str]:
        """What a container of that name has: a region directory of its own, its limits, the library."""
        self.region(name).parent.mkdir(exist_ok=True)
        env = dict(
            os.environ,
            LD_PRELOAD=":".join(filter(None, (str(self.library), os.environ.get("LD_PRELOAD", "")))),
            CUDA_DEVICE_MEMORY_SHARED_CACHE=str(self.region(name)),
            CUDA_DEVICE_SM_LIMIT=str(limit),
            GPU_CORE_UTILIZATION_POLICY=policy,
            LIBCUDA_LOG_LEVEL="0",
        )
        if memory:
            env["CUDA_DEVICE_MEMORY_LIMIT"] = memory
        return env

    def run(self, program: str, *words: object, env: dict[str, str] | None = None, timeout: float = 120) -> list[Row]:
        """The lines of JSON that a program prints. Raises RuntimeError when it fails or takes too long."""
        command = [program if os.sep in program else str(self.programs / program), *map(str, words)]
        try:
            done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=timeout, check=False)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"{program} was not done after {timeout:g} s") from None
        if done.returncode:
            raise RuntimeError(f"{program} ended with {done.returncode}: {done.stderr.strip()[-300:]}")
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


@dataclass(frozen=True)
class Load:
    """What one program does, and where. container: its name, "" for none, without the library. limit: of the container.
    us: of a kernel, microseconds."""

    kind: str
    us: float
    limit: int
    container: str

    def cell(self, seconds: float = 1, limit: int | None = None) -> str:
        return f"{self.kind},{self.us:g},{self.limit if limit is None else limit},{seconds:g}"


class Tenant:
    """One program that runs and does what it is told."""

    def __init__(self, bench: Bench, load: Load, policy: str = "force", memory: str = "", fill_mib: int = 0) -> None:
        self.load, self._bench = load, bench
        env = bench.environment(load.container, load.limit, policy, memory) if load.container else dict(os.environ)
        fill = ["--fill", str(fill_mib)] if fill_mib else []
        self.program = LoadProgram([str(bench.programs / "share"), *fill, "--follow"], env)

    def iterations(self) -> int:
        """Of a kernel of the load's length on this card."""
        known = self._bench.iterations
        if self.load.us not in known:
            known[self.load.us] = self.program.calibrate(self.load.cell())
        return known[self.load.us]

    def alone(self) -> Alone:
        """At limit 100, on the stream of the load itself. The other programs must be idle."""
        known, key = self._bench.alone, f"{self.load.kind},{self.load.us:g}"
        if self.load.us > SHORT_US and key in known:
            return known[key]
        known[key] = self.program.alone(self.load.cell(), self.iterations())
        return known[key]

    def begin(self, seconds: float, at: float = 0, limit: int | None = None) -> None:
        """The figures come by finish(). at: of the monotonic clock, seconds."""
        self.program.begin(self.load.cell(seconds, limit), self.iterations(), at)

    def finish(self) -> Row:
        return self.program.finish(LONGEST_SECONDS)

    def set_limit(self, limit: int) -> None:
        """From outside, as an administrator does: one store into the region."""
        with self._bench.region(self.load.container).open("r+b", buffering=0) as file:
            file.seek(layout.REGION_FILE_SM_LIMIT.offset)
            file.write(limit.to_bytes(8, "little"))

    def published(self) -> Row:
        """What the library says of itself in <region>.core."""
        path = self._bench.region(self.load.container)
        data = path.with_name(path.name + layout.CORE_SUFFIX).read_bytes()
        record = data[layout.CORE_CARDS_OFFSET : layout.CORE_CARDS_OFFSET + layout.CORE_CARD_SIZE]
        fields = {
            "busy_ns": layout.CORE_CARD_BUSY_TIME,
            "throttled_ns": layout.CORE_CARD_THROTTLED_TIME,
            "waits": layout.CORE_CARD_WAITS,
            "launches": layout.CORE_CARD_LAUNCHES,
            "share_1s": layout.CORE_CARD_SHARE_1S,
        }
        return {
            name: int.from_bytes(record[place.offset : place.offset + 8], "little") for name, place in fields.items()
        }


@contextlib.contextmanager
def tenants(
    bench: Bench, loads: Sequence[Load], policy: str = "force", memory: str = "", fill_mib: int = 0
) -> Iterator[list[Tenant]]:
    """All of them at once, ended at the latest when the block is left."""
    running: list[Tenant] = []
    try:
        for load in loads:
            running.append(Tenant(bench, load, policy, memory, fill_mib))  # noqa: PERF401  (all begun are ended)
        yield running
    finally:
        for tenant in running:
            tenant.program.close()


@contextlib.contextmanager
def spinners(count: int, seconds: float) -> Iterator[None]:
    """So many processes that compute all the time, for `seconds` at the longest."""
    pids = []
    for _ in range(count):
        pid = os.fork()
        if not pid:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                pass
            os._exit(0)
        pids.append(pid)
    try:
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
