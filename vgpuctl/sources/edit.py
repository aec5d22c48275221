"""Writes files of this machine: whole texts by an atomic rename, bytes in place where others write too.

Links are never followed: directories of containers are writable by tenants.
"""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from vgpuctl.model.change import Bytes, Change
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.sources.files import read_regular

_LARGEST = 1 << 20


def write_text(change: Change) -> None:
    """Replaces a file's text, keeping the old one as <path>.before. Raises Problem when that fails or the file is not
    what it was."""
    path = Path(change.target.name)
    try:
        found = read_regular(str(path), _LARGEST) if os.path.lexists(path) else None
        before = None if change.before is None else str(change.before).encode()
        if found != before:
            raise _changed(path)
        if found is not None:
            _replace(path.with_name(f"{path.name}.before"), found)
        _replace(path, str(change.after).encode())
    except OSError as error:
        raise _failed(path, error) from None


def write_bytes(change: Change) -> None:
    """Writes bytes in place if what must stand there does. Raises Problem otherwise."""
    path, wanted = Path(change.target.name), change.after
    assert isinstance(wanted, Bytes)
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError as error:
        raise _failed(path, error) from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise _changed(path)
        stood = os.pread(descriptor, len(wanted.after), wanted.offset)
        keep = Path(wanted.keep)
        keep.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _replace(keep, stood)
        if len(stood) != len(wanted.after) or any(
            os.pread(descriptor, len(data), offset) != data for offset, data in wanted.guard
        ):
            raise _changed(path)
        os.pwrite(descriptor, wanted.after, wanted.offset)
    except OSError as error:
        raise _failed(path, error) from None
    finally:
        os.close(descriptor)


def _replace(path: Path, data: bytes) -> None:
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            os.fchmod(descriptor, 0o644)
        Path(name).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise


def _changed(path: Path) -> Problem:
    return Problem(
        f"{path} is not what it was when it was looked at", remedy="run doctor again", exit_code=Exit.FINDINGS
    )


def _failed(path: Path, error: OSError) -> Problem:
    remedy = "" if os.geteuid() == 0 else "run vgpuctl as root"
    return Problem(f"{path} cannot be written", str(error.strerror), remedy, Exit.FINDINGS)
