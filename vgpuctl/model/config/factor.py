"""The memory factor: how many MiB one unit of vgpu-memory is, and why it cannot be small on large nodes.

The plugin announces one device entry per unit, all cards of a node in one message; the kubelet refuses more than 4 MiB.
"""

from __future__ import annotations

from collections.abc import Iterable

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
    return max((smallest(cards) for cards in nodes.values()), default=None)


def smallest(cards: Iterable[tuple[int, int]]) -> int:
    """The smallest factor that keeps a node within the kubelet's limit. cards: (MiB of a card, how many of them)."""
    cards = list(cards)
    low, high = 1, max(1, sum(memory * count for memory, count in cards))
    while low < high:  # more MiB per unit are never more entries
        middle = (low + high) // 2
        if sum(entries(memory, middle, count) for memory, count in cards) <= SAFE_ENTRIES:
            high = middle
        else:
            low = middle + 1
    return low
