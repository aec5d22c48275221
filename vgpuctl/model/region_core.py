"""What the `.core` companion of a region file claims: the state of the core limit. As untrusted as the region."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from vgpuctl.model import region_layout as layout
from vgpuctl.model.region_value import NotReady, name, number

_POLICIES = {
    layout.CORE_POLICY_DEFAULT: "default",
    layout.CORE_POLICY_FORCE: "force",
    layout.CORE_POLICY_DISABLE: "disable",
}
_MOST_MEMORY = 1 << 50
_PPM = 1_000_000
_NS = 1e9


@dataclass(frozen=True)
class CoreCard:
    """A card's record in `.core`. memory_limit, core_limit: in force, bytes and percent, None for none. refusals: of
    allocations, by the limit. busy, throttled: seconds since creation. tasks: None when nothing counts them.
    share_1s, share_60s: busy share of wall time, 0 to 1, None before the first; share_time: when they were written."""

    uuid: str
    memory_limit: int | None
    core_limit: int | None
    refusals: int
    busy: float
    throttled: float
    waits: int
    launches: int
    tasks: int | None
    share_1s: float | None
    share_60s: float | None
    share_time: float | None


@dataclass(frozen=True)
class CoreProcess:
    """A process's record in `.core`; it belongs to the slot of the same number. start_time: clock ticks since boot."""

    slot: int
    pid: int
    pid_namespace: int
    start_time: int
    hooks: bool


@dataclass(frozen=True)
class Core:
    """The `.core` companion. policy: default, force or disable. version: of the library that made it. created: when,
    Unix seconds."""

    version: str
    policy: str
    cards: tuple[CoreCard, ...]
    processes: tuple[CoreProcess, ...]
    faults: int
    created: int = 0

    def card(self, uuid: str) -> CoreCard | None:
        """The record of a card."""
        return next((card for card in self.cards if card.uuid == uuid), None)


def parse_core(data: bytes) -> Core:
    """The companion in a file's bytes. Raises ValueError with the reason when it is not a complete one of version 1."""
    if len(data) != layout.CORE_BYTES:
        raise ValueError(f"{len(data)} bytes long, a .core file has {layout.CORE_BYTES}")
    if number(data, layout.CORE_HEADER_MAGIC) != layout.CORE_MAGIC:
        raise ValueError("wrong magic number: not a .core file")
    major = number(data, layout.CORE_HEADER_MAJOR)
    if major != layout.CORE_MAJOR:
        raise ValueError(f"format version {major}, this vgpuctl reads {layout.CORE_MAJOR}")
    if number(data, layout.CORE_HEADER_READY) != 1:
        raise NotReady("not complete yet")
    policy = number(data, layout.CORE_HEADER_POLICY)
    if policy not in _POLICIES:
        raise ValueError(f"policy {policy} does not exist: the file is damaged")
    cards = (_card(data, layout.CORE_CARDS_OFFSET + i * layout.CORE_CARD_SIZE) for i in range(layout.REGION_CARDS))
    return Core(
        version=name(data, layout.CORE_HEADER_VERSION),
        policy=_POLICIES[policy],
        cards=tuple(card for card in cards if card.uuid),
        processes=tuple(_processes(data)),
        faults=number(data, layout.CORE_HEADER_FAULTS),
        created=number(data, layout.CORE_HEADER_CREATED),
    )


def _card(data: bytes, base: int) -> CoreCard:
    memory, cores = (
        number(data, layout.CORE_CARD_MEMORY_LIMIT, 0, base),
        number(data, layout.CORE_CARD_CORE_LIMIT, 0, base),
    )
    if memory > _MOST_MEMORY or cores > 100:
        raise ValueError(f"limits of {memory} bytes and {cores} percent: the file is damaged")
    written = number(data, layout.CORE_CARD_SHARE_TIME, 0, base)
    counted = number(data, layout.CORE_CARD_TASKS_SOURCE, 0, base) != layout.CORE_TASKS_NONE
    return CoreCard(
        uuid=name(data, layout.CORE_CARD_UUID, 0, base),
        memory_limit=memory or None,
        core_limit=cores if 0 < cores < 100 else None,
        refusals=number(data, layout.CORE_CARD_REFUSALS, 0, base),
        busy=number(data, layout.CORE_CARD_BUSY_TIME, 0, base) / _NS,
        throttled=number(data, layout.CORE_CARD_THROTTLED_TIME, 0, base) / _NS,
        waits=number(data, layout.CORE_CARD_WAITS, 0, base),
        launches=number(data, layout.CORE_CARD_LAUNCHES, 0, base),
        tasks=number(data, layout.CORE_CARD_TASKS_COMPLETED, 0, base) if counted else None,
        share_1s=_share(number(data, layout.CORE_CARD_SHARE_1S, 0, base), written),
        share_60s=_share(number(data, layout.CORE_CARD_SHARE_60S, 0, base), written),
        share_time=written / _NS if written else None,
    )


def _share(millionths: int, written: int) -> float | None:
    return millionths / _PPM if written and millionths <= _PPM else None


def _processes(data: bytes) -> Iterator[CoreProcess]:
    high = min(number(data, layout.CORE_HEADER_PROCESS_HIGH), layout.REGION_SLOTS)
    first = layout.CORE_CARDS_OFFSET + layout.REGION_CARDS * layout.CORE_CARD_SIZE
    for slot in range(high):
        base = first + slot * layout.CORE_PROCESS_SIZE
        owner = number(data, layout.CORE_PROCESS_OWNER, 0, base)
        if owner:
            yield CoreProcess(
                slot=slot,
                pid=owner & 0xFFFFFFFF,
                pid_namespace=number(data, layout.CORE_PROCESS_PID_NAMESPACE, 0, base),
                start_time=number(data, layout.CORE_PROCESS_START_TIME, 0, base),
                hooks=bool(number(data, layout.CORE_PROCESS_FLAGS, 0, base) & layout.CORE_FLAG_LAUNCH_HOOKS),
            )
