"""The live screen in a real pseudo-terminal: keys act, and the terminal is left as it was found."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pyte
import pytest

ROOT = Path(__file__).parents[3]
SECONDS = 30.0


class Live:
    """`vgpuctl top --demo` in a terminal of its own."""

    def __init__(self, columns: int = 120, height: int = 30, *arguments: str, **environment: str) -> None:
        self.screen = pyte.Screen(columns, height)
        self.stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self.master, slave = pty.openpty()
        self.resize(columns, height)
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        self.process = subprocess.Popen(
            [sys.executable, "-m", "vgpuctl", "top", "--demo", "--interval", "0.25", *arguments],
            cwd=ROOT,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            env={**os.environ, "TERM": "xterm-256color", **environment},
        )

    def resize(self, columns: int, height: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", height, columns, 0, 0))
        self.screen.resize(height, columns)

    def press(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def read(self, seconds: float = 0.1) -> None:
        end = time.monotonic() + seconds
        while select.select([self.master], [], [], max(0.0, end - time.monotonic()))[0]:
            try:
                data = os.read(self.master, 65536)
            except OSError:
                return
            self.raw += data
            self.stream.feed(data)

    def wait_for(self, text: str) -> str:
        """The screen once it shows a text."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            self.read()
            shown = "\n".join(self.screen.display)
            if text in shown:
                return shown
        raise AssertionError(f"{text!r} never came; the screen shows:\n" + "\n".join(self.screen.display))

    def end(self) -> int:
        """The exit code, all output read."""
        end = time.monotonic() + SECONDS
        while self.process.poll() is None and time.monotonic() < end:
            self.read()
        self.read(0)
        return self.process.wait(timeout=1)

    @property
    def restored(self) -> bool:
        """Whether modes, cursor and screen are as before."""
        left = self.raw.rfind(b"\x1b[?1049l") > self.raw.rfind(b"\x1b[?1049h")
        cursor = self.raw.rfind(b"\x1b[?25h") > self.raw.rfind(b"\x1b[?25l")
        return termios.tcgetattr(self.slave) == self.before and left and cursor

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)


@pytest.fixture
def live() -> Iterator[Live]:
    shown = Live()
    yield shown
    shown.close()


def test_it_shows_the_pool_and_quits(live: Live) -> None:
    live.wait_for("h100-1")
    assert live.screen.display[0].startswith("vgpuctl top  demo pool")
    assert live.screen.display[29].startswith("q quit")
    live.press("q")
    assert live.end() == 0
    assert live.restored


@pytest.mark.parametrize(
    ("keys", "shown"),
    [
        ("g", "by gpu"),
        ("om", "sort memory"),
        ("oM", "sort -memory"),
        ("/ocr-batch\r", "filter ocr-batch"),
        ("h", "next grouping"),
        ("\x1b[F", "vision/ocr-batch-0"),
        ("p", "paused"),
    ],
)
def test_keys_act(live: Live, keys: str, shown: str) -> None:
    live.wait_for("h100-1")
    live.press(keys)
    live.wait_for(shown)
    live.press("x" if keys == "h" else "")
    live.press("q")
    assert live.end() == 0


def test_the_figures_move(live: Live) -> None:
    first = live.wait_for("h100-1").splitlines()[0]
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and live.screen.display[0] == first:
        live.read()
    assert live.screen.display[0] != first


def test_another_size_is_taken_up(live: Live) -> None:
    live.wait_for("h100-1")
    live.resize(50, 9)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and "q quit" not in live.screen.display[8]:
        live.read()
    assert "q quit" in live.screen.display[8]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_ends_it_with_the_terminal_restored(live: Live, number: int, code: int) -> None:
    live.wait_for("h100-1")
    live.process.send_signal(number)
    assert live.end() == code
    assert live.restored


def test_ctrl_c_quits(live: Live) -> None:
    live.wait_for("h100-1")
    live.press("\x03")
    assert live.end() == 0
    assert live.restored


def test_ctrl_z_gives_the_terminal_back_for_as_long(live: Live) -> None:
    live.wait_for("h100-1")
    live.press("\x1a")
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and not live.restored:
        live.read()
    assert live.restored
    live.raw = b""
    live.process.send_signal(signal.SIGCONT)
    live.wait_for("h100-1")
    live.press("q")
    assert live.end() == 0


@pytest.mark.parametrize("environment", [{"TERM": "dumb"}])
def test_a_dumb_terminal_gets_one_shot(environment: dict[str, str]) -> None:
    shown = Live(120, 30, **environment)
    try:
        assert shown.end() == 0
        assert b"\x1b" not in shown.raw
        assert b"36 cards" in shown.raw
    finally:
        shown.close()


def test_no_color_is_heard_by_the_live_screen() -> None:
    shown = Live(120, 30, NO_COLOR="1")
    try:
        shown.wait_for("h100-1")
        assert b"\x1b[1;36m" not in shown.raw
        shown.press("q")
        assert shown.end() == 0
    finally:
        shown.close()
