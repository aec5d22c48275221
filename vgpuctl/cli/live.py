"""The loop of the live screen: pictures from the collector, keys from the terminal, frames to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from vgpuctl.cli.screen import Screen
from vgpuctl.cli.settings import Settings
from vgpuctl.cli.show import here
from vgpuctl.model.problem import Exit
from vgpuctl.model.usage.arrange import arrange
from vgpuctl.model.usage.row import Usage
from vgpuctl.render.live.frame import Memory, body_height, frame, settle
from vgpuctl.render.live.look import Look, press
from vgpuctl.tasks.top import Collector, Picture

_IDLE = 1.0
"""Seconds after which the screen looks for something new by itself."""


def run(take: Callable[[], Picture], settings: Settings, interval: float, group: str, sort: str) -> Exit | None:
    """Shows pictures until the user quits. Raises Missing or Problem when the very first reading fails."""
    first = take()
    terminal = here(settings)
    look = Look(group=group, sort=sort, wide=settings.output == "wide")
    memory, seen, picture = Memory(), None, first
    with Screen() as screen:
        collector = Collector(take, interval, screen.wake, first)
        collector.start()
        usage: Usage | None = None
        shown: Look | None = None
        while not look.done:
            if not look.paused:
                picture = collector.latest
            if picture is not seen or shown is None or _rows_differ(look, shown):
                usage = _arrange(picture, look)
                if picture is not seen or shown is None or look.group != shown.group:
                    memory.history.add(usage.rows)
                if shown is None or look.group != shown.group or look.wide != shown.wide:
                    memory.widths.clear()
                seen = picture
            columns, height = screen.size
            assert usage is not None
            look = shown = settle(look, usage, height)
            screen.draw(frame(usage, look, memory, replace(terminal, width=columns), height, collector.failure))
            for key in screen.keys(_IDLE):
                if key == "ctrl-z":
                    screen.suspend()
                look = press(look, key, body_height(height))
        collector.stop()
    return None


def _rows_differ(look: Look, shown: Look) -> bool:
    return (look.group, look.sort, look.text) != (shown.group, shown.sort, shown.text)


def _arrange(picture: Picture, look: Look) -> Usage:
    wanted = replace(picture.wanted, text=look.text if look.text != "!" else "")
    return arrange(picture.holdings, look.group, look.sort, wanted)
