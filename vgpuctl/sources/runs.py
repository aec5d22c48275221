"""The programs that `vgpuctl run` started on this machine: a directory for each, with its state and its region.

Layout: BASE/<id>/state.json, and BASE/<id>/vgpu/ with the region and its `.core`, as a container has them. BASE is
${XDG_RUNTIME_DIR}/vgpuctl/run, or /tmp/vgpuctl-UID/run; it must be ours alone, since others may write beside it.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from vgpuctl.model.problem import Exit, Problem
from vgpuctl.model.run import RunState, decode, encode

_REGION = "vgpu/run.cache"
_STATE = "state.json"


@dataclass(frozen=True)
class Run:
    """One program that runs. folder: its directory. region: path of its region file."""

    folder: Path
    state: RunState

    @property
    def region(self) -> Path:
        return self.folder / _REGION


def base(environment: Mapping[str, str]) -> Path:
    """Where the runs of this user are kept."""
    runtime = environment.get("XDG_RUNTIME_DIR")
    return (Path(runtime) / "vgpuctl" if runtime else Path(f"/tmp/vgpuctl-{os.getuid()}")) / "run"


def create(folder: Path) -> Path:
    """Makes the directory of a new run below `folder`, mode 0700, and clears those of programs that are gone.

    Raises Problem when the place is not ours.
    """
    try:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        for place in (folder.parent, folder):
            _must_be_ours(place)
        for path in _folders(folder):
            if _read(path) is None and ((path / _STATE).exists() or not _young(path)):
                remove(path)
        made = Path(tempfile.mkdtemp(prefix="", dir=folder))
        (made / _REGION).parent.mkdir(mode=0o700)
    except OSError as error:
        raise Problem(
            f"cannot keep the state of a run under {folder}",
            f"{error.filename}: {error.strerror}",
            "set XDG_RUNTIME_DIR to a directory that you own",
            Exit.UNKNOWN,
        ) from None
    return made


def remove(folder: Path) -> None:
    """Forgets a run."""
    shutil.rmtree(folder, ignore_errors=True)


def region_of(folder: Path) -> Path:
    """The region file of a run's directory."""
    return folder / _REGION


def save(folder: Path, state: RunState) -> None:
    """Writes the state of a run."""
    (folder / _STATE).write_bytes(encode(state))


def running(environment: Mapping[str, str]) -> tuple[Run, ...]:
    """The runs of this user whose program still lives, the oldest first."""
    found = (_read(path) for path in sorted(_folders(base(environment)), key=lambda path: path.name))
    return tuple(sorted((run for run in found if run), key=lambda run: run.state.started))


def start_of(pid: int) -> int:
    """When a process started, clock ticks since boot; 0 when there is none or the system has no /proc."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return 0
    return int(fields[19])


def _read(folder: Path) -> Run | None:
    try:
        state = decode((folder / _STATE).read_bytes())
    except (OSError, msgspec.DecodeError):
        return None
    return Run(folder, state) if state.started and start_of(state.pid) == state.started else None


def _folders(folder: Path) -> Iterator[Path]:
    try:
        entries = [Path(entry.path) for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return iter(())
    return iter(entries)


def _young(folder: Path) -> bool:
    """Whether a run without a state may still be about to write it."""
    try:
        return time.time() - folder.stat().st_mtime < 60
    except OSError:
        return True


def _must_be_ours(folder: Path) -> None:
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise Problem(
            f"{folder} is not a directory that only you can write",
            "another user could read or change the limits of your program there",
            "remove it, or set XDG_RUNTIME_DIR",
            Exit.UNKNOWN,
        )
