"""What a command changed, or would change: the Output of everything that writes."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from vgpuctl.model.change import Change, Line
from vgpuctl.model.output import Item, Output


class Action(str, Enum):
    """What became of an object."""

    CREATED = "created"
    CONFIGURED = "configured"
    DELETED = "deleted"
    UNCHANGED = "unchanged"
    FAILED = "failed"
    TAKEN_BACK = "taken back"
    """It was made, and reverted because a step after it failed."""
    UNDONE = "not reached"
    """A step before it failed."""


class Value(Item, frozen=True, kw_only=True):
    """One value: where, what it was, what it is now; None: it was, or is, not there. note: the new value as people
    read it, such as `200 GiB`."""

    path: str
    before: str | None = None
    after: str | None = None
    note: str = ""


class Changed(Item, frozen=True, kw_only=True):
    """One object. undo: the command that reverts it. error: why it failed."""

    object_kind: str
    name: str
    namespace: str = ""
    action: Action
    values: list[Value] = []
    undo: str = ""
    error: str = ""


class Changes(Output, frozen=True, kw_only=True):
    """dry_run: `client`, `server` or "" when it was done. notes: what else is worth knowing."""

    dry_run: str = ""
    changes: list[Changed] = []
    notes: list[str] = []


def changed(change: Change, action: Action, error: str = "") -> Changed:
    """A Change as the Output shows it."""
    return Changed(
        object_kind=change.target.kind,
        name=change.target.name,
        namespace=change.target.namespace,
        action=action,
        values=[Value(path=line.path, before=line.before, after=line.after, note=line.note) for line in change.lines],
        undo=change.undo,
        error=error,
    )


def story(values: Iterable[Line | Value]) -> str:
    """Changes of values on one line: `vgpu-number 20 → 50, vgpu-memory none → 20480 (200 GiB)`."""
    return ", ".join(
        f"{value.path} {_said(value.before)} → {_said(value.after)}" + (f" ({value.note})" if value.note else "")
        for value in values
    )


def _said(value: str | None) -> str:
    return "none" if value is None else value
