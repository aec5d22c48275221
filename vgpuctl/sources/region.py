"""Region files of the shim, and which of their processes still live.

The files are writable by the tenant. They are read with pread from a descriptor of a regular file of the right size,
opened without following links and without waiting; nothing is mapped. A file that shrinks meanwhile is a reading
without value.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from vgpuctl.model import region_layout as layout
from vgpuctl.model.reading import Reading, known, missing
from vgpuctl.model.region import Region, RegionFile, Slot, parse
from vgpuctl.model.region_core import Core, parse_core
from vgpuctl.model.region_value import NotReady
from vgpuctl.sources.files import Files, open_regular

T = TypeVar("T")
_DIRECTORIES = 10_000
_FILES = 16
_CHUNK = 1 << 18


def read_region(path: str | Path) -> Reading[Region]:
    """A region file; never raises, waits or maps."""
    return _read(path, layout.REGION_BYTES, parse)


def read_core(path: str | Path) -> Reading[Core]:
    """The `.core` companion of a region file, by its own path; never raises, waits or maps."""
    return _read(path, layout.CORE_BYTES, parse_core)


def read_regions(folder: str | Path, root: str = "/") -> Reading[tuple[RegionFile, ...]]:
    """Every region below HOOK_PATH/vgpu/containers, where a directory is named `<podUID>_<container>`.

    root: where the host's file system is mounted, for /proc; slots are judged by the processes seen there.
    """
    base = Path(folder)
    try:
        names = sorted(entry.name for entry in os.scandir(base) if entry.is_dir(follow_symlinks=False))[:_DIRECTORIES]
    except FileNotFoundError:
        return missing(f"{base} does not exist: no vGPU container has run here", str(base), absent=True)
    except OSError as error:
        return missing(f"{base}: {error.strerror}", str(base), denied=isinstance(error, PermissionError))
    processes = read_processes(Path(root) / "proc")
    found = [region for name in names for region in _directory(base / name, processes)]
    return known(tuple(found), str(base))


def recorded_regions(folder: str, files: Files) -> Reading[tuple[RegionFile, ...]]:
    """The regions that a recording of a machine holds; whose processes lived then is not known."""
    names = files.list(folder)
    if names.value is None:
        return names.lost()
    found = []
    for name in names.value[:_DIRECTORIES]:
        pod, _, container = name.partition("_")
        inside = files.list(f"{folder}/{name}").value or ()
        for file in _region_names(inside):
            path = f"{folder}/{name}/{file}"
            row = RegionFile(path, _recorded(files, path, parse), pod=pod, container=container)
            if f"{file}{layout.CORE_SUFFIX}" in inside:
                row = replace(row, core=_recorded(files, f"{path}{layout.CORE_SUFFIX}", parse_core))
            found.append(row)
    return known(tuple(found), folder)


def _recorded(files: Files, path: str, parse: Callable[[bytes], T]) -> Reading[T]:
    data = files.data(path, max(layout.REGION_BYTES, layout.CORE_BYTES))
    return data.lost() if data.value is None else _parsed(data.value, path, parse)


def _region_names(names: Iterable[str]) -> list[str]:
    return [name for name in names if ".cache" in name and not name.endswith(layout.CORE_SUFFIX)][:_FILES]


def region_file(path: str | Path, processes: Processes | None = None, pod: str = "", container: str = "") -> RegionFile:
    """A region with its companion, its slots judged by the processes that are seen."""
    core = read_core(f"{path}{layout.CORE_SUFFIX}")
    region = read_region(path)
    if processes is not None:
        seen = processes
        region = region.map(lambda value: value.with_life(lambda slot: alive(slot, core.value, seen, pod)))
    return RegionFile(str(path), region, core, pod, container)


class Companions:
    """Remembers the companions of the last look: what they count since their beginning becomes what it is now."""

    def __init__(self) -> None:
        self._seen: dict[str, Reading[Core]] = {}

    def remembered(self, files: Iterable[RegionFile], now: float) -> tuple[RegionFile, ...]:
        """The files, read at Unix time `now`, each with its companion of the look before."""
        found = []
        for file in files:
            core = replace(file.core, at=now)
            before = self._seen.get(file.path)
            found.append(replace(file, core=core, before=before) if before else replace(file, core=core))
            if core.known:
                self._seen[file.path] = core
        return tuple(found)


def _directory(folder: Path, processes: Processes) -> Iterable[RegionFile]:
    pod, _, container = folder.name.partition("_")
    try:
        names = sorted(entry.name for entry in os.scandir(folder))
    except OSError as error:
        reading: Reading[Region] = missing(f"{folder}: {error.strerror}", str(folder))
        return [RegionFile(str(folder), reading, pod=pod, container=container)]
    return [region_file(folder / name, processes, pod, container) for name in _region_names(names)]


@dataclass(frozen=True)
class ProcessInfo:
    """A process as /proc shows it. pids: in each PID namespace from ours inwards. namespace: inode of its PID
    namespace, 0 when it cannot be read. cgroup: the text of /proc/PID/cgroup. start: clock ticks since boot."""

    pids: tuple[int, ...]
    namespace: int
    cgroup: str
    start: int


@dataclass(frozen=True)
class Processes:
    """All processes that are seen, and the inode of our own PID namespace (0: unknown). whole: it is the host's view,
    so a process that is not seen is gone."""

    all: tuple[ProcessInfo, ...]
    namespace: int
    whole: bool


def alive(slot: Slot, core: Core | None, processes: Processes, pod: str) -> bool | None:
    """Whether the process of a slot still runs; None when it cannot be told.

    With `.core` the PID namespace and start time decide; without it the pod's processes do (their cgroup names the
    pod); else the host pid where the library found one that differs from the pid."""
    record = next((row for row in core.processes if row.slot == slot.number), None) if core else None
    if record and record.pid_namespace:
        same = [row for row in processes.all if row.namespace == record.pid_namespace]
        if any(row.pids[-1] == record.pid and row.start in (record.start_time, 0) for row in same):
            return True
        here = processes.whole or record.pid_namespace == processes.namespace
        may_be = (row for row in processes.all if not row.namespace and row.pids[-1] == record.pid)
        return None if not here or any(may_be) else False
    if not processes.whole:
        return None
    if pod:
        names = (pod, pod.replace("-", "_"))
        mine = [row for row in processes.all if any(name in row.cgroup for name in names)]
        return any(slot.pid in row.pids for row in mine)
    if slot.host_pid and slot.host_pid != slot.pid:
        return any(row.pids[0] == slot.host_pid for row in processes.all)
    return None


def read_processes(folder: Path) -> Processes:
    """The processes under a /proc directory."""
    rows = []
    try:
        names = [entry.name for entry in os.scandir(folder) if entry.name.isdigit()]
    except OSError:
        return Processes((), 0, False)
    for name in names:
        try:
            status = (folder / name / "status").read_text(encoding="utf-8", errors="replace")
            cgroup = (folder / name / "cgroup").read_text(encoding="utf-8", errors="replace")
            fields = (folder / name / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        if _ended(fields):
            continue
        line = next((line for line in status.splitlines() if line.startswith("NSpid:")), f"NSpid: {name}")
        pids = tuple(int(word) for word in line.split()[1:] if word.isdigit())
        start = int(fields[19]) if len(fields) > 19 and fields[19].isdigit() else 0
        rows.append(ProcessInfo(pids or (int(name),), _namespace(folder / name), cgroup, start))
    return Processes(tuple(rows), _namespace(folder / "self"), _whole(folder))


def _ended(fields: list[str]) -> bool:
    """A zombie without further threads holds nothing. fields: of /proc/PID/stat from the third, the state, on."""
    return len(fields) > 17 and fields[0] in "ZX" and fields[17] in ("0", "1")


def _whole(folder: Path) -> bool:
    """Only the host's own PID namespace shows the kernel's threads."""
    try:
        return (folder / "2" / "comm").read_text(encoding="utf-8", errors="replace").strip() == "kthreadd"
    except OSError:
        return False


def _namespace(process: Path) -> int:
    try:
        return (process / "ns" / "pid").stat().st_ino
    except OSError:
        return 0


def _read(path: str | Path, size: int, parse: Callable[[bytes], T]) -> Reading[T]:
    shown = str(path)
    try:
        descriptor = open_regular(shown)
    except FileNotFoundError:
        return missing(f"{shown} does not exist", shown, absent=True)
    except OSError as error:
        return missing(f"{shown}: {error.strerror}", shown, denied=isinstance(error, PermissionError))
    try:
        found = os.fstat(descriptor).st_size
        if found != size:
            return missing(f"{shown}: {found} bytes long, {size} expected", shown)
        data = _bytes(descriptor, size)
        if os.fstat(descriptor).st_size != size or len(data) != size:
            return missing(f"{shown}: changed its size while it was read", shown)
        return _parsed(data, shown, parse)
    except OSError as error:
        return missing(f"{shown}: {error.strerror}", shown)
    finally:
        os.close(descriptor)


def _parsed(data: bytes, shown: str, parse: Callable[[bytes], T]) -> Reading[T]:
    try:
        return known(parse(data), shown)
    except ValueError as error:
        return missing(f"{shown}: {error}", shown, absent=isinstance(error, NotReady))


def _bytes(descriptor: int, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = os.pread(descriptor, min(_CHUNK, size - len(data)), len(data))
        if not part:
            break
        data += part
    return bytes(data)
