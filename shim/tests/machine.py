"""A simulated machine, containers on it, and processes in them that do as they are told.

The simulated driver is the truth: `Machine.used` asks it from outside every container, without the shim.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import select
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHIM = ROOT / "shim"
BUILD = SHIM / "build"
PROGRAMS = BUILD / "tests"
LOCKS = Path("/tmp/vgpulock")
MIB = 1 << 20

OUT_OF_MEMORY = 2
NOT_INITIALISED = 3
ABSENT = -1  # this driver has no such function

Finished = subprocess.CompletedProcess[str]

TIMEOUT = 20  # seconds for an answer
PASSED_ON = ("PATH", "HOME", "LANG", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LSAN_OPTIONS")


def library() -> Path:
    """The shim under test; the first fixture sets VGPU_LIBRARY where nobody did."""
    return Path(os.environ["VGPU_LIBRARY"])


def settles(holds: Callable[[], bool], seconds: float = 2) -> None:
    """Waits until it holds: the shim measures what the driver itself takes at most some times a second."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not settle"
        time.sleep(0.02)


def run(*command: object, env: dict[str, str], timeout: float = 60) -> Finished:
    words = [str(word) for word in command]
    return subprocess.run(words, env=env, capture_output=True, text=True, timeout=timeout, check=False)


def piped(command: list[str], env: dict[str, str]) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=env, stdin=pipe, stdout=pipe, stderr=pipe, text=True, bufsize=1)


class Actor:
    """A process running programs/actor.c. Every method gives the driver's result code first."""

    def __init__(self, command: list[str], env: dict[str, str]) -> None:
        self.process = piped(command, env)
        self.stderr: list[str] = []
        self._reader = threading.Thread(target=self._read_stderr, daemon=True)
        self._reader.start()

    def _read_stderr(self) -> None:
        assert self.process.stderr
        self.stderr.extend(self.process.stderr)

    @property
    def pid(self) -> int:
        return self.process.pid

    def send(self, *words: object) -> None:
        assert self.process.stdin
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def receive(self) -> tuple[int, list[str]]:
        assert self.process.stdout
        if not select.select([self.process.stdout], [], [], TIMEOUT)[0]:
            raise AssertionError(f"no answer within {TIMEOUT} s: {''.join(self.stderr)[-2000:]}")
        line = self.process.stdout.readline()
        if not line:
            code = self.process.wait(10)
            self._reader.join(2)
            raise AssertionError(f"the process ended with {code}: {''.join(self.stderr)[-2000:]}")
        code, *values = line.split()
        return int(code), values

    def ask(self, *words: object) -> tuple[int, list[str]]:
        """Send one command; its result code and values."""
        self.send(*words)
        return self.receive()

    def do(self, *words: object) -> int:
        return self.ask(*words)[0]

    def ok(self, *words: object) -> list[str]:
        code, values = self.ask(*words)
        assert code == 0, f"{' '.join(map(str, words))}: {code}; {''.join(self.stderr)[-2000:]}"
        return values

    def start(self, device: int = 0) -> Actor:
        """cuInit and the primary context."""
        self.ok("init")
        self.ok("retain", device)
        return self

    def info(self) -> tuple[int, int]:
        """Free and total bytes as the program sees them."""
        free, total = self.ok("info")
        return int(free), int(total)

    def quit(self) -> int:
        with contextlib.suppress(OSError, ValueError):
            self.send("quit")
        return self.process.wait(20)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(10)


def own_card(model: str) -> str:
    """One card with a UUID that no other simulated machine has: containers with the same card take turns on it."""
    return f"1x{model}:uuid=GPU-{uuid.uuid4()}"


@dataclass
class Machine:
    """Simulated cards with a state of their own under `directory`."""

    directory: Path
    gpus: str = "1xT4-16GB"
    driver: str = "580.159.04"
    actors: list[Actor] = field(default_factory=list)
    _watcher: subprocess.Popen[str] | None = None
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    @property
    def env(self) -> dict[str, str]:
        """What every process on the machine has: no limits, no shim."""
        kept = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        return kept | {
            "LD_LIBRARY_PATH": str(BUILD / "fake" / self.driver),
            "VGPUCTL_FAKE_GPUS": self.gpus,
            "VGPUCTL_FAKE_STATE": str(self.directory / "machine.state"),
        }

    def virtual(self, processes: int = 1) -> dict[str, str]:
        """For a container's programs: the clock only moves when all wait, however busy this machine is."""
        return {
            "LD_PRELOAD": f"{library()}:{BUILD / 'fake' / self.driver / 'libvtime.so'}",
            "VGPUCTL_FAKE_TIME": "virtual",
            "VGPUCTL_FAKE_THREADS": str(processes),
        }

    def used(self, card: int = 0) -> dict[int, int]:
        """The card's processes: bytes by pid."""
        if self._watcher is None:
            self._watcher = piped([str(PROGRAMS / "watcher")], self.env)
        assert self._watcher.stdin
        assert self._watcher.stdout
        self._watcher.stdin.write("\n")
        text = self._watcher.stdout.readline().rstrip("\n").split(" ")[card].split(":")[1]
        return {int(pid): int(used) for pid, used in (entry.split("=") for entry in text.split(",") if entry)}

    def run(self, *command: object, env: dict[str, str] | None = None, timeout: float = 60) -> Finished:
        """Run a program to its end, outside every container or with the environment given."""
        return run(*command, env=self.env if env is None else env, timeout=timeout)

    def container(self, **limits: str) -> Container:
        """A container with these environment variables and a region file of its own."""
        directory = self.directory / f"container{next(self._numbers)}"
        directory.mkdir()
        return Container(self, directory, limits)

    def actor(self, how: str = "getproc", env: dict[str, str] | None = None, program: str = "actor") -> Actor:
        """An actor outside every container, or with the environment given."""
        actor = Actor([str(PROGRAMS / program), how], self.env if env is None else env)
        self.actors.append(actor)
        return actor

    def close(self) -> None:
        for actor in self.actors:
            if actor.process.poll() is None:
                actor.process.kill()
            actor.process.wait(10)
        if self._watcher:
            self._watcher.kill()
            self._watcher.wait(10)
        for card in re.findall(":uuid=([^:,]+)", self.gpus):
            (LOCKS / f"{card}.turns").unlink(missing_ok=True)


@dataclass
class Container:
    """The contract's environment: limits, the region's path, the shim by LD_PRELOAD."""

    machine: Machine
    directory: Path
    limits: dict[str, str]

    @property
    def region(self) -> Path:
        return self.directory / "vgpu.cache"

    @property
    def env(self) -> dict[str, str]:
        return self.machine.env | {
            "LD_PRELOAD": str(library()),
            "CUDA_DEVICE_MEMORY_SHARED_CACHE": str(self.region),
            **self.limits,
        }

    def actor(self, how: str = "getproc", program: str = "actor", **more: str) -> Actor:
        return self.machine.actor(how, self.env | more, program)

    def run(self, *command: object, timeout: float = 60, **more: str) -> Finished:
        return run(*command, env=self.env | more, timeout=timeout)
