"""The pictures in docs/pictures, drawn from the demo pool at a fixed clock: `make pictures`.

The clock is a Tuesday morning at which every kind of row is on the screen.
"""

from __future__ import annotations

import html
import io
import os
import re
import time
from collections.abc import Callable
from pathlib import Path

from vgpuctl.checks.check import Options
from vgpuctl.model.usage.arrange import arrange
from vgpuctl.render.forms import render
from vgpuctl.render.live.frame import Memory, frame
from vgpuctl.render.live.history import LENGTH
from vgpuctl.render.live.look import Look
from vgpuctl.render.terminal import Terminal
from vgpuctl.sources.demo import Demo
from vgpuctl.tasks.doctor import choose, diagnose, report
from vgpuctl.tasks.top import Wanted, read

FOLDER = Path(__file__).parent.parent / "docs" / "pictures"
CLOCK = 1_789_464_000.0
INTERVAL = 2.0
_TEXT = re.compile(
    r'(<text class="[^"]*-r\d+" )x="([\d.]+)"( y="[\d.]+" )textLength="([\d.]+)"([^>]*)>([^<\n]*)</text>'
)
_WORD = re.compile(r"[^\u00a0]+(?:\u00a0[^\u00a0]+)*")


def svg(lines: list[str], columns: int, title: str) -> str:
    """Painted lines as an SVG image of a terminal."""
    from rich.console import Console
    from rich.text import Text

    console = Console(
        record=True, width=columns, file=io.StringIO(), force_terminal=True, color_system="standard", _environ={}
    )
    for line in lines:
        console.print(Text.from_ansi(line), no_wrap=True, crop=True, soft_wrap=False)
    return _TEXT.sub(_words, console.export_svg(title=title, unique_id=title.split()[1]))


def _words(found: re.Match[str]) -> str:
    """A text element as one for each word: some programs drop the blanks at the beginning of a text."""
    head, x, middle, length, tail, text = found.groups()
    step = float(length) / len(html.unescape(text))
    drawn = []
    for word in _WORD.finditer(html.unescape(text)):
        place, size = float(x) + word.start() * step, len(word[0]) * step
        inside = html.escape(word[0]).replace("\u00a0", "&#160;")
        drawn.append(f'{head}x="{place:.1f}"{middle}textLength="{size:.1f}"{tail}>{inside}</text>')
    return "".join(drawn)


def top(columns: int = 150, height: int = 48) -> str:
    """The live screen after some readings, by node."""
    clock = [CLOCK]
    demo = Demo(lambda: clock[0])
    memory, look = Memory(), Look()
    for step in range(LENGTH):
        clock[0] = CLOCK + INTERVAL * step
        picture = read((demo,), Wanted())
        usage = arrange(picture.holdings, look.group, look.sort, picture.wanted)
        memory.history.add(usage.rows)
    return svg(frame(usage, look, memory, Terminal(columns, True, False, True), height), columns, "vgpuctl top --demo")


def teams(columns: int = 120) -> str:
    """One shot, by namespace."""
    picture = read((Demo(lambda: CLOCK),), Wanted())
    usage = arrange(picture.holdings, "namespace", "name", picture.wanted)
    drawn = render(usage, "table", Terminal(columns, True))
    return svg(drawn.splitlines(), columns, "vgpuctl top --demo --once --group namespace")


def doctor(columns: int = 120) -> str:
    """What doctor finds in the demo pool."""
    choice = choose((), ())
    diagnosis = diagnose((Demo(lambda: CLOCK),), choice.checks, Options())
    drawn = render(report(diagnosis, choice), "table", Terminal(columns, True))
    return svg(drawn.splitlines(), columns, "vgpuctl doctor --demo")


PICTURES: dict[str, Callable[[], str]] = {"top.svg": top, "teams.svg": teams, "doctor.svg": doctor}


def main() -> None:
    os.environ["TZ"] = "UTC"
    time.tzset()
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, draw in PICTURES.items():
        (FOLDER / name).write_text(draw(), encoding="utf-8")
        print(FOLDER / name)


if __name__ == "__main__":
    main()
