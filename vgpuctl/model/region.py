"""What the region file of a container claims.

It is writable by the tenant: every number is bounded here, and what they say is a claim beside NVML's evidence.
`model.region_layout` has the offsets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from vgpuctl.model import region_layout as layout
from vgpuctl.model.reading import Reading, missing
from vgpuctl.model.region_core import Core
from vgpuctl.model.region_value import NotReady, name, number

_MOST_MEMORY = 1 << 50
"""Bytes; no card comes near it, so a larger number is garbage."""
_PID_MOST = 1 << 22
"""The kernel's largest pid_max."""
_TIME_MOST = 1 << 40


@dataclass(frozen=True)
class Usage:
    """Memory of one process on one card, bytes, as the library counts it."""

    context: int
    data: int
    total: int


@dataclass(frozen=True)
class Slot:
    """A process of the container. pid: in its PID namespace. host_pid: as the library found it, often 0 or equal to
    pid. used: by card, None where the counters are garbage. nvml: what the library read from NVML, bytes by card, None
    before the first time. busy: percent by card. alive: whether the process still runs; None when that could not be
    told."""

    number: int
    pid: int
    host_pid: int
    used: tuple[Usage | None, ...]
    nvml: tuple[int | None, ...]
    busy: tuple[int, ...]
    alive: bool | None = None


@dataclass(frozen=True)
class Region:
    """uuids: of the container's cards, in its order. limits: bytes by card, None for no limit. cores: percent by card,
    None for no limit. slots: the processes. last_kernel: Unix seconds of the last launch, None before the first.
    faults: values that cannot be, such as more memory than any card has."""

    uuids: tuple[str, ...]
    limits: tuple[int | None, ...]
    cores: tuple[int | None, ...]
    slots: tuple[Slot, ...]
    priority: int
    last_kernel: int | None
    faults: tuple[str, ...] = ()

    def used(self, card: int, *, stale: bool = True) -> int | None:
        """Memory of all processes on a card, bytes, as the library adds it up; without `stale`, the slots of processes
        that are known to be gone do not count. None when a counter is garbage."""
        rows = [slot.used[card] for slot in self.slots if stale or slot.alive is not False]
        totals = [row.total for row in rows if row is not None]
        return sum(totals) if len(totals) == len(rows) else None

    @property
    def stale(self) -> tuple[Slot, ...]:
        """Slots of processes that are known to be gone."""
        return tuple(slot for slot in self.slots if slot.alive is False)

    def with_life(self, alive: Callable[[Slot], bool | None]) -> Region:
        """The same region, each slot judged."""
        return replace(self, slots=tuple(replace(slot, alive=alive(slot)) for slot in self.slots))


@dataclass(frozen=True)
class RegionFile:
    """One region file found on a machine. pod and container: from the name of its directory, "" elsewhere.
    region: what it claims, or why it cannot be read. core: its companion, if there is one; before: as it was when this
    machine was last looked at."""

    path: str
    region: Reading[Region]
    core: Reading[Core] = missing("there is no .core file")
    pod: str = ""
    container: str = ""
    before: Reading[Core] = missing("this is the first look")


