"""The view of Quotas: one row for each quota, what is wrong with it below."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vgpuctl.model.quota.share import Amount, QueueShare, Quotas, Share
from vgpuctl.render.units import gib
from vgpuctl.render.view import Cell, Column, View

_UNKNOWN = "–"


def _of(part: object, whole: object) -> str:
    """`used/hard`; a dash for what is not known, ∞ for no limit."""
    left = _UNKNOWN if part is None else str(part)
    return f"{left}/{_NO_LIMIT}" if whole is None else f"{left}/{whole}"


_NO_LIMIT = "none"


def _memory(amount: Amount | None) -> str | None:
    if amount is None or amount.memory_units is None:
        return None
    return gib(amount.memory) if amount.memory is not None else f"{amount.memory_units} units"


def _style(row: Share) -> str:
    used, hard = row.used, row.hard
    pairs = (
        ((used.number, hard.number), (used.memory_units, hard.memory_units), (used.cores, hard.cores)) if used else ()
    )
    full = [part >= whole for part, whole in pairs if part is not None and whole is not None]
    return "bad" if row.problems else "warn" if any(full) else ""


def _number(row: Share) -> Cell:
    return Cell(_of(row.used.number if row.used else None, row.hard.number) if row.name else _UNKNOWN, _style(row))


def _held(row: Share) -> str:
    if row.holds is None:
        return _UNKNOWN
    return str(row.holds.number)


def _pending(row: Share) -> Cell:
    if row.pending is None:
        return Cell(_UNKNOWN)
    return Cell(str(row.pending.number), "warn" if row.pending.number else "dim")


def _raw(row: Share, part: str) -> str:
    return _of(getattr(row.used, part) if row.used else None, getattr(row.hard, part))


def _footer(output: Quotas) -> Iterator[str]:
    for row in output.shares:
        for problem in row.problems:
            yield f"! {row.namespace}/{row.name}: {problem}" if row.name else f"! {row.namespace}: {problem}"
    for queue in output.queues:
        yield _queue(queue)


def _queue(queue: QueueShare) -> str:
    parts = [f"queue {queue.name}"]
    for word, amount in (("capability", queue.capability), ("guarantee", queue.guarantee)):
        said = _amount(amount)
        if said:
            parts.append(f"{word} {said}")
    allocated = _amount(queue.allocated)
    return ": ".join((parts[0], ", ".join([*parts[1:], f"in use {allocated or 'not told'}"])))


def _amount(amount: Amount) -> str:
    said = [
        f"{amount.number} vGPUs" if amount.number is not None else "",
        _memory(amount) or "",
        f"{amount.cores} % of cores" if amount.cores is not None else "",
    ]
    return " + ".join(filter(None, said))


def _rows(output: Quotas) -> Sequence[Share]:
    return output.shares


VIEWS = {
    "Quotas": View(
        rows=_rows,
        columns=(
            Column("NAMESPACE", lambda row: Cell(row.namespace, "strong"), shrink=16),
            Column("QUOTA", lambda row: row.name or "(none)", shrink=10),
            Column("TEAM", lambda row: row.team or _UNKNOWN, wide=True),
            Column("PRIORITY", lambda row: ",".join(row.priorities) or "all", wide=True),
            Column("VGPUS", _number, raw=lambda row: row.used.number if row.used else None, right=True),
            Column(
                "MEMORY",
                lambda row: _of(_memory(row.used), _memory(row.hard)) if row.name else _UNKNOWN,
                raw=lambda row: row.used.memory if row.used else None,
                right=True,
            ),
            Column(
                "CORES",
                lambda row: _raw(row, "cores") if row.name else _UNKNOWN,
                raw=lambda row: row.used.cores if row.used else None,
                right=True,
            ),
            Column("UNITS", lambda row: _raw(row, "memory_units"), wide=True, right=True),
            Column("HOLDS", _held, raw=lambda row: row.holds.number if row.holds else None, right=True),
            Column(
                "HELD MEMORY",
                lambda row: _memory(row.holds) or _UNKNOWN,
                raw=lambda row: row.holds.memory if row.holds else None,
                right=True,
                drop=1,
            ),
            Column("PENDING", _pending, raw=lambda row: row.pending.number if row.pending else None, right=True),
            Column("QUEUE", lambda row: row.queue or "default", shrink=8, drop=2),
        ),
        name=lambda row: f"{row.namespace}/{row.name}" if row.name else "",
        footer=lambda output: list(_footer(output)),
        empty="no quota on vGPUs, and no vGPU pod",
    )
}
