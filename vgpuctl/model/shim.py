"""The preloaded library on a machine: its file, the processes that have it, and the locks that they share.

The device plugin mounts HOOK_PATH/libvgpu.so and HOOK_PATH/ld.so.preload into each vGPU container.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

from vgpuctl.model.host import Stat
from vgpuctl.model.reading import Reading, missing
from vgpuctl.model.version_number import VersionNumber

HOOK_PATH = "/usr/local/vgpu"
LIBRARY = f"{HOOK_PATH}/libvgpu.so"
PRELOAD = f"{HOOK_PATH}/ld.so.preload"
REGIONS = f"{HOOK_PATH}/vgpu/containers"
REMOVED = f"{HOOK_PATH}/vgpu/removed"
"""Where the region directories of pods that are gone are put aside."""
MOUNTED = "/usr/local/vgpu/libvgpu.so"
"""Where a container sees the library, whatever HOOK_PATH is."""
LOCKS = "/tmp/vgpulock"
LOCK = f"{LOCKS}/lock"
"""The file that upstream's library makes while a process starts, and waits for if it is there."""
OLDEST_GLIBC = "2.17"
"""A library that needs no newer symbols works in every image."""

_NOT_READ = "not read"
_MACHINES = {0x3E: "x86_64", 0xB7: "aarch64"}
_NEEDED = re.compile(rb"\0GLIBC_(\d+(?:\.\d+){1,2})(?=\0)")
_RELEASE = re.compile(rb"GNU C Library [^\n\0]{0,80}version (\d+\.\d+)")
_POD = re.compile(r"pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12})")
_DELETED = (" (deleted)", "//deleted")


@dataclass(frozen=True)
class ShimFile:
    """The library's file. machine: what it was built for, such as `x86_64`, "" for no ELF file. glibc: the newest
    symbol version that it needs, "" for none. ours: it is the one of this vgpuctl; None when this installation has none
    to compare."""

    path: str
    stat: Stat
    machine: str
    glibc: str
    sha256: str
    ours: bool | None = None


@dataclass(frozen=True)
class Mapped:
    """A library that a process has mapped. path: as the kernel names it. deleted: the name is gone or is another
    file's."""

    path: str
    inode: int
    deleted: bool


@dataclass(frozen=True)
class Program:
    """A process of a pod, or one that has the library. pod: its UID, "" outside of pods. library: None when it has not
    mapped any; missing when that could not be read."""

    pid: int
    pod: str
    library: Reading[Mapped]


@dataclass(frozen=True)
class Locks:
    """folder: what lies at /tmp/vgpulock. lock: the lock file in it; its `modified` says since when."""

    folder: Stat
    lock: Stat


@dataclass(frozen=True)
class Shim:
    """What a machine shows of the library. used: a trace of it, such as its directory, is here. machine: what programs
    of this machine are built for. glibc: its C library's version. preload: the text of HOOK_PATH/ld.so.preload."""

    used: bool
    file: Reading[ShimFile] = missing(_NOT_READ)
    preload: Reading[str] = missing(_NOT_READ)
    machine: Reading[str] = missing(_NOT_READ)
    glibc: Reading[str] = missing(_NOT_READ)
    programs: Reading[tuple[Program, ...]] = missing(_NOT_READ)
    locks: Reading[Locks] = missing(_NOT_READ)


def elf_machine(data: bytes) -> str:
    """What an ELF file was built for. Raises ValueError for anything else."""
    if len(data) < 20 or data[:4] != b"\x7fELF" or data[5] not in (1, 2):
        raise ValueError("not an ELF file")
    (number,) = struct.unpack_from("<H" if data[5] == 1 else ">H", data, 18)
    return _MACHINES.get(number, f"machine {number}")


def glibc_needed(data: bytes) -> str:
    """The newest GLIBC symbol version that a library's string table names, "" for none."""
    found = {match.decode() for match in _NEEDED.findall(data)}
    return max(found, key=VersionNumber, default="")


def glibc_release(data: bytes) -> str:
    """The version that a libc.so.6 says of itself. Raises ValueError when it says none."""
    found = _RELEASE.search(data)
    if not found:
        raise ValueError("does not say which GNU C Library it is")
    return found.group(1).decode()


def pod_of(cgroup: str) -> str:
    """The UID of the pod that /proc/PID/cgroup names, "" for none."""
    found = _POD.search(cgroup)
    return found.group(1).replace("_", "-") if found else ""


def mapped(maps: str) -> Mapped | None:
    """The preloaded library in /proc/PID/maps; of an old and a new one, the old."""
    rows = []
    for line in maps.splitlines():
        words = line.split(None, 5)
        if len(words) < 6 or "libvgpu.so" not in words[5] or not words[4].isdigit():
            continue
        path, deleted = words[5], False
        for mark in _DELETED:
            if path.endswith(mark):
                path, deleted = path.removesuffix(mark), True
        if path.rpartition("/")[2] == "libvgpu.so":
            rows.append(Mapped(path, int(words[4]), deleted))
    return max(rows, key=lambda row: row.deleted, default=None)
