"""The forms of output, as a table; each form is one small module with a function `render`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from vgpuctl.model.output import Output
from vgpuctl.render.terminal import Terminal

Render = Callable[[Output, Terminal], str]


@dataclass(frozen=True)
class Form:
    """A form: its name on the command line, the module that renders it, and what it is for."""

    name: str
    module: str
    about: str


FORMS = {
    form.name: form
    for form in (
        Form("table", "table", "for people"),
        Form("wide", "wide", "for people, with raw units and more columns"),
        Form("short", "short", "a few lines to paste into a message"),
        Form("json", "json", "for machines, with a schema"),
        Form("yaml", "yaml", "the same as YAML"),
        Form("name", "name", "names only, one a line"),
        Form("csv", "csv", "rows for a spreadsheet"),
        Form("junit", "junit", "a test report for CI"),
    )
}


def render(output: Output, form: str, terminal: Terminal) -> str:
    """The whole text of an Output in a form, with a newline at the end.

    Raises KeyError for an unknown form.
    """
    function: Render = import_module(f"vgpuctl.render.{FORMS[form].module}").render
    text = function(output, terminal)
    return text if text.endswith("\n") or not text else text + "\n"
