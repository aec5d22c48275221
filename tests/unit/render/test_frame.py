"""Frames of the live screen: they fit every terminal, and say what they show."""

from __future__ import annotations

import re

import pytest

from vgpuctl.model.usage.arrange import arrange
from vgpuctl.model.usage.row import Usage
from vgpuctl.render.grid import width
from vgpuctl.render.live.frame import Memory, body_height, frame, settle
from vgpuctl.render.live.look import Look
from vgpuctl.render.terminal import Terminal
from vgpuctl.sources.demo import Demo
from vgpuctl.tasks.top import Wanted, read

CLOCK = 1_789_464_000.0
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(scope="module")
def usage() -> Usage:
    picture = read((Demo(lambda: CLOCK),), Wanted())
    return arrange(picture.holdings, "node", "name", picture.wanted)


def draw(usage: Usage | None, look: Look = Look(), columns: int = 120, height: int = 40, **more: object) -> list[str]:
    return frame(usage, look, Memory(), Terminal(columns, live=True), height, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("columns", [1, 10, 40, 80, 120, 300])
@pytest.mark.parametrize("height", [1, 2, 5, 11, 12, 24, 100])
@pytest.mark.parametrize(
    "look", [Look(), Look(help=True), Look(typing=True, text="x"), Look(order=True), Look(wide=True)]
)
def test_a_frame_fits_the_terminal(usage: Usage, look: Look, columns: int, height: int) -> None:
    for terminal in (Terminal(columns, True, False, True), Terminal(columns, False, True, True)):
        drawn = frame(usage, look, Memory(), terminal, height)
        assert len(drawn) <= height
        assert all(width(ESCAPE.sub("", line)) <= columns for line in drawn)


def test_ascii_means_ascii(usage: Usage) -> None:
    drawn = frame(usage, Look(), Memory(), Terminal(200, False, True, True), 100)
    assert "\n".join(drawn).isascii()


def test_the_heading_tells_the_whole(usage: Usage) -> None:
    text = "\n".join(draw(usage)[:3])
    for word in (
        "demo pool",
        "by node",
        "6 nodes",
        "36 cards",
        "/360 vGPUs",
        "over the limit !",
        "1 pending",
        "largest free",
    ):
        assert word in text


def test_a_low_terminal_keeps_rows(usage: Usage) -> None:
    drawn = draw(usage, height=8)
    assert "a100-1" in drawn[2]
    assert "q quit" in drawn[-1]


def test_scrolling_ends_at_the_last_row(usage: Usage) -> None:
    look = settle(Look(top=1 << 30), usage, 20)
    assert look.top == len(usage.rows) - body_height(20)
    assert "vision/ocr-batch-0" in "\n".join(draw(usage, look, height=20))


def test_a_reading_that_failed_is_told_beside_the_old_figures(usage: Usage) -> None:
    drawn = draw(usage, message="did not answer within 10 s")
    assert "not up to date: did not answer within 10 s" in drawn[-1]
    assert "a100-1" in "\n".join(drawn)


def test_trends_grow_with_every_reading(usage: Usage) -> None:
    memory = Memory()
    for _ in range(3):
        memory.history.add(usage.rows)
    (line,) = (x for x in frame(usage, Look(), memory, Terminal(200), 60) if x.startswith("h100-2"))
    assert re.search(r"[▁-▇]{3}$", line)


def test_rows_that_are_gone_are_forgotten(usage: Usage) -> None:
    memory = Memory()
    memory.history.add(usage.rows)
    memory.history.add(usage.rows[:1])
    assert memory.history.of(usage.rows[1]) == ()
