"""The memory factor: how many MiB one unit of vgpu-memory is, and why it cannot be small on large nodes.

The plugin announces one device entry per unit, all cards of a node in one message; the kubelet refuses more than 4 MiB.
"""

from __future__ import annotations

from vgpuctl.model.context import Context

SAFE_ENTRIES = 60_000
"""Device entries per node below the kubelet's limit of 4 MiB for one message."""


def entries(memory: int, factor: int, cards: int) -> int:
    """Device entries that a node announces for memory. memory: MiB of a card. factor: MiB per unit."""
    return memory // factor * cards


def smallest_factor(context: Context) -> int | None:
    """The smallest factor that keeps every known node within the kubelet's limit; None when no node is known."""
    nodes: dict[str, list[tuple[int, int]]] = {}
    for node in context.nodes or ():
        nodes.setdefault(node.name, []).append((node.memory, node.cards))
    return max((_smallest(cards) for cards in nodes.values()), default=None)


def _smallest(cards: list[tuple[int, int]]) -> int:
    total = sum(memory * count for memory, count in cards)
    factor = max(1, (total - SAFE_ENTRIES * 2) // SAFE_ENTRIES)
    while sum(entries(memory, factor, count) for memory, count in cards) > SAFE_ENTRIES:
        factor += 1
    while factor > 1 and sum(entries(memory, factor - 1, count) for memory, count in cards) <= SAFE_ENTRIES:
        factor -= 1
    return factor
