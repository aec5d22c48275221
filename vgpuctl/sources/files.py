"""The port through which a machine's files are read, and its adapter for a local root.

A read is bounded in size and never hangs: only regular files are opened, after lstat, without following a last link,
non-blocking. Links are followed by hand, inside the root, at most 40 of them.
"""

from __future__ import annotations

import errno
import os
import stat
import subprocess
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

from vgpuctl.model.host import ABSENT, Space, Stat
from vgpuctl.model.reading import Reading, known, missing

MOST = 1 << 20
"""Bytes that a read takes unless told otherwise; configuration is far smaller."""
LINKS = 40
_ENTRIES = 50_000
_SECONDS = 5.0
TRUSTED_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where the system's own programs are, whatever PATH says."""


class Files(Protocol):
    """A machine's files. Paths are absolute, from the machine's own root. Nothing here raises for what it finds."""

    @property
    def name(self) -> str:
        """What reports call the machine, such as `gpu-1`."""
        ...

    def read(self, path: str, most: int = MOST) -> Reading[str]:
        """The text of a regular file, decoded as UTF-8 (other bytes replaced)."""
        ...

    def data(self, path: str, most: int = MOST) -> Reading[bytes]:
        """The bytes of a regular file."""
        ...

    def list(self, path: str) -> Reading[tuple[str, ...]]:
        """The names in a directory, sorted."""
        ...

    def stat(self, path: str, *, follow: bool = False) -> Reading[Stat]:
        """What lies at a path; a path that does not exist is a known `absent`."""
        ...

    def real(self, path: str) -> Reading[str]:
        """The path with every link resolved."""
        ...

    def space(self, path: str) -> Reading[Space]:
        """The file system that holds a path."""
        ...

    def command(self, name: str, arguments: Sequence[str]) -> Reading[str]:
        """What a command that only reads prints (both streams); bundles hold it under /commands/<name>.txt."""
        ...


