"""The NVIDIA driver of this machine, asked through NVML in a child process with a deadline.

The child lives on between questions, so a screen that refreshes pays for starting it once.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from vgpuctl.model.card import Card, Driver, Library
from vgpuctl.model.reading import Reading, missing

if TYPE_CHECKING:
    from vgpuctl.sources.nvml import Answer

_SOURCE = "NVML"
_PACKAGE_ROOT = str(Path(__file__).resolve().parents[2])
_CHILD = (sys.executable, "-m", "vgpuctl.sources.nvml")


@dataclass(frozen=True)
class _Child:
    """The process, and the socket that is its stdin and stdout (a socket: writing to it raises no SIGPIPE)."""

    process: subprocess.Popen[bytes]
    wire: socket.socket


class NvmlDriver:
    """Asks NVML; every answer comes within the deadline (seconds), or is missing with the reason."""

    def __init__(self, deadline: float = 10.0, environment: Mapping[str, str] | None = None) -> None:
        """environment: what to add to ours, for a simulated driver."""
        self._deadline = deadline
        self._added = dict(environment or {})
        self._child: _Child | None = None
        self._lock = threading.Lock()

    def read(self) -> tuple[Reading[Driver], Reading[tuple[Card, ...]]]:
        """The driver and the cards that answer, at this moment."""
        with self._lock:
            answer = self._ask()
        if isinstance(answer, str):
            return missing(answer, _SOURCE), missing(answer, _SOURCE)
        return answer.driver, answer.cards

    def library(self) -> Reading[Library]:
        """libcuda, loaded in a process of its own."""
        try:
            done = subprocess.run(
                [*_CHILD, "library"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=self._deadline,
                env=_environment(self._added),
                check=False,
            )
        except subprocess.TimeoutExpired:
            return missing(f"loading libcuda.so.1 took longer than {self._deadline:g} s", "libcuda.so.1")
        if done.returncode:
            return missing(f"loading libcuda.so.1 ended with {_ending(done.returncode)}", "libcuda.so.1")
        return msgspec.json.decode(done.stdout, type=Reading[Library])

    def close(self) -> None:
        """Ends the child. A child that the driver holds is left behind, it cannot be ended."""
        child, self._child = self._child, None
        if child is None:
            return
        child.process.kill()
        child.wire.close()
        with suppress(subprocess.TimeoutExpired):
            child.process.wait(timeout=0.5)

    def _ask(self) -> Answer | str:
        from vgpuctl.sources.nvml import Answer

        child = self._child or self._start()
        if isinstance(child, str):
            return child
        try:
            child.wire.send(b"\n", getattr(socket, "MSG_NOSIGNAL", 0))
        except OSError:
            return self._ended()
        line = self._line(child)
        if line is None:
            self.close()
            return f"NVML did not answer in {self._deadline:g} s: the driver hangs"
        if not line:
            return self._ended()
        return msgspec.json.decode(line, type=Answer)

    def _start(self) -> _Child | str:
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                process = subprocess.Popen(
                    _CHILD,
                    stdin=theirs.fileno(),
                    stdout=theirs.fileno(),
                    stderr=subprocess.DEVNULL,
                    env=_environment(self._added),
                    start_new_session=True,
                )
        except OSError as error:
            ours.close()
            return f"the reader of NVML cannot be started: {error.strerror}"
        self._child = _Child(process, ours)
        return self._child

    def _line(self, child: _Child) -> bytes | None:
        """The child's next line; b"" when it ended, None when it is late."""
        end = time.monotonic() + self._deadline
        data = b""
        while not data.endswith(b"\n"):
            child.wire.settimeout(max(end - time.monotonic(), 0.001))
            try:
                part = child.wire.recv(1 << 16)
            except TimeoutError:
                return None
            except OSError:
                return b""
            if not part:
                return b""
            data += part
        return data

    def _ended(self) -> str:
        child = self._child
        code = 0
        with suppress(subprocess.TimeoutExpired):
            code = child.process.wait(timeout=1) if child else 0
        self.close()
        return f"the reader of NVML ended with {_ending(code)}"


def _ending(code: int) -> str:
    try:
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    except ValueError:
        return f"exit code {code}"


def _environment(added: Mapping[str, str]) -> dict[str, str]:
    """Ours with some more, and with this package to be found by the child."""
    path = os.environ.get("PYTHONPATH", "")
    found = f"{_PACKAGE_ROOT}{os.pathsep}{path}" if path else _PACKAGE_ROOT
    return {**os.environ, **added, "PYTHONPATH": found}
