"""A machine's files as a bundle holds them: a tree, and `stat.tsv` for what a tree cannot hold."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from vgpuctl.model.host import ABSENT, Space, Stat
from vgpuctl.model.reading import Reading, known, missing
from vgpuctl.sources.files import LINKS, MOST, read_regular

_DF = "/commands/df.txt"
"""What `df -B1 --output=target,size,avail,itotal,iavail` printed."""


class RecordedFiles:
    """A tree that was recorded: the bytes of files and the Stats of what a tree cannot hold.

    What was not recorded is missing, never absent; absences are recorded as a Stat of kind `absent`.
    """

    def __init__(self, files: Mapping[str, bytes], stats: Mapping[str, Stat] | None = None, name: str = "") -> None:
        self._files = dict(files)
        self._stats = dict(stats or {})
        self._name = name
        self._children: dict[str, set[str]] = {}
        for path in (*self._files, *(path for path, found in self._stats.items() if found.exists)):
            for parent in PurePosixPath(path).parents:
                self._children.setdefault(str(parent), set()).add(PurePosixPath(path).relative_to(parent).parts[0])

    @property
    def name(self) -> str:
        return self._name

    def read(self, path: str, most: int = MOST) -> Reading[str]:
        return self.data(path, most).map(lambda data: data.decode("utf-8", "replace"))

    def data(self, path: str, most: int = MOST) -> Reading[bytes]:
        place = self._resolve(path)
        data = self._files.get(place)
        if data is None:
            absent = self._stats.get(place) == ABSENT
            return missing(f"{path}: {'No such file or directory' if absent else 'not recorded'}", path, absent=absent)
        if len(data) > most:
            return missing(f"{path}: larger than {most} bytes", path)
        return known(data, path)

    def list(self, path: str) -> Reading[tuple[str, ...]]:
        names = self._children.get(self._resolve(path))
        if names is None:
            return missing(f"{path}: not recorded", path)
        return known(tuple(sorted(names)), path)

    def stat(self, path: str, *, follow: bool = False) -> Reading[Stat]:
        place = self._resolve(path) if follow else self._resolve_parent(path)
        if place in self._stats:
            return known(self._stats[place], path)
        if place in self._files:
            return known(Stat("file", 0o644, size=len(self._files[place])), path)
        if place in self._children:
            return known(Stat("directory", 0o755), path)
        return missing(f"{path}: not recorded", path)

    def real(self, path: str) -> Reading[str]:
        place = self._resolve(path)
        if place in self._files or place in self._children or self._stats.get(place, ABSENT).exists:
            return known(place, path)
        return missing(f"{path}: not recorded", path)

    def space(self, path: str) -> Reading[Space]:
        for line in (self._files.get(_DF) or b"").decode("utf-8", "replace").splitlines():
            target, *numbers = line.split() or [""]
            if target == path and len(numbers) == 4 and all(number.isdigit() for number in numbers):
                total, free, inodes, inodes_free = map(int, numbers)
                return known(Space(total, free, inodes, inodes_free), _DF)
        return missing(f"{path}: free space is not recorded", _DF)

    def command(self, name: str, arguments: Sequence[str]) -> Reading[str]:
        return self.read(f"/commands/{name}.txt")

    def _resolve(self, path: str) -> str:
        done = PurePosixPath("/")
        left = list(PurePosixPath(path).parts[1:])
        for _ in range(LINKS * 10):
            if not left:
                break
            part = left.pop(0)
            if part == "..":
                done = done.parent
                continue
            found = self._stats.get(str(done / part))
            if found is None or found.kind != "link":
                done /= part
                continue
            target = PurePosixPath(found.target)
            if target.is_absolute():
                done = PurePosixPath("/")
            left[:0] = target.parts[1:] if target.is_absolute() else target.parts
        return str(done)

    def _resolve_parent(self, path: str) -> str:
        pure = PurePosixPath(path)
        return str(PurePosixPath(self._resolve(str(pure.parent))) / pure.name)


_LETTERS = {"-": "file", "d": "directory", "l": "link", "c": "char", "b": "block", "p": "fifo", "s": "socket"}


def stats_from_tsv(text: str) -> dict[str, Stat]:
    """A bundle's stat.tsv: path, kind (absent, or a letter as in `ls -l`), mode (octal), uid, gid, major:minor, target.

    Lines that are not so are left out: a bundle comes from elsewhere.
    """
    found: dict[str, Stat] = {}
    for line in text.splitlines():
        cells = [*line.split("\t"), *[""] * 7][:7]
        path, kind, mode, uid, gid, device, target = cells
        major, _, minor = device.partition(":")
        name = _LETTERS.get(kind, kind)
        if not path.startswith("/") or name not in {*_LETTERS.values(), "absent"}:
            continue
        try:
            numbers = [int(cell or "0") for cell in (uid, gid, major, minor)]
            found[path] = Stat(name, int(mode or "0", 8), numbers[0], numbers[1], numbers[2], numbers[3], target)
        except ValueError:
            continue
    return found


def tree(root: Path, most: int = 16 * MOST) -> Iterable[tuple[str, bytes]]:
    """The regular files under a directory as (path from the root, bytes), without links, each at most `most` bytes."""
    for folder, _, names in os.walk(root, followlinks=False):
        for name in sorted(names):
            place = Path(folder) / name
            try:
                yield f"/{place.relative_to(root).as_posix()}", read_regular(str(place), most)
            except OSError:
                continue
