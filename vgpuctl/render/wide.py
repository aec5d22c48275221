"""The table with raw units and every column."""

from __future__ import annotations

from vgpuctl.model.output import Output
from vgpuctl.render.table import draw
from vgpuctl.render.terminal import Terminal


def render(output: Output, terminal: Terminal) -> str:
    return draw(output, terminal, wide=True)
