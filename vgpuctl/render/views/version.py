"""The view of Version."""

from __future__ import annotations

from vgpuctl.model.version import Version
from vgpuctl.render.view import Column, View


def _rows(output: Version) -> list[Version]:
    return [output]


VIEWS = {"Version": View(rows=_rows, columns=(Column("VERSION", lambda row: row.version),))}
