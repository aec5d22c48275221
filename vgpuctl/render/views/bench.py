"""The views of the bench: shares against the promise, and jobs one after another against vGPUs."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from vgpuctl.model.bench import Arrangement, LimitBench, ShareCell, SharingBench
from vgpuctl.render.view import Cell, Column, View

_SIMULATED = "a simulated card: it shows that limits work, not how exact they are on a real one"


def _length(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= scale:
            return f"{seconds / scale:g} {unit}"
    return f"{seconds * 1e6:g} µs"


def _points(ratio: float) -> str:
    text = f"{ratio * 100:+.2f}".replace("-", "−")
    return "0.00" if text in ("+0.00", "−0.00") else text


def _verdict(cell: ShareCell) -> Cell:
    return Cell("held", "good") if cell.held else Cell("missed", "bad")


def _limits_footer(output: LimitBench) -> Sequence[str]:
    told = f"{output.missed} of {len(output.cells)} missed" if output.missed else "every promise held"
    lines = [f"{output.card}: {told}; share: percent of the same kernels' speed without a limit; error in points"]
    return [*lines, _SIMULATED] if output.simulated else lines


def _sharing_footer(output: SharingBench) -> Sequence[str]:
    first, *rest = output.arrangements
    lines = [
        f"{output.card}: {len(first.jobs)} jobs that each keep the card busy {output.busy * 100:.0f}% of their time; "
        + ", ".join(f"{first.makespan / other.makespan:.1f} times as fast in vGPUs" for other in rest)
    ]
    return [*lines, _SIMULATED] if output.simulated else lines


class ArrangementRecord(msgspec.Struct, frozen=True):
    """An arrangement as one line of a spreadsheet: seconds, a ratio."""

    arrangement: str
    makespan: float
    utilisation: float
    longest_job: float
    shortest_job: float


def _records(output: SharingBench) -> list[ArrangementRecord]:
    return [
        ArrangementRecord(row.name, row.makespan, row.utilisation, max(row.jobs), min(row.jobs))
        for row in output.arrangements
    ]


def _cells(output: LimitBench) -> Sequence[ShareCell]:
    return output.cells


def _arrangements(output: SharingBench) -> Sequence[Arrangement]:
    return output.arrangements


VIEWS = {
    "LimitBench": View(
        rows=_cells,
        columns=(
            Column("KERNEL", lambda row: _length(row.kernel), right=True),
            Column("LIMIT", lambda row: f"{row.limit * 100:g}", right=True),
            Column("SHARE", lambda row: Cell(f"{row.share * 100:.2f}", "strong"), right=True),
            Column("ERROR", lambda row: _points(row.share - row.limit), right=True),
            Column("PROMISE", lambda row: f"±{row.promise * 100:g}", right=True),
            Column("", _verdict),
        ),
        records=_cells,
        footer=_limits_footer,
    ),
    "SharingBench": View(
        rows=_arrangements,
        columns=(
            Column("JOBS", lambda row: Cell(row.name, "strong")),
            Column("MAKESPAN", lambda row: f"{row.makespan:.1f} s", right=True),
            Column("CARD IN USE", lambda row: f"{row.utilisation * 100:.0f}%", right=True),
            Column("A JOB TAKES", lambda row: f"{min(row.jobs):.1f} to {max(row.jobs):.1f} s", right=True),
        ),
        records=_records,
        footer=_sharing_footer,
    ),
}
