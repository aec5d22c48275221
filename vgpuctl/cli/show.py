"""Writes results to stdout and notes to stderr, for the terminal that is there."""

from __future__ import annotations

import os
import sys

from vgpuctl.cli.main import tell, unwritten
from vgpuctl.cli.settings import Settings
from vgpuctl.model.output import Output
from vgpuctl.render.forms import render
from vgpuctl.render.terminal import Terminal, terminal
from vgpuctl.render.text import clean


def here(settings: Settings) -> Terminal:
    """The terminal that stdout is."""
    is_tty = sys.stdout.isatty()
    try:
        columns = os.get_terminal_size(sys.stdout.fileno()).columns if is_tty else 0
    except OSError:
        columns = 0
    return terminal(os.environ, is_tty=is_tty, columns=columns, ascii_only=settings.ascii)


def show(output: Output, settings: Settings) -> None:
    """The result, in the form asked for, on stdout; what the encoding cannot show is replaced."""
    write(render(output, settings.output, here(settings)))


def write(text: str) -> None:
    """Text to stdout; characters that its encoding lacks become `?`. Raises Problem where it takes nothing."""
    encoding = sys.stdout.encoding or "utf-8"
    try:
        sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
        sys.stdout.flush()
    except OSError as error:
        raise unwritten(error) from None


def note(text: str) -> None:
    """A hint, a warning or progress: one line on stderr."""
    tell(clean(text))
