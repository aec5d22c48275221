"""What a machine's files show of the preloaded library."""

from __future__ import annotations

import hashlib

from vgpuctl import resources
from vgpuctl.model.reading import Reading, known, missing
from vgpuctl.model.shim import (
    LIBRARY,
    LOCK,
    LOCKS,
    PRELOAD,
    REGIONS,
    Locks,
    Mapped,
    Program,
    Shim,
    ShimFile,
    elf_machine,
    glibc_needed,
    glibc_release,
    mapped,
    pod_of,
)
from vgpuctl.sources.files import Files

_LARGEST = 16 << 20
_PROCESSES = 40_000
_LIBC = (
    "/lib/x86_64-linux-gnu/libc.so.6",
    "/lib/aarch64-linux-gnu/libc.so.6",
    "/lib64/libc.so.6",
    "/usr/lib64/libc.so.6",
    "/usr/lib/libc.so.6",
)
_PROGRAM = "/bin/sh"
"""Any program shows what this machine's programs are built for."""


def read_shim(files: Files) -> Shim:
    """All that is known of the library on a machine; without a trace of it only that."""
    traces = [files.stat(path) for path in (LIBRARY, PRELOAD, REGIONS)]
    locks = _locks(files)
    if not any(trace.value and trace.value.exists for trace in traces):
        unread = next((trace for trace in traces if not trace.known), None)
        file: Reading[ShimFile] = (
            unread.lost() if unread else missing(f"{LIBRARY} does not exist", LIBRARY, absent=True)
        )
        return Shim(used=unread is not None, file=file, locks=locks)
    return Shim(
        used=True,
        file=_file(files),
        preload=files.read(PRELOAD),
        machine=_machine(files),
        glibc=_glibc(files),
        programs=_programs(files),
        locks=locks,
    )


def _file(files: Files) -> Reading[ShimFile]:
    stat = files.stat(LIBRARY, follow=True)
    if stat.value is None:
        return stat.lost()
    if not stat.value.exists:
        return missing(f"{LIBRARY} does not exist", stat.source, absent=True)
    data = files.data(LIBRARY, _LARGEST)
    if data.value is None:
        return data.lost()
    try:
        machine = elf_machine(data.value)
    except ValueError:
        machine = ""
    digest = hashlib.sha256(data.value).hexdigest()
    ours = _ours(machine)
    same = None if ours is None else digest == ours
    return known(ShimFile(LIBRARY, stat.value, machine, glibc_needed(data.value), digest, same), data.source)


def _ours(machine: str) -> str | None:
    """The sha256 of this installation's library for a machine."""
    try:
        path = resources.path(f"shim/build/{machine}/libvgpu.so")
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None


def _machine(files: Files) -> Reading[str]:
    program = files.data(_PROGRAM, _LARGEST)
    if program.value is None:
        return files.read("/proc/sys/kernel/arch").map(str.strip)
    try:
        return known(elf_machine(program.value), program.source)
    except ValueError as error:
        return missing(f"{_PROGRAM}: {error}", program.source)


def _glibc(files: Files) -> Reading[str]:
    for path in _LIBC:
        data = files.data(path, _LARGEST)
        if data.value is None:
            continue
        try:
            return known(glibc_release(data.value), data.source)
        except ValueError as error:
            return missing(f"{path}: {error}", data.source)
    return missing("no libc.so.6 was found on this machine", _LIBC[0])


def _programs(files: Files) -> Reading[tuple[Program, ...]]:
    """The processes of pods."""
    names = files.list("/proc")
    if names.value is None:
        return names.lost()
    found = []
    seen = False
    for name in [name for name in names.value if name.isdigit()][:_PROCESSES]:
        cgroup = files.read(f"/proc/{name}/cgroup")
        seen = seen or cgroup.known
        pod = pod_of(cgroup.value or "")
        if pod:
            found.append(Program(int(name), pod, _library(files, name)))
    if not seen:
        return missing("no process can be seen", "/proc")
    return known(tuple(found), "/proc/*/maps")


def _library(files: Files, name: str) -> Reading[Mapped]:
    maps = files.read(f"/proc/{name}/maps", _LARGEST)
    if maps.value is None:
        return maps.lost()
    library = mapped(maps.value)
    return known(library, maps.source) if library else missing("not mapped", maps.source, absent=True)


def _locks(files: Files) -> Reading[Locks]:
    folder, lock = files.stat(LOCKS), files.stat(LOCK)
    unread = next((one for one in (folder, lock) if not one.known), None)
    return unread.lost() if unread else known(Locks(folder.need(), lock.need()), folder.source)
