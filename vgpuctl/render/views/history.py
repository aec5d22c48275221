"""The view of History: a paragraph for each change, so that old → new and the undo are never cut."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Iterator, Sequence

from vgpuctl.model.history import Entry, History
from vgpuctl.render.grid import paint, plain
from vgpuctl.render.terminal import Terminal
from vgpuctl.render.view import Column, View

_EMPTY = "vgpuctl has changed nothing here, or nothing that was recorded"


def _when(entry: Entry) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(entry.at)) if entry.at is not None else entry.key


def _lines(output: History, terminal: Terminal, wide: bool) -> Iterator[str]:
    for entry in output.entries:
        head = (_when(entry), entry.who, f"{entry.object} ({entry.how})" if wide and entry.how else entry.object)
        styles = ("dim", "info", "strong")
        yield "  ".join(
            paint(plain(text, terminal), style, terminal) for text, style in zip(head, styles, strict=True) if text
        )
        if entry.error:
            yield from _below(f"! {entry.error}", "bad", terminal)
        if entry.change:
            yield from _below(entry.change, "", terminal)
        if entry.undo:
            yield from _below(f"undo: {entry.undo}", "dim", terminal)
    yield plain(_summary(output), terminal)


def _below(text: str, style: str, terminal: Terminal) -> Iterator[str]:
    text = plain(text, terminal)
    width = (terminal.width or len(text) + 2) - 2
    for line in textwrap.wrap(text, max(width, 20), break_long_words=False, break_on_hyphens=False):
        yield f"  {paint(line, style, terminal)}"


def _summary(output: History) -> str:
    shown, kept = len(output.entries), output.kept
    if not kept:
        return _EMPTY
    count = f"{kept} change{'' if kept == 1 else 's'}"
    return count if shown == kept else f"{shown} of {count}"


def _rows(output: History) -> Sequence[Entry]:
    return output.entries


VIEWS = {
    "History": View(
        rows=_rows,
        columns=(
            Column("TIME", _when, raw=lambda entry: entry.at),
            Column("WHO", lambda entry: entry.who),
            Column("KIND", lambda entry: entry.object_kind),
            Column("NAMESPACE", lambda entry: entry.namespace),
            Column("NAME", lambda entry: entry.name),
            Column("HOW", lambda entry: entry.how),
            Column("CHANGE", lambda entry: entry.change),
            Column("UNDO", lambda entry: entry.undo),
            Column("ERROR", lambda entry: entry.error),
        ),
        lines=_lines,
    )
}
