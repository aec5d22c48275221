"""Programs on one card, each in a container's environment, led line by line (share.c --follow)."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from vgpuctl.model import region_layout as layout  # noqa: E402  (only the standard library is needed)

Row = dict[str, Any]
NO_LIMIT = 100
SHORT_US = 20
"""The solo rate of kernels up to so long is measured before and after each cell, that of longer ones once."""
ANSWER_SECONDS = 120.0


@dataclass(frozen=True)
class Solo:
    """A kernel alone on the card, without a limit. period_ns: from one start to the next. busy: share of that time."""

    period_ns: float
    busy: float


@dataclass
class Bench:
    """The library under test, the programs, a folder for regions; what was measured once and holds for later cells."""

    library: Path
    programs: Path
    directory: Path
    iterations: dict[float, int] = field(default_factory=dict)
    solo: dict[str, Solo] = field(default_factory=dict)

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
        self.filled_mib = self.answer()["filled_mib"] if fill else 0
        self._ready = False

    def tell(self, line: str) -> None:
        if not self._ready:
            self.answer()
            self._ready = True
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._failed() from None

    def answer(self) -> Row:
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

    def ask(self, line: str) -> Row:
        self.tell(line)
        return self.answer()

    def iterations(self) -> int:
        """Of a kernel of the load's length on this card."""
        known = self._bench.iterations
        if self.load.us not in known:
            known[self.load.us] = self.ask(f"calibrate {self.load.cell()}")["iterations"]
        return known[self.load.us]

    def solo(self) -> Solo:
        """Alone, at limit 100, on the stream of the load itself. The other programs must be idle."""
        known, key = self._bench.solo, f"{self.load.kind},{self.load.us:g}"
        if self.load.us > SHORT_US and key in known:
            return known[key]
        row = self.ask(f"solo {self.load.cell()} {self.iterations()}")
        known[key] = Solo(row["period_ns"], row["busy"])
        return known[key]

    def begin(self, seconds: float, at_ns: int = 0, limit: int | None = None) -> None:
        """The figures are the next answer."""
        self.tell(f"run {self.load.cell(seconds, limit)} {self.iterations()} {at_ns}")

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

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()

    def _failed(self) -> RuntimeError:
        self._process.kill()
        _, err = self._process.communicate()
        return RuntimeError(f"{self.load.cell()}: share ended with {self._process.returncode}: {err.strip()[-300:]}")


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
