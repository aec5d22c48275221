"""Where the output goes: how wide it is, whether it may be coloured, which characters it can show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_DUMB_WIDTH = 80


@dataclass(frozen=True)
class Terminal:
    """width: columns, None for no limit (a pipe: nothing is cut). colour: escapes may be written.
    ascii: only ASCII marks, bars and lines. live: it is a screen that can be redrawn."""

    width: int | None = None
    colour: bool = False
    ascii: bool = False
    live: bool = False


def terminal(environment: Mapping[str, str], *, is_tty: bool, columns: int, ascii_only: bool) -> Terminal:
    """What the environment asks for: NO_COLOR, FORCE_COLOR, TERM=dumb, COLUMNS.

    NO_COLOR beats FORCE_COLOR; an empty variable counts as absent, as no-color.org says.
    """
    dumb = environment.get("TERM") == "dumb"
    forced = bool(environment.get("FORCE_COLOR"))
    colour = not environment.get("NO_COLOR") and (forced or (is_tty and not dumb))
    asked = environment.get("COLUMNS", "")
    width = int(asked) if asked.isdigit() and int(asked) > 0 else (columns or _DUMB_WIDTH) if is_tty else None
    return Terminal(width, colour, ascii_only or dumb, is_tty and not dumb)