def parse(data: bytes) -> Region:
    """The region in a file's bytes. Raises ValueError with the reason when it is not a ready one of version 1.2,
    NotReady when no program has made a CUDA call yet."""
    if len(data) != layout.REGION_BYTES:
        raise ValueError(f"{len(data)} bytes long, a region has {layout.REGION_BYTES}")
    magic = number(data, layout.REGION_FILE_MAGIC)
    if magic == 0:
        raise NotReady("not initialised: no program has made a CUDA call yet")
    if magic != layout.REGION_MAGIC:
        raise ValueError(f"the magic number is {magic}, not {layout.REGION_MAGIC}: not a region file")
    version = (number(data, layout.REGION_FILE_MAJOR), number(data, layout.REGION_FILE_MINOR))
    if version != (layout.REGION_MAJOR, layout.REGION_MINOR):
        raise ValueError(f"format version {version[0]}.{version[1]}, this vgpuctl reads 1.2")
    count = number(data, layout.REGION_FILE_DEVICE_NUM)
    if count > layout.REGION_CARDS:
        raise ValueError(f"it claims {count} cards, a region has at most {layout.REGION_CARDS}")
    faults: list[str] = []
    uuids = tuple(name(data, layout.REGION_FILE_UUID, i) for i in range(count))
    return Region(
        uuids=uuids,
        limits=tuple(_limit(number(data, layout.REGION_FILE_LIMIT, i), i) for i in range(count)),
        cores=tuple(_cores(number(data, layout.REGION_FILE_SM_LIMIT, i), i) for i in range(count)),
        slots=_slots(data, count, faults),
        priority=number(data, layout.REGION_FILE_PRIORITY),
        last_kernel=_time(number(data, layout.REGION_FILE_LAST_KERNEL_TIME)),
        faults=tuple(faults),
    )


def _slots(data: bytes, cards: int, faults: list[str]) -> tuple[Slot, ...]:
    used = number(data, layout.REGION_FILE_PROC_NUM)
    if not 0 <= used <= layout.REGION_SLOTS:
        faults.append(f"it claims {used} processes, a region has room for {layout.REGION_SLOTS}")
        used = layout.REGION_SLOTS
    slots = []
    for index in range(used):
        base = layout.REGION_FILE_SLOTS.offset + index * layout.REGION_SLOT_SIZE
        pid = number(data, layout.REGION_SLOT_PID, 0, base)
        if pid == 0:
            continue
        if not 0 < pid <= _PID_MOST:
            faults.append(f"slot {index} has the pid {pid}")
            slots.append(Slot(index, pid, 0, (None,) * cards, (None,) * cards, (0,) * cards))
            continue
        usage = tuple(_usage(data, base, card) for card in range(cards))
        faults += [f"process {pid} claims impossible memory on card {n}" for n, row in enumerate(usage) if row is None]
        host_pid = number(data, layout.REGION_SLOT_HOST_PID, 0, base)
        nvml = (number(data, layout.REGION_SLOT_MONITOR_USED, card, base) for card in range(cards))
        slots.append(
            Slot(
                number=index,
                pid=pid,
                host_pid=host_pid if 0 < host_pid <= _PID_MOST else 0,
                used=usage,
                nvml=tuple(value if 0 < value <= _MOST_MEMORY else None for value in nvml),
                busy=tuple(_busy(data, base, card) for card in range(cards)),
            )
        )
    return tuple(slots)


def _usage(data: bytes, base: int, card: int) -> Usage | None:
    place = base + layout.REGION_SLOT_USED.offset + card * layout.REGION_USAGE_SIZE
    fields = (layout.REGION_USAGE_CONTEXT, layout.REGION_USAGE_DATA, layout.REGION_USAGE_TOTAL)
    numbers = [number(data, field, 0, place) for field in fields]
    return Usage(*numbers) if max(numbers) <= _MOST_MEMORY else None


def _busy(data: bytes, base: int, card: int) -> int:
    place = base + layout.REGION_SLOT_UTILIZATION.offset + card * layout.REGION_UTILIZATION_SIZE
    return min(number(data, layout.REGION_UTILIZATION_SM, 0, place), 100)


def _limit(value: int, card: int) -> int | None:
    if value > _MOST_MEMORY:
        raise ValueError(f"the memory limit of card {card} is {value} bytes: the file is damaged")
    return value or None


def _cores(value: int, card: int) -> int | None:
    if value > 100:
        raise ValueError(f"the core limit of card {card} is {value} percent: the file is damaged")
    return value if 0 < value < 100 else None


def _time(value: int) -> int | None:
    return value if 0 < value < _TIME_MOST else None
