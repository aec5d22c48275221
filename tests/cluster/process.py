"""Programs that cannot outlive the bench: child processes, ports, and the bench's directory."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None

# Removes the directory once its standard input ends: when the bench closes it, or when the process that
# held the other end died in whatever way. Programs may still be writing for a moment, hence the loop.
_GUARD = 'trap "" INT TERM HUP; cat >/dev/null; until rm -rf "$1" 2>/dev/null; do sleep 0.1; done'


class ProgramError(Exception):
    """A program of the bench ended or was not ready in time; the text holds the end of its log."""


class Program:
    """One running program, its log at `log`. It dies with the thread that started it (on Linux)."""

    def __init__(self, name: str, command: Sequence[str], log: Path) -> None:
        self.name = name
        self._command = command
        self._log = log
        self._start()

    def _start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self._log.parent,
                # A session of its own, so that Ctrl-C in the terminal reaches the tests first.
                start_new_session=True, preexec_fn=_die_with_parent,
            )  # fmt: skip

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_until(self, ready: Callable[[], bool], timeout: float = 180.0) -> None:
        """Returns when `ready()` is true; raises ProgramError when the program ends or time is up."""
        deadline = time.monotonic() + timeout
        while not ready():
            if self._process.poll() is not None:
                raise ProgramError(f"{self.name} ended with {self._process.returncode}:\n{self._tail()}")
            if time.monotonic() > deadline:
                raise ProgramError(f"{self.name} was not ready in {timeout:.0f} s:\n{self._tail()}")
            time.sleep(0.05)

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def stop(self, number: signal.Signals = signal.SIGKILL, timeout: float = 30.0) -> None:
        """Ends it and waits for that. All data is temporary, so the default is the quickest way."""
        self._process.send_signal(number)
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def restart(self) -> None:
        """Kills it and starts the same command again."""
        self.stop()
        self._start()

    def _tail(self) -> str:
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-15:])


class Scratch:
    """A temporary directory that is removed even if this process is killed."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="vgpuctl-bench-"))
        self._guard = subprocess.Popen(
            ["sh", "-c", _GUARD, "guard", str(self.path)],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            cwd="/", start_new_session=True,
        )  # fmt: skip

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        assert self._guard.stdin
        self._guard.stdin.close()
        self._guard.wait()


def free_ports(count: int) -> list[int]:
    """Ports that were free on 127.0.0.1 a moment ago, each another."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def _die_with_parent() -> None:
    if _libc is not None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == 1:
            os.kill(os.getpid(), signal.SIGKILL)
