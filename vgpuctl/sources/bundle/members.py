"""The members of a bundle by name, from a directory or an archive."""

from __future__ import annotations

import os
import tarfile
import zlib
from pathlib import Path, PurePosixPath

from vgpuctl.model.problem import Problem
from vgpuctl.sources.files import read_regular

LARGEST = 512 << 20
"""Bytes of one member: the pods of a big pool as JSON are a third of that."""
TOTAL = 2 << 30
COUNT = 200_000


def read_members(path: Path) -> dict[str, bytes]:
    """All regular files of a bundle by their path from its root. Raises Problem."""
    try:
        if path.is_dir():
            return _directory(path)
        return _archive(path)
    except FileNotFoundError:
        raise Problem(f"bundle {path} does not exist") from None
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        what = "is neither a directory nor a .tar.gz" if isinstance(error, tarfile.ReadError) else "cannot be read"
        raise Problem(f"bundle {path} {what}", str(error)) from None


def _directory(root: Path) -> dict[str, bytes]:
    members: dict[str, bytes] = {}
    total = 0
    for folder, _, names in os.walk(root, followlinks=False):
        for name in sorted(names):
            place = Path(folder) / name
            if place.is_symlink() or not place.is_file():
                continue
            total += place.stat().st_size
            _bound(str(place), place.stat().st_size, total, len(members))
            members[place.relative_to(root).as_posix()] = read_regular(str(place), LARGEST)
    return members


def _archive(path: Path) -> dict[str, bytes]:
    members: dict[str, bytes] = {}
    total = 0
    with tarfile.open(path, "r|*") as archive:
        for number, info in enumerate(archive):
            total += max(0, info.size)
            _bound(info.name, info.size, total, number)
            pure = PurePosixPath(info.name)
            if pure.is_absolute() or ".." in pure.parts:
                raise Problem(f"bundle {path}: member {info.name} leaves the bundle", remedy="it is not one of ours")
            content = archive.extractfile(info) if info.isreg() else None
            if content is not None:
                members[str(pure)] = content.read()
    return _without_top(members)


def _bound(name: str, size: int, total: int, count: int) -> None:
    for value, most, what in ((size, LARGEST, "bytes"), (total, TOTAL, "bytes in all"), (count, COUNT, "members")):
        if value > most:
            raise Problem(f"the bundle is too large: more than {most} {what} at {name}")


def _without_top(members: dict[str, bytes]) -> dict[str, bytes]:
    """Archives often hold one directory that holds everything."""
    tops = {PurePosixPath(name).parts[0] for name in members}
    if len(tops) != 1 or "meta.json" in members:
        return members
    top = f"{tops.pop()}/"
    return {name[len(top) :]: data for name, data in members.items() if name.startswith(top)}
