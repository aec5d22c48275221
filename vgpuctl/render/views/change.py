"""The view of Changes: one row for each object, as kubectl users know it, old → new below."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vgpuctl.model.changes import Action, Changed, Changes, story
from vgpuctl.render.view import Cell, Column, View

_STYLES = {
    Action.CREATED: "good",
    Action.CONFIGURED: "good",
    Action.DELETED: "warn",
    Action.FAILED: "bad",
    Action.TAKEN_BACK: "warn",
    Action.UNDONE: "bad",
    Action.UNCHANGED: "dim",
}


def _place(row: Changed) -> str:
    return f"{row.namespace}/{row.name}" if row.namespace else row.name


def _rows(output: Changes) -> Sequence[Changed]:
    return output.changes


def _footer(output: Changes) -> Iterator[str]:
    for row in output.changes:
        told = row.error or story(row.values)
        if told and row.action not in (Action.UNDONE, Action.TAKEN_BACK):
            yield f"{_place(row)}: {told}"
    yield from output.notes
    made = [row for row in output.changes if row.action in (Action.CREATED, Action.CONFIGURED, Action.DELETED)]
    if output.dry_run:
        yield f"nothing was changed ({output.dry_run} dry run)"
    elif not made and not any(row.error for row in output.changes):
        yield "nothing to change"
    else:
        yield from dict.fromkeys(f"undo: {row.undo}" for row in made if row.undo)


VIEWS = {
    "Changes": View(
        rows=_rows,
        columns=(
            Column("KIND", lambda row: row.object_kind),
            Column("NAME", lambda row: Cell(_place(row), "strong"), shrink=24),
            Column("RESULT", lambda row: Cell(row.action.value, _STYLES[row.action])),
        ),
        name=lambda row: f"{row.object_kind.lower()}/{row.name}",
        footer=lambda output: list(_footer(output)),
    )
}
