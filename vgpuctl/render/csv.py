"""CSV for spreadsheets: plain numbers, all columns; cells that would begin a formula are quoted."""

from __future__ import annotations

import csv
import io

from vgpuctl.model.output import Output
from vgpuctl.render.terminal import Terminal
from vgpuctl.render.text import clean
from vgpuctl.render.view import Cell, Column, view_of

_FORMULA = ("=", "+", "-", "@")


def render(output: Output, terminal: Terminal) -> str:
    view = view_of(output)
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([column.header.lower().replace(" ", "_") for column in view.columns])
    for row in view.rows(output):
        writer.writerow([_cell(column, row) for column in view.columns])
    return buffer.getvalue()


def _cell(column: Column, row: object) -> str:
    value: object = column.raw(row) if column.raw else column.cell(row)
    if value is None:
        return ""
    if isinstance(value, (int, float)):
        return str(value)
    text = clean(value.text if isinstance(value, Cell) else value)
    return f"'{text}" if text.startswith(_FORMULA) else text
