"""The rows of a usage table, and the whole as an Output."""

from __future__ import annotations

from typing import Literal

from vgpuctl.model.output import Item, Output

Level = Literal["node", "card", "pod", "vgpu", "process", "namespace", "queue"]
State = Literal[
    "active", "idle", "over", "waiting", "ending", "free", "ready", "cordoned", "unhealthy", "not ready", "unknown"
]
"""active, idle: kernels run, or none for a minute. over: more memory than its limit. waiting: bound, but no container
runs yet. ending: being deleted. free: a card without vGPUs. The rest: nodes and cards."""


class Row(Item, frozen=True, kw_only=True):
    """A node, a card, a vGPU, a process, or a group of vGPUs. Memory is in bytes, cores in cards.

    vgpus: how many vGPUs the row stands for. slots: into how many its cards can be divided. cards: how many cards.
    memory_used: on a node or card what the driver says; else what the library counts. memory_limit: what is enforced.
    memory_allocated, cores_allocated: what the scheduler booked; memory_units is the same in the pool's raw units.
    memory_total: of the physical cards. memory_free: the largest vGPU that one card could still take.
    busy: share of time in which a kernel ran (a card: the driver's utilisation; a vGPU: of the last minute).
    throttled: share of time in which launches were held back. last_kernel: Unix seconds, 0 for never.
    processes: how many there are; a row of one has its pid (as the driver counts) and name.
    at: when the figures of use were read, Unix seconds. stale: they are old. memory_partial,
    cores_partial: what is used is a lower bound, a part of the sum is unknown.
    reason: why figures are missing, or what is odd about them.
    """

    level: Level
    node: str | None = None
    card: int | None = None
    uuid: str | None = None
    model: str | None = None
    namespace: str | None = None
    pod: str | None = None
    container: str | None = None
    queue: str | None = None
    cards: int | None = None
    vgpus: int | None = None
    slots: int | None = None
    memory_used: int | None = None
    memory_limit: int | None = None
    memory_allocated: int | None = None
    memory_units: int | None = None
    memory_total: int | None = None
    memory_free: int | None = None
    cores_used: float | None = None
    cores_limit: float | None = None
    cores_allocated: float | None = None
    busy: float | None = None
    throttled: float | None = None
    last_kernel: float | None = None
    processes: int | None = None
    pid: int | None = None
    process: str | None = None
    state: State = "unknown"
    at: float | None = None
    stale: bool = False
    memory_partial: bool = False
    cores_partial: bool = False
    reason: str = ""

    @property
    def key(self) -> tuple[object, ...]:
        """What makes the row the same row in the next reading."""
        return (self.level, self.node, self.uuid, self.namespace, self.pod, self.container, self.queue, self.pid)

    @property
    def cap(self) -> int | None:
        """The memory that the used memory is measured against: the cards' own, else the limit, else what was booked."""
        if self.level in ("node", "card"):
            return self.memory_total
        return self.memory_limit if self.memory_limit is not None else self.memory_allocated

    @property
    def load(self) -> float | None:
        """How hard it computes, 0 to 1: a node or card by the driver, else of the compute that it may use."""
        if self.level in ("node", "card") and self.busy is not None:
            return self.busy
        cap = self.cores_cap
        return min(self.cores_used / cap, 1.0) if self.cores_used is not None and cap else None

    @property
    def share(self) -> float | None:
        """Used memory over `cap`; None when either is unknown or there is no cap."""
        cap = self.cap
        return self.memory_used / cap if self.memory_used is not None and cap else None

    @property
    def cores_cap(self) -> float | None:
        """The compute that the used compute is measured against: the cards', else the limit, else what was booked."""
        if self.level in ("node", "card"):
            return None if self.cards is None else float(self.cards)
        return self.cores_limit if self.cores_limit is not None else self.cores_allocated


class PendingPod(Item, frozen=True, kw_only=True):
    """A pod that asks for vGPUs and is on no node yet. since: Unix seconds of its creation."""

    namespace: str
    pod: str
    queue: str | None = None
    vgpus: int | None = None
    since: float | None = None


class Totals(Item, frozen=True, kw_only=True):
    """Sums over the rows shown. largest_free: the largest vGPU that any one card could still take, and where."""

    nodes: int | None = None
    cards: int | None = None
    vgpus: int = 0
    slots: int | None = None
    memory_used: int | None = None
    memory_allocated: int | None = None
    memory_total: int | None = None
    largest_free: int | None = None
    largest_free_node: str | None = None
    largest_free_card: int | None = None
    cores_allocated: float | None = None
    busy: float | None = None
    pending: int | None = None
    idle: int = 0
    over: int = 0
    partial: bool = False


class Usage(Output, frozen=True, kw_only=True):
    """Who uses what. at: when it was read, Unix seconds. rows: groups, each followed by what is in it.
    notes: what could not be read, one sentence each."""

    at: float
    group: str
    rows: list[Row]
    pending: list[PendingPod]
    totals: Totals
    notes: list[str]
