"""How a kind of Output is shown to people: a record of columns, or a drawing of its own.

Each kind has one `View` in a module of `render.views`, named after the noun; `VIEWS` says which. JSON and YAML need
no view: they show the Output as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

from vgpuctl.model.output import Output
from vgpuctl.render.terminal import Terminal


class Cell(NamedTuple):
    """A text and its meaning. style: one of `good`, `info`, `warn`, `bad`, `dim`, `strong`, or ""; colour follows from
    it. bar: a ratio that a terminal also shows as a bar before the text."""

    text: str
    style: str = ""
    bar: float | None = None


@dataclass(frozen=True)
class Column:
    """A column. cell: the text (or Cell) for people, from a row. raw: the value for CSV (the cell's text if absent).
    wide: only in `-o wide`. right: numbers. shrink: on a narrow terminal it may be cut to so many columns; others never
    are. drop: it is left out when the terminal is too narrow, the highest number first; 0: never."""

    header: str
    cell: Callable[[Any], str | Cell]
    raw: Callable[[Any], object] | None = None
    wide: bool = False
    right: bool = False
    shrink: int = 0
    drop: int = 0


class Case(NamedTuple):
    """A test case of a report. outcome: passed, failure, error (could not find out) or skipped. text: its message and
    details, lines."""

    group: str
    name: str
    outcome: str
    text: Sequence[str] = ()


@dataclass(frozen=True)
class View:
    """rows: the rows of an Output. name: the object name of a row for `-o name`, "" for rows without one.
    footer: lines below the table. records: structs whose fields are the columns of CSV, instead of `columns`.
    draw: a drawing of its own instead of the table, as rich renderables (used by table and wide).
    lines: painted lines of its own instead of the table. short: lines to paste into a message, without colour.
    cases: what a test report holds."""

    rows: Callable[[Any], Sequence[Any]]
    columns: tuple[Column, ...] = ()
    name: Callable[[Any], str] | None = None
    footer: Callable[[Any], Sequence[str]] | None = None
    records: Callable[[Any], Sequence[Any]] | None = None
    empty: str = ""
    draw: Callable[[Any, Terminal, bool], Any] | None = None
    lines: Callable[[Any, Terminal, bool], Iterable[str]] | None = None
    short: Callable[[Any], Sequence[str]] | None = None
    cases: Callable[[Any], Sequence[Case]] | None = None


VIEWS: dict[str, str] = {
    "Changes": "change",
    "ConfigDiff": "config",
    "ConfigExplanation": "config",
    "Migration": "migrate",
    "Quotas": "quota",
    "CheckExplanation": "doctor",
    "CheckList": "doctor",
    "DoctorReport": "doctor",
    "FactorChange": "migrate",
    "Findings": "finding",
    "History": "history",
    "LimitBench": "bench",
    "SharingBench": "bench",
    "Status": "status",
    "Usage": "usage",
    "Version": "version",
}
"""kind → module of render.views that holds its `VIEW`."""


def view_of(output: Output) -> View:
    """The view of an Output's kind. Raises KeyError for a kind without one."""
    module = import_module(f"vgpuctl.render.views.{VIEWS[type(output).__name__]}")
    view: View = module.VIEWS[type(output).__name__]
    return view
