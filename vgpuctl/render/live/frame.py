"""One frame of the live screen: a heading, the rows that fit, a line of hints."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

from vgpuctl.model.usage.order import SORTS
from vgpuctl.model.usage.row import Usage
from vgpuctl.render.grid import bar, clip, lines, paint, plain, spark, width
from vgpuctl.render.live.history import LENGTH, History
from vgpuctl.render.live.look import KEYS, Look
from vgpuctl.render.terminal import Terminal
from vgpuctl.render.units import pair, percent
from vgpuctl.render.view import Cell, Column
from vgpuctl.render.views.usage import BUSY, COLUMNS, MEMORY, Shown, free, pending, rows

_SMALL = 12
"""Lines below which the heading is one line."""
_BARS = 24


@dataclass
class Memory:
    """What a screen keeps from frame to frame: trends, and how wide its columns were."""

    history: History = field(default_factory=History)
    widths: dict[str, int] = field(default_factory=dict)


def body_height(height: int) -> int:
    """How many rows of the table fit on a screen of so many lines."""
    return max(1, height - (5 if height < _SMALL else 7))


def settle(look: Look, usage: Usage, height: int) -> Look:
    """The look with its first row inside the table."""
    return replace(look, top=min(look.top, max(0, len(usage.rows) - body_height(height))))


def frame(
    usage: Usage | None, look: Look, memory: Memory, terminal: Terminal, height: int, message: str = ""
) -> list[str]:
    """At most `height` lines of at most the terminal's width. message: what went wrong with the last reading."""
    columns = terminal.width or 80
    if look.help:
        text = _help(terminal)
    elif usage is None:
        text = [_title(usage, look, terminal), "", plain(message or "reading …", terminal)]
    else:
        text = _heading(usage, look, terminal, height) + _body(usage, look, memory, terminal, height)
        text = text[: height - 1]
        text += [""] * (height - 1 - len(text)) + [_hints(look, terminal, message)]
    return [clip(line, columns) for line in text[:height]]


def _title(usage: Usage | None, look: Look, terminal: Terminal) -> str:
    parts = [paint("vgpuctl top", "title", terminal)]
    if usage:
        parts.append(plain(usage.source, terminal))
        parts.append(time.strftime("%H:%M:%S", time.localtime(usage.at)))
        parts.append(f"by {look.group}")
        parts.append(f"sort {look.sort}")
    if look.text and not look.typing:
        parts.append(paint(plain(f"filter {look.text}", terminal), "warn", terminal))
    if look.paused:
        parts.append(paint("paused", "warn", terminal))
    return "  ".join(parts)


def _heading(usage: Usage, look: Look, terminal: Terminal, height: int) -> list[str]:
    title = _title(usage, look, terminal)
    if height < _SMALL:
        return [title]
    t = usage.totals
    gauges = [
        _gauge("allocated", t.memory_allocated, t.memory_total, terminal),
        _gauge("used", t.memory_used, t.memory_total, terminal),
    ]
    if t.busy is not None:
        gauges.append(
            f"busy {paint(bar(t.busy, terminal, _BARS // 2), BUSY.style(t.busy), terminal)} {percent(t.busy)}"
        )
    counts = [
        f"{t.nodes} nodes" if t.nodes else "",
        f"{t.cards} cards" if t.cards else "",
        f"{t.vgpus}{f'/{t.slots}' if t.slots is not None else ''} vGPUs",
        paint(f"{t.over} over the limit !", "bad", terminal) if t.over else "",
        f"{t.idle} idle ~" if t.idle else "",
        plain(free(usage), terminal),
        paint(plain(pending(usage, 2), terminal), "warn", terminal),
    ]
    return [title, "   ".join(filter(None, gauges)), "  ".join(filter(None, counts)), ""]


def _gauge(name: str, part: int | None, whole: int | None, terminal: Terminal) -> str:
    if part is None or not whole:
        return plain(f"{name} {pair(part, whole)}", terminal)
    ratio = part / whole
    drawn = paint(bar(ratio, terminal, _BARS // 2), MEMORY.style(ratio), terminal)
    return f"{name} {drawn} {plain(pair(part, whole), terminal)}"


def _body(usage: Usage, look: Look, memory: Memory, terminal: Terminal, height: int) -> list[str]:
    shown = rows(usage)
    if not shown:
        return ["nothing matches the filter" if look.text else "nobody uses a vGPU here"]
    page = shown[look.top : look.top + body_height(height)]

    def trend(s: Shown) -> Cell:
        loads = memory.history.of(s.row)
        newest = next((load for load in reversed(loads) if load is not None), None)
        return Cell(spark(loads, terminal).rjust(LENGTH), BUSY.style(newest) if newest is not None else "dim")

    columns = [column for column in COLUMNS if look.wide or not column.wide]
    columns.insert(11, Column("TREND", trend, drop=5))
    return list(lines(columns, page, terminal, memory.widths))


def _hints(look: Look, terminal: Terminal, message: str) -> str:
    if look.typing:
        return f"/{plain(look.text, terminal)}{paint(' ', 'cursor', terminal)}  Enter keeps it, Esc drops it"
    if look.order:
        letters = "  ".join(f"{paint(sort.letter, 'strong', terminal)} {sort.name}" for sort in SORTS.values())
        return f"sort by: {letters}  (capital: reversed)"
    if message:
        return paint(plain(f"not up to date: {message}", terminal), "bad", terminal)
    hints = (
        ("q", "quit"),
        ("h", "help"),
        ("/", "filter"),
        ("g", "group"),
        ("o", "sort"),
        ("w", "wide"),
        ("p", "pause"),
    )
    return "  ".join(f"{paint(key, 'strong', terminal)} {word}" for key, word in hints)


def _help(terminal: Terminal) -> list[str]:
    names = {" ": "space"}
    left = max(width(" ".join(names.get(name, name) for name in key.names)) for key in KEYS)
    text = [paint("vgpuctl top: keys", "title", terminal), ""]
    for key in KEYS:
        label = " ".join(names.get(name, name) for name in key.names)
        text.append(f"  {paint(label.ljust(left), 'strong', terminal)}  {plain(key.about, terminal)}")
    text += ["", "  o and a letter sorts (a capital reverses):"]
    text += [f"  {paint(sort.letter.ljust(left), 'strong', terminal)}  {sort.about}" for sort in SORTS.values()]
    text += [
        "",
        "  ! more memory than the limit, or an unhealthy card   ~ idle: no kernel for a minute",
        plain("  – unknown   ≥ a lower bound: a part of the sum is unknown   (stale) the figures are old", terminal),
        "  any key goes back",
    ]
    return text
