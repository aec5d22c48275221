"""Every node, card and vGPU of a pool or a machine once, before it is grouped for a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from vgpuctl.model.usage.row import PendingPod, Row

CardKey = tuple[str | None, str | None]
"""node and UUID."""


@dataclass(frozen=True)
class Holdings:
    """nodes: by name; cards: by (node, UUID); both rows hold what is theirs alone (total memory, the driver's figures,
    health, what is free), sums over vGPUs are made when they are shown. vgpus: also the processes that belong to none.
    processes: of a vGPU, by its key.
    whole: all vGPUs of the cards are in it (not those of one namespace only)."""

    source: str
    at: float
    nodes: dict[str, Row] = field(default_factory=dict)
    cards: dict[CardKey, Row] = field(default_factory=dict)
    vgpus: list[Row] = field(default_factory=list)
    processes: dict[object, list[Row]] = field(default_factory=dict)
    pending: list[PendingPod] = field(default_factory=list)
    notes: tuple[str, ...] = ()
    whole: bool = True


def merge(parts: Sequence[Holdings]) -> Holdings:
    """The holdings of several machines as one; the first names the source and the time."""
    return Holdings(
        parts[0].source,
        parts[0].at,
        {name: row for part in parts for name, row in part.nodes.items()},
        {key: row for part in parts for key, row in part.cards.items()},
        [row for part in parts for row in part.vgpus],
        {key: rows for part in parts for key, rows in part.processes.items()},
        [pod for part in parts for pod in part.pending],
        tuple(dict.fromkeys(note for part in parts for note in part.notes)),
        whole=all(part.whole for part in parts),
    )
