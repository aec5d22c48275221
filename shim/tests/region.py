"""A reader of the region file at the fixed offsets that upstream's monitor uses, made from the format, not the shim."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

BYTES = 2008953
MAGIC = 19920718
CARDS = 16
SLOTS, SLOT_BYTES, FIRST_SLOT = 1024, 1960, 1856


@dataclass(frozen=True)
class Process:
    """One slot: bytes by card as the library counted them, and as NVML said."""

    pid: int
    host_pid: int
    context: list[int]
    data: list[int]
    total: list[int]
    monitor: list[int]
    sm_util: list[int]
    status: int


@dataclass(frozen=True)
class Region:
    magic: int
    version: tuple[int, int]
    sm_init_flag: int
    device_num: int
    uuids: list[str]
    limit: list[int]
    sm_limit: list[int]
    processes: list[Process]
    proc_num: int
    utilization_switch: int
    recent_kernel: int
    priority: int
    last_kernel_time: int


def _process(data: bytes, at: int) -> Process:
    pid, host_pid = struct.unpack_from("<ii", data, at)
    usage = [struct.unpack_from("<8Q", data, at + 8 + 64 * card) for card in range(CARDS)]
    return Process(
        pid=pid,
        host_pid=host_pid,
        context=[u[0] for u in usage],
        data=[u[2] for u in usage],
        total=[u[4] for u in usage],
        monitor=list(struct.unpack_from("<16Q", data, at + 1032)),
        sm_util=[struct.unpack_from("<Q", data, at + 1160 + 48 * card + 16)[0] for card in range(CARDS)],
        status=struct.unpack_from("<i", data, at + 1928)[0],
    )


def read(path: Path) -> Region:
    """The region as it is now. Raises ValueError for a file of another size."""
    data = path.read_bytes()
    if len(data) != BYTES:
        raise ValueError(f"{path}: {len(data)} bytes")
    magic, major, minor, sm_init_flag = struct.unpack_from("<iIIi", data, 0)
    proc_num, switch, recent, priority, last = struct.unpack_from("<iiiiQ", data, 2008896)
    device_num = struct.unpack_from("<Q", data, 56)[0]
    slots = [_process(data, FIRST_SLOT + SLOT_BYTES * i) for i in range(min(max(proc_num, 0), SLOTS))]
    return Region(
        magic=magic,
        version=(major, minor),
        sm_init_flag=sm_init_flag,
        device_num=device_num,
        uuids=[data[64 + 96 * i : 64 + 96 * (i + 1)].split(b"\0")[0].decode() for i in range(min(device_num, CARDS))],
        limit=list(struct.unpack_from("<16Q", data, 1600)),
        sm_limit=list(struct.unpack_from("<16Q", data, 1728)),
        processes=[s for s in slots if s.pid],
        proc_num=proc_num,
        utilization_switch=switch,
        recent_kernel=recent,
        priority=priority,
        last_kernel_time=last,
    )


def set_limit(path: Path, card: int, value: int) -> None:
    """Change a memory limit in place, as `vgpuctl resize` does: one aligned store of eight bytes."""
    with path.open("r+b") as file:
        file.seek(1600 + 8 * card)
        file.write(struct.pack("<Q", value))
