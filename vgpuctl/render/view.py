"""How a kind of Output is shown to people: a record of columns, or a drawing of its own.

Each kind has one `View` in a module of `render.views`, named after the noun; `VIEWS` says which. JSON and YAML need
no view: they show the Output as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from vgpuctl.model.output import Output
from vgpuctl.render.terminal import Terminal


@dataclass(frozen=True)
class Cell:
    """A text and its meaning. style: one of `good`, `warn`, `bad`, `dim`, `strong`, or "" (colour follows from it)."""

    text: str
    style: str = ""


@dataclass(frozen=True)
class Column:
    """A column. cell: the text (or Cell) for people, from a row. raw: the value for CSV (the cell's text if absent).
    wide: only in `-o wide`. right: numbers. shrink: may be cut when the terminal is narrow; others never are."""

    header: str
    cell: Callable[[Any], str | Cell]
    raw: Callable[[Any], object] | None = None
    wide: bool = False
    right: bool = False
    shrink: bool = False


@dataclass(frozen=True)
class View:
    """rows: the rows of an Output. name: the object name of a row for `-o name`. footer: lines below the table.
    draw: a drawing of its own instead of the table, as rich renderables (used by table and wide)."""

    rows: Callable[[Any], Sequence[Any]]
    columns: tuple[Column, ...] = ()
    name: Callable[[Any], str] | None = None
    footer: Callable[[Any], Sequence[str]] | None = None
    empty: str = ""
    draw: Callable[[Any, Terminal, bool], Any] | None = None


VIEWS: dict[str, str] = {
    "Version": "version",
}
"""kind → module of render.views that holds its `VIEW`."""


def view_of(output: Output) -> View:
    """The view of an Output's kind. Raises KeyError for a kind without one."""
    module = import_module(f"vgpuctl.render.views.{VIEWS[type(output).__name__]}")
    view: View = module.VIEWS[type(output).__name__]
    return view
