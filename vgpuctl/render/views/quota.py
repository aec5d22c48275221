"""The view of Quotas: one row for each quota, what is wrong with it below."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from vgpuctl.model.quota.share import Amount, QueueShare, Quotas, Share
from vgpuctl.render.units import gib
from vgpuctl.render.view import Cell, Column, View

_UNKNOWN = "–"


def _of(part: object, whole: object) -> str:
    """`used/hard`; a dash where there is no limit, `?` for a use that is not known."""
    if whole is None:
        return _UNKNOWN
    return f"{'?' if part is None else part}/{whole}"


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
    for word, amount in (
        ("capability", queue.capability),
        ("deserved", queue.deserved),
        ("guarantee", queue.guarantee),
    ):
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


class ShareRecord(msgspec.Struct, frozen=True):
    """A share as one line of a spreadsheet: bytes, percent, plain numbers, nothing for unknown."""

    namespace: str
    quota: str
    team: str
    priorities: str
    queue: str
    hard_vgpus: int | None
    hard_memory: int | None
    hard_cores: int | None
    used_vgpus: int | None
    used_memory: int | None
    used_cores: int | None
    held_vgpus: int | None
    held_memory: int | None
    held_cores: int | None
    pending_vgpus: int | None
    pending_pods: int | None
    problems: str


def _records(output: Quotas) -> list[ShareRecord]:
    none = Amount()
    records = []
    for row in output.shares:
        used, holds = row.used or none, row.holds or none
        amounts = [(part.number, part.memory, part.cores) for part in (row.hard, used, holds)]
        records.append(
            ShareRecord(
                row.namespace,
                row.name,
                row.team,
                " ".join(row.priorities),
                row.queue,
                *amounts[0],
                *amounts[1],
                *amounts[2],
                (row.pending or none).number,
                row.pending_pods,
                "; ".join(row.problems),
            )
        )
    return records


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
            Column("VGPUS", _number, right=True),
            Column(
                "MEMORY",
                lambda row: _of(_memory(row.used), _memory(row.hard)) if row.name else _UNKNOWN,
                right=True,
            ),
            Column(
                "CORES",
                lambda row: _raw(row, "cores") if row.name else _UNKNOWN,
                right=True,
            ),
            Column("UNITS", lambda row: _raw(row, "memory_units"), wide=True, right=True),
            Column("HOLDS", _held, right=True),
            Column(
                "HELD MEMORY",
                lambda row: _memory(row.holds) or _UNKNOWN,
                right=True,
                drop=1,
            ),
            Column("PENDING", _pending, right=True),
            Column("QUEUE", lambda row: row.queue or "default", shrink=8, drop=2),
        ),
        name=lambda row: f"{row.namespace}/{row.name}" if row.name else "",
        records=_records,
        footer=lambda output: list(_footer(output)),
        empty="no quota on vGPUs, and no vGPU pod",
    )
}
