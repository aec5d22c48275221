"""What a region claims beside what the driver says of the same processes."""

from __future__ import annotations

from vgpuctl.model.card import Card, Process
from vgpuctl.model.region import Region, Slot

_GAP_BYTES = 256 << 20
_GAP_RATIO = 0.10


def inside(region: Region, number: int, card: Card | None) -> list[tuple[Process, Slot]]:
    """The driver's processes that are in a region's slots, by the host's or by the container's pid."""
    if card is None:
        return []
    listed = {process.pid: process for process in card.processes.value or ()}
    found = []
    for slot in region.slots:
        process = listed.get(slot.host_pid) or listed.get(slot.pid)
        if process and slot.alive is not False and slot.used[number] is not None:
            found.append((process, slot))
    return found


def evidence(region: Region, rows: list[tuple[Process, Slot]]) -> int | None:
    """Memory of a region's processes on a card as the driver says, bytes; None unless it lists every one that lives.

    rows: from `inside`."""
    alive = [slot for slot in region.slots if slot.alive is not False]
    seen = [process.memory for process, _ in rows]
    return sum(filter(None, seen)) if len(seen) == len(alive) and None not in seen else None


def differ(claimed: int, found: int) -> bool:
    """Whether a claim is further from the driver's figure than rounding and contexts explain."""
    gap = abs(claimed - found)
    return gap > _GAP_BYTES and gap > _GAP_RATIO * found
