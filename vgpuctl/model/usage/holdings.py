"""Every node, card and vGPU of a pool or a machine once, before it is grouped for a table."""

from __future__ import annotations

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
