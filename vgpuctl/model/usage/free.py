"""How large a vGPU each card could still take, by what the scheduler has booked."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from vgpuctl.model.usage.holdings import CardKey
from vgpuctl.model.usage.row import Row


def with_free(nodes: dict[str, Row], cards: dict[CardKey, Row], vgpus: Iterable[Row]) -> None:
    """Fills in `memory_free` and `vgpus` of the cards, and of the nodes the best of their cards.

    A card without a free slot, or booked for all of its compute, takes none. Unknown where a booking is.
    """
    memory: dict[CardKey, int] = {}
    cores: dict[CardKey, float] = {}
    slots: dict[CardKey, int] = {}
    unknown: set[CardKey] = set()
    for vgpu in vgpus:
        key: CardKey = (vgpu.node, (vgpu.uuid or "").partition("[")[0])
        slots[key] = slots.get(key, 0) + 1
        if vgpu.memory_allocated is None:
            unknown.add(key)
        else:
            memory[key] = memory.get(key, 0) + vgpu.memory_allocated
        cores[key] = cores.get(key, 0.0) + (vgpu.cores_allocated or 0.0)
    best: dict[str, int] = {}
    for key, card in cards.items():
        full = slots.get(key, 0) >= (card.slots or 0) or cores.get(key, 0.0) >= 1.0 or card.state == "unhealthy"
        known = card.memory_total is not None and key not in unknown
        free = 0 if full else max((card.memory_total or 0) - memory.get(key, 0), 0)
        cards[key] = msgspec.structs.replace(card, memory_free=free if known else None, vgpus=slots.get(key, 0))
        if known and card.node is not None:
            best[card.node] = max(best.get(card.node, 0), free)
    for name, node in nodes.items():
        closed = node.state in ("cordoned", "not ready")
        nodes[name] = msgspec.structs.replace(node, memory_free=0 if closed else best.get(name))
