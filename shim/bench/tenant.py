"""Programs on one card, each in a container's environment, led line by line (share.c --follow).

It needs nothing outside shim/, which alone is carried to a machine with a card.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Row = dict[str, Any]
NO_LIMIT = 100
SM_LIMIT_OFFSET = 1728
"""Of sm_limit[0] in the region; those below are of fields of the first card in its .core (layout/region.yaml)."""
CORE_CARDS_OFFSET = 4096
CORE = {"busy_ns": 264, "throttled_ns": 272, "waits": 280, "launches": 288, "share_1s": 320}
SHORT_US = 20
"""The rate alone of kernels up to so long is measured before and after each cell, that of longer ones once."""
ANSWER_SECONDS = 120.0


@dataclass(frozen=True)
class Alone:
    """A kernel alone on the card, without a limit. period: seconds from one to the next. busy: share of that time."""

    period: float
    busy: float


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
        env = bench.environment(load.container, load.limit, policy, memory) if load.container else None
        fill = ["--fill", str(fill_mib)] if fill_mib else []
        command = [str(bench.programs / "share"), *fill, "--follow"]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, env=env, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        self._ready: Row = {}

    def ready(self) -> Row:
        """What it said when it stood ready: whether its card is simulated, MiB that it took first."""
        self._ready = self._ready or self._answer()
        return self._ready

    def iterations(self) -> int:
        """Of a kernel of the load's length on this card."""
        known = self._bench.iterations
        if self.load.us not in known:
            known[self.load.us] = self._ask(f"calibrate {self.load.cell()}")["iterations"]
        return known[self.load.us]

    def alone(self) -> Alone:
        """At limit 100, on the stream of the load itself. The other programs must be idle."""
        known, key = self._bench.alone, f"{self.load.kind},{self.load.us:g}"
        if self.load.us > SHORT_US and key in known:
            return known[key]
        row = self._ask(f"solo {self.load.cell()} {self.iterations()}")
        known[key] = Alone(row["period_ns"] * 1e-9, row["busy"])
        return known[key]

    def begin(self, seconds: float, at: float = 0, limit: int | None = None) -> None:
        """The figures come by finish(). at: of the monotonic clock, seconds."""
        self._tell(f"run {self.load.cell(seconds, limit)} {self.iterations()} {int(at * 1e9)}")

    def finish(self) -> Row:
        return self._answer()

    def windows(self, begin: float, length: float, count: int) -> list[float]:
        """Percent of time with a kernel running, in windows of the last cell. begin: of the monotonic clock."""
        found: list[float] = self._ask(f"windows {int(begin * 1e9)} {int(length * 1e9)} {count}")["windows"]
        return found

    def set_limit(self, limit: int) -> None:
        """From outside, as an administrator does: one store into the region."""
        with self._bench.region(self.load.container).open("r+b", buffering=0) as file:
            file.seek(SM_LIMIT_OFFSET)
            file.write(limit.to_bytes(8, "little"))

    def published(self) -> Row:
        """What the library says of itself in <region>.core."""
        path = self._bench.region(self.load.container)
        card = path.with_name(path.name + ".core").read_bytes()[CORE_CARDS_OFFSET:]
        return {name: int.from_bytes(card[offset : offset + 8], "little") for name, offset in CORE.items()}

    def end(self) -> str:
        """What it wrote on its standard error."""
        self._process.kill()
        return self._process.communicate()[1]

    def _ask(self, line: str) -> Row:
        self._tell(line)
        return self._answer()

    def _tell(self, line: str) -> None:
        self.ready()
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._failed() from None

    def _answer(self) -> Row:
        """Raises RuntimeError when the program ends or says nothing for too long."""
        assert self._process.stdout is not None
        late = threading.Timer(ANSWER_SECONDS, self._process.kill)
        late.start()
        line = self._process.stdout.readline()
        late.cancel()
        if not line:
            raise self._failed()
        row: Row = json.loads(line)
        return row

    def _failed(self) -> RuntimeError:
        said = self.end().strip()[-300:]
        return RuntimeError(f"{self.load.cell()}: share ended with {self._process.returncode}: {said}")


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
            tenant.end()


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
