"""The views of what a configuration says, of two compared, and of a change of the memory factor."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from vgpuctl.model.config.diff import Compared, ConfigDiff, Difference
from vgpuctl.model.config.explain import Alike, ConfigExplanation, InForce
from vgpuctl.render.grid import lines, paint, plain
from vgpuctl.render.terminal import Terminal
from vgpuctl.render.view import Cell, Column, View

_NAMED = 6
_NOBODY = "nobody"


class Row(NamedTuple):
    """A key of a group."""

    group: Alike
    key: InForce


def shown(value: Any) -> str:
    """A value on one line."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "layouts" if any(isinstance(one, dict) for one in value) else ", ".join(map(str, value)) or "–"
    return "?" if value is None else f"{value:g}" if isinstance(value, float) else str(value) or '""'


def title(group: Alike) -> str:
    """Whom a group is about: `2 nodes: a100-1, a100-2`."""
    if not group.nodes:
        return group.subject
    names = ", ".join(group.nodes[:_NAMED]) + (
        f" and {len(group.nodes) - _NAMED} more" if len(group.nodes) > _NAMED else ""
    )
    return f"{len(group.nodes)} node{'' if len(group.nodes) == 1 else 's'}: {names}"


def _read_by(key: InForce) -> Cell:
    return Cell(", ".join(key.readers)) if key.readers else Cell(_NOBODY, "warn")


def _origin(key: InForce) -> Cell:
    return Cell(key.origin, "" if key.stated else "dim")


def _meaning(key: InForce) -> str:
    means = key.means if key.readers else f"nobody reads it: {key.means}"
    return f"{means} (not {'; '.join(key.over)})" if key.over else means


_COLUMNS = (
    Column("KEY", lambda row: Cell(row.key.key, "strong"), shrink=24),
    Column("VALUE", lambda row: shown(row.key.value), raw=lambda row: _raw(row.key.value), shrink=10),
    Column("FROM", lambda row: _origin(row.key), shrink=13),
    Column("READ BY", lambda row: _read_by(row.key), drop=1),
    Column("MEANING", lambda row: _meaning(row.key), shrink=20),
)


def _raw(value: Any) -> object:
    return value if isinstance(value, (int, float, str)) else shown(value)


def _explained(output: ConfigExplanation, terminal: Terminal, wide: bool) -> Iterator[str]:
    """Group by group; the table shows of each group after the first only what is not said above."""
    told: list[InForce] = []
    for group in output.groups:
        rows = [Row(group, key) for key in group.keys if wide or not any(map(key.same_answer, told))]
        rest = " (the rest as above)" if told and len(rows) < len(group.keys) else ""
        told = told or group.keys
        if rows:
            yield paint(plain(f"{title(group)}{rest}", terminal), "title", terminal)
            yield from lines(_COLUMNS, rows, terminal)
            yield ""
    for problem in output.problems:
        yield from (paint(line, "bad", terminal) for line in _wrapped(f"! {problem}", terminal))
    for note in output.notes:
        yield from (paint(line, "dim", terminal) for line in _wrapped(note, terminal))


def _wrapped(text: str, terminal: Terminal) -> list[str]:
    line = plain(text, terminal)
    return textwrap.wrap(line, terminal.width, break_on_hyphens=False) if terminal.width else [line]


class Changed(NamedTuple):
    """A difference of a file."""

    one: Compared
    difference: Difference


def _differences(output: ConfigDiff) -> list[Changed]:
    return [Changed(one, difference) for one in output.compared for difference in one.differences]


def _or_none(value: str | None) -> str:
    return "none" if value is None else value or '""'


def _effect(row: Changed) -> Cell:
    if not row.difference.readers:
        return Cell(f"nobody reads it: {row.difference.means}" if row.difference.means else "nobody reads it", "dim")
    return Cell(row.difference.means)


def _verdicts(output: ConfigDiff) -> Iterator[str]:
    for one in output.compared:
        number = len(one.differences)
        where = one.place or "the cluster, which has none"
        same = "is the same" if one.same_text else "means the same"
        if number:
            readers = [
                name
                for name in ("plugin", "scheduler")
                if any(name in difference.restart for difference in one.differences)
            ]
            restart = f"; {' and '.join(readers)} must be restarted to take it" if readers else ""
            differ = "1 value differs" if number == 1 else f"{number} values differ"
            yield f"{one.file}: {differ} from {where}{restart}"
        else:
            yield f"{one.file}: {one.subject} {same} as {where}"


def _rows(output: ConfigExplanation) -> Sequence[Row]:
    return [Row(group, key) for group in output.groups for key in group.keys]


VIEWS = {
    "ConfigExplanation": View(
        rows=_rows,
        columns=(Column("SUBJECT", lambda row: ", ".join(row.group.nodes) or row.group.subject), *_COLUMNS),
        lines=_explained,
        name=lambda row: row.key.key,
    ),
    "ConfigDiff": View(
        rows=_differences,
        columns=(
            Column("FILE", lambda row: row.one.file, wide=True),
            Column("NODE", lambda row: row.difference.node or "–", raw=lambda row: row.difference.node, drop=1),
            Column("KEY", lambda row: Cell(row.difference.key, "strong"), shrink=24),
            Column("CLUSTER", lambda row: Cell(_or_none(row.difference.before), "bad"), shrink=12),
            Column("FILE SAYS", lambda row: Cell(_or_none(row.difference.after), "good"), shrink=12),
            Column("MEANING", _effect, shrink=20),
        ),
        name=lambda row: row.difference.key,
        footer=lambda output: list(_verdicts(output)),
    ),
}
