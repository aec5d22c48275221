"""A few lines to paste into a message: what is not well, and the count."""

from __future__ import annotations

from vgpuctl.model.output import Output
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.render.terminal import Terminal
from vgpuctl.render.text import clean
from vgpuctl.render.view import view_of


def render(output: Output, terminal: Terminal) -> str:
    view = view_of(output)
    if view.short is None:
        raise Problem(f"{type(output).__name__} has no form short", exit_code=Exit.USAGE)
    return "".join(f"{clean(line)}\n" for line in view.short(output))
