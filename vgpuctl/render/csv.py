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
    if view.records:
        records = view.records(output)
        fields = type(records[0]).__struct_fields__ if records else ()
        writer.writerow(fields)
        writer.writerows([_plain(getattr(record, field)) for field in fields] for record in records)
        return buffer.getvalue()
    writer.writerow([column.header.lower().replace(" ", "_") for column in view.columns])
    for row in view.rows(output):
        writer.writerow([_cell(column, row) for column in view.columns])
    return buffer.getvalue()


def _cell(column: Column, row: object) -> object:
    return _plain(column.raw(row) if column.raw else column.cell(row))


def _plain(value: object) -> object:
    """A number as it is, nothing for unknown, a text that no spreadsheet takes for a formula."""
    if value is None or isinstance(value, (int, float)):
        return value
    text = clean(value.text if isinstance(value, Cell) else value)
    return f"'{text}" if text.lstrip().startswith(_FORMULA) else text
