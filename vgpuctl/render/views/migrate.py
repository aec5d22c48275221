"""The views of a change of the memory factor: what it does to a cluster, what was rewritten in files."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from vgpuctl.model.migrate.accept import offered
from vgpuctl.model.migrate.outputs import FactorChange, Migration
from vgpuctl.model.migrate.place import What
from vgpuctl.model.migrate.text import Rewritten
from vgpuctl.model.migrate.use import Use, short
from vgpuctl.model.quantity import show_mib
from vgpuctl.render.grid import lines, paint, plain
from vgpuctl.render.terminal import Terminal
from vgpuctl.render.view import Cell, Column, View

_MOST = 12
"""Patterns that are offered on one screen."""


def _place(use: Use) -> str:
    return f"{use.namespace}/{use.name}" if use.namespace else use.name


def _named(use: Use) -> Cell:
    return Cell("named", "good") if use.accepted else Cell("–", "warn")


def _uses(output: FactorChange) -> Sequence[Use]:
    return output.uses


def _plural(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _told(output: FactorChange) -> Iterator[str]:
    if not output.uses:
        return
    objects = len({use.title for use in output.uses})
    yield (
        f"a unit becomes {output.after} MiB instead of {output.before}: {_plural(len(output.uses), 'amount')} of "
        f"{_plural(objects, 'object')} would mean something else"
    )
    if not output.open:
        return
    patterns = offered(output.open)
    yield "quotas and queues keep their MiB with --migrate; manifests are rewritten by:"
    yield f"  vgpuctl config migrate --factor {output.after} --from-factor {output.before} DIR"
    yield "what is to mean something else is named:"
    yield "  " + " ".join(f"--accept '{pattern}'" for pattern in patterns[:_MOST])
    if len(patterns) > _MOST:
        yield f"  and {len(patterns) - _MOST} more; -o name lists all, --accept @FILE takes such a list"


def _where(row: Rewritten) -> str:
    return f"{row.file}:{row.line}"


def _mib(row: Rewritten) -> str:
    if row.what is What.FACTOR or row.mib_before is None or row.mib_after is None:
        return "MiB per unit"
    return f"{row.mib_before} MiB" + (f" + {row.rounded}" if row.rounded else "")


def _rows(output: Migration) -> Sequence[Rewritten]:
    return output.places


def _summary(output: Migration) -> Iterator[str]:
    rounded = [row for row in output.places if row.rounded]
    done = "rewritten" if output.written else "to rewrite"
    if output.places:
        yield (
            f"{_plural(len(output.places), 'place')} in {_plural(len(output.files), 'file')} {done}, "
            f"from units of {output.before} MiB to units of {output.after}; {len(rounded)} rounded up"
        )
    for left in output.left:
        yield f"! {left.file}{f':{left.line}' if left.line else ''}: {left.why}"
    yield from output.notes
    if output.places and not output.written:
        yield "nothing was written: -o wide shows a patch, --in-place rewrites the files, --to DIR writes others"
    if output.written and not any(row.what is What.FACTOR for row in output.places):
        yield f"they are in units of {output.after} MiB now: whoever brings them over once more changes them once more"
    if output.steps:
        yield "bring a pool over in this order:"
        yield from (f"  {number}. {step}" for number, step in enumerate(output.steps, 1))


_MARKS = {"+": "good", "-": "bad", "@": "dim"}
_COLUMNS = (
    Column("PLACE", lambda row: Cell(_where(row), "strong"), shrink=24),
    Column("OBJECT", lambda row: row.object or "–", shrink=16, drop=1),
    Column("KEY", lambda row: short(row.path), raw=lambda row: row.path, shrink=16, drop=2),
    Column("WAS", lambda row: str(row.before), raw=lambda row: row.before, right=True),
    Column("IS", lambda row: Cell(str(row.after), "good"), raw=lambda row: row.after, right=True),
    Column("MEMORY", _mib, raw=lambda row: row.mib_after),
    Column("MORE MIB", lambda row: str(row.rounded), raw=lambda row: row.rounded, wide=True, right=True),
)


def _migration(output: Migration, terminal: Terminal, wide: bool) -> Iterator[str]:
    """A line for each place, in wide the change of the files instead; then what it amounts to."""
    if wide:
        for line in output.diff.splitlines():
            yield paint(plain(line, terminal), _MARKS.get(line[:1], ""), terminal)
    elif output.places:
        yield from lines([column for column in _COLUMNS if not column.wide], output.places, terminal)
    if not output.places:
        yield "no amount in memory units was found"
    for line in _summary(output):
        text = plain(line, terminal)
        yield from textwrap.wrap(text, terminal.width) if terminal.width else [text]


VIEWS = {
    "FactorChange": View(
        rows=_uses,
        columns=(
            Column("KIND", lambda row: row.object_kind),
            Column("NAME", lambda row: Cell(_place(row), "strong"), shrink=24),
            Column("WHERE", lambda row: short(row.place), raw=lambda row: row.place, shrink=16, drop=2),
            Column("UNITS", lambda row: str(row.units), raw=lambda row: row.units, right=True),
            Column("MEANS", lambda row: show_mib(row.mib_before), right=True),
            Column(
                "WOULD MEAN",
                lambda row: Cell(show_mib(row.mib_after), "" if row.accepted else "bad"),
                right=True,
            ),
            Column("MIB", lambda row: str(row.mib_before), raw=lambda row: row.mib_before, wide=True, right=True),
            Column("WOULD BE", lambda row: str(row.mib_after), raw=lambda row: row.mib_after, wide=True, right=True),
            Column("PODS", lambda row: str(row.pods or "–"), raw=lambda row: row.pods, right=True, drop=1),
            Column("AGREED", _named, raw=lambda row: row.accepted),
        ),
        name=lambda row: row.title,
        footer=lambda output: list(_told(output)),
    ),
    "Migration": View(rows=_rows, columns=_COLUMNS, name=lambda row: _where(row), lines=_migration),
}
