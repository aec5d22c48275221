"""A table for people; a pipe gets the same text without colour, uncut."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

from vgpuctl.model.output import Output
from vgpuctl.render.terminal import Terminal
from vgpuctl.render.text import clean
from vgpuctl.render.view import Cell, View, view_of

THEME = Theme({"good": "green", "warn": "yellow", "bad": "bold red", "dim": "dim", "strong": "bold"}, inherit=False)
_UNLIMITED = 10_000


def render(output: Output, terminal: Terminal) -> str:
    return draw(output, terminal, wide=False)


def draw(output: Output, terminal: Terminal, *, wide: bool) -> str:
    """The text of table and wide."""
    view = view_of(output)
    screen = console(terminal)
    body = view.draw(output, terminal, wide) if view.draw else _table(view, output, terminal, wide)
    if body is not None:
        screen.print(body)
    file = screen.file
    assert isinstance(file, io.StringIO)
    return "".join(f"{line.rstrip()}\n" for line in file.getvalue().splitlines())


def console(terminal: Terminal) -> Console:
    """A rich console that writes into memory and never reads the environment."""
    return Console(
        file=io.StringIO(),
        width=terminal.width or _UNLIMITED,
        force_terminal=terminal.colour,
        color_system="standard" if terminal.colour else None,
        no_color=not terminal.colour,
        theme=THEME,
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
        _environ={},
    )


def _table(view: View, output: Any, terminal: Terminal, wide: bool) -> Any:
    from rich.console import Group

    rows = view.rows(output)
    columns = [column for column in view.columns if wide or not column.wide]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="strong", expand=False)
    for column in columns:
        cut = column.shrink and terminal.width is not None
        table.add_column(
            column.header,
            justify="right" if column.right else "left",
            no_wrap=True,
            overflow="ellipsis" if cut and not terminal.ascii else "crop" if cut else "ignore",
            min_width=None if cut else len(column.header),
        )
    for row in rows:
        table.add_row(*(styled(column.cell(row)) for column in columns))
    parts: list[Any] = [table] if rows else [Text(view.empty)] if view.empty else []
    if view.footer:
        parts += [Text(clean(line)) for line in view.footer(output)]
    return Group(*parts)


def styled(cell: str | Cell) -> Text:
    """A cell as rich text: cleaned, never parsed as markup."""
    return Text(clean(cell), "") if isinstance(cell, str) else Text(clean(cell.text), cell.style)
