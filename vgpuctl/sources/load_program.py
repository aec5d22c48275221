"""The program that keeps a card busy with kernels of fixed work, led a line at a time (shim/bench/share.c --follow)."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from vgpuctl.model.problem import Problem

_OUT_OF_MEMORY = "CUDA error 2\n"
_PATIENCE = 60.0
"""Seconds that an answer may take beyond the time that it is asked to measure."""


class LoadProgram:
    """One such program. simulated: its card runs no kernels.

    A cell is `kind,microseconds,limit,seconds`, as share.c says. Every call raises Problem when the program ends.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Raises Problem when it cannot be started or finds no card that it can use."""
        pipe = subprocess.PIPE
        try:
            self._process = subprocess.Popen(
                command, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True, start_new_session=True
            )
        except OSError as error:
            raise Problem("the load program cannot be started", f"{command[0]}: {error.strerror}") from None
        self.simulated = bool(self._answer(_PATIENCE)["simulated"])

    def calibrate(self, cell: str) -> int:
        """The iterations of a kernel of that length on this card."""
        return int(self._ask(f"calibrate {cell}")["iterations"])

    def period(self, cell: str, iterations: int) -> float:
        """Seconds from one kernel to the next without a limit; the card's other programs must be idle."""
        return float(self._ask(f"solo {cell} {iterations}")["period_ns"]) * 1e-9

    def run(self, cell: str, iterations: int, seconds: float) -> dict[str, Any]:
        """One cell: how many kernels ran in how many seconds, and when it began and ended."""
        self.begin(cell, iterations)
        return self.finish(seconds)

    def begin(self, cell: str, iterations: int, at: float = 0) -> None:
        """Begins one cell, at a time of the monotonic clock."""
        self._tell(f"run {cell} {iterations} {int(at * 1e9)}")

    def finish(self, seconds: float) -> dict[str, Any]:
        """The figures of the cell that was begun."""
        return self._answer(seconds + _PATIENCE)

    def close(self) -> None:
        """Ends it."""
        self._process.kill()
        self._process.communicate()

    def _ask(self, line: str) -> dict[str, Any]:
        self._tell(line)
        return self._answer(_PATIENCE)

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._ended() from None

    def _answer(self, patience: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        late = threading.Timer(patience, self._process.kill)
        late.start()
        try:
            line = self._process.stdout.readline()
        finally:
            waiting = late.is_alive()
            late.cancel()
        if not line.endswith("\n"):
            raise self._ended("" if waiting else f"it did not answer in {patience:g} s")
        try:
            answer: dict[str, Any] = json.loads(line)
        except ValueError:
            raise self._ended(f"it said {line.strip()[:80]!r}") from None
        return answer

    def _ended(self, why: str = "") -> Problem:
        self._process.kill()
        _, said = self._process.communicate()
        if said.endswith(_OUT_OF_MEMORY):
            return Problem(
                "the card has too little free memory for the load program",
                said.strip().splitlines()[-1],
                "end a program that uses the card, or choose another with --card",
            )
        last = said.strip().splitlines()[-1:] or [f"it ended with {self._process.returncode} and said nothing"]
        return Problem(
            "the load program failed", why or last[0], "`vgpuctl doctor --local` looks at the driver and the card"
        )
