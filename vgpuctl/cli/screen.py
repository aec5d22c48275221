"""The terminal as a live screen: keys come in, frames go out, and it is left as it was found, whatever happens."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

_ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l"
_LEAVE = "\x1b[?7h\x1b[?25h\x1b[?1049l"
_KEYS = {
    b"\x1b[A": "up", b"\x1b[B": "down", b"\x1b[C": "right", b"\x1b[D": "left",
    b"\x1bOA": "up", b"\x1bOB": "down", b"\x1bOC": "right", b"\x1bOD": "left",
    b"\x1b[5~": "page-up", b"\x1b[6~": "page-down",
    b"\x1b[H": "home", b"\x1b[F": "end", b"\x1bOH": "home", b"\x1bOF": "end", b"\x1b[1~": "home", b"\x1b[4~": "end",
    b"\x1bOP": "f1", b"\x1b[11~": "f1", b"\x1b[3~": "delete",
    b"\x1b": "escape", b"\r": "enter", b"\n": "enter", b"\t": "tab", b"\x7f": "backspace", b"\x08": "backspace",
}  # fmt: skip


class Screen:
    """A context: inside it the terminal shows frames and gives keys one by one, without echo.

    Suspending (Ctrl-Z) gives the terminal back for as long; SIGTERM and SIGHUP end the program after restoring it.
    """

    def __init__(self) -> None:
        self._in, self._out = sys.stdin.fileno(), sys.stdout.fileno()
        self._wake, self._woken = os.pipe()
        self._rest = b""
        self._saved: list[Any] = []
        self._handlers: dict[int, Any] = {}
        self._last: list[str] = []

    def __enter__(self) -> Screen:
        for name, handler in (
            ("SIGWINCH", self._resized),
            ("SIGTERM", self._ended),
            ("SIGHUP", self._ended),
            ("SIGCONT", self._continued),
        ):
            if hasattr(signal, name):
                number = getattr(signal, name)
                self._handlers[number] = signal.signal(number, handler)
        self._take()
        return self

    def __exit__(self, *_: object) -> None:
        self._give_back()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        os.close(self._wake)
        os.close(self._woken)

    @property
    def size(self) -> tuple[int, int]:
        """Columns and lines."""
        try:
            columns, lines = os.get_terminal_size(self._out)
        except OSError:
            return 80, 24
        return max(columns, 1), max(lines, 1)

    def wake(self) -> None:
        """Ends the wait for keys early; may be called from any thread."""
        with contextlib.suppress(OSError):
            os.write(self._woken, b"x")

    def draw(self, frame: Sequence[str]) -> None:
        """Shows a frame; lines that did not change are not written."""
        lines = list(frame)
        parts = []
        if len(lines) < len(self._last) or not self._last:
            parts.append("\x1b[2J")
            self._last = []
        for number, line in enumerate(lines):
            if number >= len(self._last) or self._last[number] != line:
                parts.append(f"\x1b[{number + 1};1H{line}\x1b[0m\x1b[K")
        self._last = lines
        self._write("".join(parts))

    def keys(self, seconds: float) -> list[str]:
        """The keys pressed, waiting at most so long for the first; empty after a wake or a change of size."""
        ready, _, _ = select.select([self._in, self._wake], [], [], seconds)
        if self._wake in ready:
            os.read(self._wake, 4096)
        if self._in not in ready:
            return []
        data = os.read(self._in, 4096)
        if not data:
            return ["ctrl-d"]
        return list(self._decode(self._rest + data))

    def _decode(self, data: bytes) -> Iterator[str]:
        self._rest = b""
        while data:
            length = next((n for n in range(min(6, len(data)), 0, -1) if data[:n] in _KEYS), 0)
            if length:
                yield _KEYS[data[:length]]
            elif data[0] < 0x20:
                length = 1
                yield f"ctrl-{chr(data[0] + 0x60)}"
            else:
                length = 1 if data[0] < 0x80 else 2 if data[0] < 0xE0 else 3 if data[0] < 0xF0 else 4
                if len(data) < length:
                    self._rest = data
                    return
                yield data[:length].decode("utf-8", "replace")
            data = data[length:]

    def _take(self) -> None:
        import termios
        import tty

        self._saved = termios.tcgetattr(self._in)
        tty.setcbreak(self._in)
        mode = termios.tcgetattr(self._in)
        mode[3] &= ~termios.ISIG  # Ctrl-C is a key; Ctrl-Z comes as one too
        termios.tcsetattr(self._in, termios.TCSANOW, mode)
        self._last = []
        self._write(_ENTER)

    def _give_back(self) -> None:
        import termios

        with contextlib.suppress(OSError):
            self._write(_LEAVE)
        with contextlib.suppress(OSError, termios.error):
            termios.tcsetattr(self._in, termios.TCSADRAIN, self._saved)

    def suspend(self) -> None:
        """Stops the program as Ctrl-Z does; goes on with a fresh screen."""
        self._give_back()
        os.kill(os.getpid(), signal.SIGSTOP)
        self._take()

    def _write(self, text: str) -> None:
        data = text.encode(sys.stdout.encoding or "utf-8", "replace")
        while data:
            data = data[os.write(self._out, data) :]

    def _resized(self, number: int, where: FrameType | None) -> None:
        self._last = []
        self.wake()

    def _continued(self, number: int, where: FrameType | None) -> None:
        self._last = []
        self.wake()

    def _ended(self, number: int, where: FrameType | None) -> None:
        raise SystemExit(128 + number)
