"""Names only, one a line, for `xargs` and loops."""

from __future__ import annotations

from vgpuctl.model.output import Output
from vgpuctl.render.terminal import Terminal
from vgpuctl.render.text import clean
from vgpuctl.render.view import view_of


def render(output: Output, terminal: Terminal) -> str:
    view = view_of(output)
    assert view.name is not None, f"{type(output).__name__} has no names"
    names = map(view.name, view.rows(output))
    return "".join(f"{clean(name)}\n" for name in names if name)
