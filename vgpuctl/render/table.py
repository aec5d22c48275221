"""A table for people; a pipe gets the same text without colour, uncut."""

from __future__ import annotations

import io
import textwrap
from typing import TYPE_CHECKING, Any

from vgpuctl.model.output import Output
from vgpuctl.render.grid import lines, plain
from vgpuctl.render.terminal import Terminal
from vgpuctl.render.view import View, view_of

if TYPE_CHECKING:
    from rich.console import Console

STYLES = {"good": "green", "info": "cyan", "warn": "yellow", "bad": "bold red", "dim": "dim", "strong": "bold"}
_UNLIMITED = 10_000


def render(output: Output, terminal: Terminal) -> str:
    return draw(output, terminal, wide=False)


def draw(output: Output, terminal: Terminal, *, wide: bool) -> str:
    """The text of table and wide."""
    view = view_of(output)
    if view.lines:
        return "".join(f"{line.rstrip()}\n" for line in view.lines(output, terminal, wide))
    if view.draw is None:
        return "".join(f"{line}\n" for line in _table(view, output, terminal, wide))
    screen = console(terminal)
    body = view.draw(output, terminal, wide)
    if body is not None:
        screen.print(body)
    file = screen.file
    assert isinstance(file, io.StringIO)
    return "".join(f"{line.rstrip()}\n" for line in file.getvalue().splitlines())


def _table(view: View, output: Any, terminal: Terminal, wide: bool) -> list[str]:
    rows = view.rows(output)
    columns = [column for column in view.columns if wide or not column.wide]
    text = list(lines(columns, rows, terminal)) if rows else [view.empty] if view.empty else []
    for line in view.footer(output) if view.footer else ():
        text += (
            textwrap.wrap(plain(line, terminal), terminal.width) if terminal.width and line else [plain(line, terminal)]
        )
    return text


def console(terminal: Terminal) -> Console:
    """A rich console that writes into memory and never reads the environment."""
    from rich.console import Console
    from rich.theme import Theme

    return Console(
        file=io.StringIO(),
        width=terminal.width or _UNLIMITED,
        force_terminal=terminal.colour,
        color_system="standard" if terminal.colour else None,
        no_color=not terminal.colour,
        theme=Theme(STYLES, inherit=False),
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
        _environ={},
    )