class LocalFiles:
    """The files under a directory of this machine, by default its root."""

    def __init__(self, root: str = "/", name: str = "") -> None:
        self._root = root.rstrip("/") or "/"
        self._name = name

    @property
    def live(self) -> bool:
        """It is this machine itself, so commands can be asked."""
        return self._root == "/"

    @property
    def name(self) -> str:
        return self._name or (os.uname().nodename if self.live else self._root)

    def read(self, path: str, most: int = MOST) -> Reading[str]:
        return self.data(path, most).map(_text)

    def data(self, path: str, most: int = MOST) -> Reading[bytes]:
        try:
            return known(read_regular(self.outer(self._resolve(path)), most), self.outer(path))
        except OSError as error:
            return self._failed(error, path)

    def list(self, path: str) -> Reading[tuple[str, ...]]:
        try:
            with os.scandir(self.outer(self._resolve(path))) as entries:
                names = [entry.name for _, entry in zip(range(_ENTRIES), entries, strict=False)]
        except OSError as error:
            return self._failed(error, path)
        return known(tuple(sorted(names)), self.outer(path))

    def stat(self, path: str, *, follow: bool = False) -> Reading[Stat]:
        try:
            place = self._resolve(path) if follow else self._resolve_parent(path)
            return known(_stat(self.outer(place)), self.outer(path))
        except (FileNotFoundError, NotADirectoryError):
            return known(ABSENT, self.outer(path))
        except OSError as error:
            return self._failed(error, path)

    def real(self, path: str) -> Reading[str]:
        try:
            place = self._resolve(path)
            os.lstat(self.outer(place))
        except OSError as error:
            return self._failed(error, path)
        return known(place, self.outer(path))

    def space(self, path: str) -> Reading[Space]:
        try:
            found = os.statvfs(self.outer(self._resolve(path)))
        except OSError as error:
            return self._failed(error, path)
        size = found.f_frsize
        return known(
            Space(found.f_blocks * size, found.f_bavail * size, found.f_files, found.f_favail), self.outer(path)
        )

    def command(self, name: str, arguments: Sequence[str]) -> Reading[str]:
        shown = " ".join(arguments)
        if not self.live:
            return self.read(f"/commands/{name}.txt")
        environment = {"PATH": f"{os.environ.get('PATH', '')}:{TRUSTED_PATH}", "LC_ALL": "C"}
        try:
            done = subprocess.run(
                list(arguments),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=_SECONDS,
                env=environment,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return missing(f"`{shown}` did not answer in {_SECONDS:.0f} s", shown)
        except FileNotFoundError:
            return missing(f"{arguments[0]} is not installed", shown, absent=True)
        except OSError as error:
            return missing(f"`{shown}` cannot be run: {error.strerror}", shown)
        text = done.stdout[-MOST:].decode("utf-8", "replace")
        if done.returncode and ("ermission denied" in text or "not permitted" in text):
            return missing(f"`{shown}` needs root", shown, denied=True)
        return known(text, shown)

    def outer(self, path: str) -> str:
        """The path from this machine's own root."""
        return path if self.live else self._root + path

    def _failed(self, error: OSError, path: str) -> Reading[Any]:
        denied = error.errno in (errno.EACCES, errno.EPERM)
        absent = error.errno in (errno.ENOENT, errno.ENOTDIR)
        return missing(f"{path}: {error.strerror}", self.outer(path), denied=denied, absent=absent)

    def _resolve(self, path: str) -> str:
        """The path with all links followed, inside the root. Raises OSError."""
        done = "/"
        left = list(PurePosixPath(path).parts[1:])
        links = 0
        while left:
            part = left.pop(0)
            if part == "..":
                done = str(PurePosixPath(done).parent)
                continue
            place = str(PurePosixPath(done) / part)
            try:
                target = str(Path(self.outer(place)).readlink())
            except OSError as error:
                if error.errno != errno.EINVAL:
                    raise
                done = place
                continue
            links += 1
            if links > LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            parts = PurePosixPath(target).parts
            if target.startswith("/"):
                done, parts = "/", parts[1:]
            left[:0] = parts
        return done

    def _resolve_parent(self, path: str) -> str:
        parent, name = os.path.split(path.rstrip("/"))
        return str(PurePosixPath(self._resolve(parent or "/")) / name)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def read_regular(path: str, most: int) -> bytes:
    """The bytes of a regular file, at most `most`. Raises OSError, also for what is no regular file or too large."""
    descriptor = open_regular(path)
    try:
        parts: list[bytes] = []
        size = 0
        while size <= most and (part := os.read(descriptor, min(1 << 16, most + 1 - size))):
            parts.append(part)
            size += len(part)
    finally:
        os.close(descriptor)
    if size > most:
        raise OSError(errno.EFBIG, f"larger than {most} bytes", path)
    return b"".join(parts)


def open_regular(path: str) -> int:
    """A descriptor for reading a regular file that is not a link. Raises OSError, never waits for anybody."""
    before = os.lstat(path)
    if not stat.S_ISREG(before.st_mode):
        raise OSError(errno.EINVAL, f"is {_article(before.st_mode)}, not a regular file", path)
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        now = os.fstat(descriptor)
        if not stat.S_ISREG(now.st_mode):
            raise OSError(errno.EINVAL, f"is {_article(now.st_mode)}, not a regular file", path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


_KINDS = (
    (stat.S_ISREG, "file", "a file"),
    (stat.S_ISDIR, "directory", "a directory"),
    (stat.S_ISLNK, "link", "a link"),
    (stat.S_ISCHR, "char", "a device"),
    (stat.S_ISBLK, "block", "a device"),
    (stat.S_ISFIFO, "fifo", "a FIFO"),
    (stat.S_ISSOCK, "socket", "a socket"),
)


def _article(mode: int) -> str:
    return next((article for test, _, article in _KINDS if test(mode)), "something else")


def _stat(path: str) -> Stat:
    found = os.lstat(path)
    kind = next((kind for test, kind, _ in _KINDS if test(found.st_mode)), "other")
    device = kind in ("char", "block")
    return Stat(
        kind=kind,
        mode=stat.S_IMODE(found.st_mode),
        uid=found.st_uid,
        gid=found.st_gid,
        major=os.major(found.st_rdev) if device else 0,
        minor=os.minor(found.st_rdev) if device else 0,
        target=str(Path(path).readlink()) if kind == "link" else "",
        size=found.st_size,
        label=_label(path),
        inode=found.st_ino,
        modified=found.st_mtime,
    )


def _label(path: str) -> str:
    try:
        return os.getxattr(path, "security.selinux", follow_symlinks=False).rstrip(b"\0").decode("utf-8", "replace")
    except (OSError, AttributeError):
        return ""
