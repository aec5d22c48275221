"""Directories of manifests: reads them, and rewrites many files as one change.

All files are rewritten or none: the new texts lie beside the old ones first, then a journal names them, then each takes
its place. A run that was broken off before the journal has changed nothing; after it, `finish` ends it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from vgpuctl.model.change import Change, Files
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.sources.files import read_regular

JOURNAL = ".vgpuctl-migrate"
_MOST = 16 << 20
_NAMES = (".yaml", ".yml", ".json")
_OTHERS = 1 << 20
"""Files with other names are looked into up to this size."""


@dataclass(frozen=True)
class ManifestFile:
    """path: as the user named it, or below a directory that he named. manifest: YAML or JSON by its name."""

    path: str
    data: bytes
    manifest: bool


@dataclass
class Collected:
    """unread: path → why. folder: holds all of them."""

    folder: str = "."
    files: list[ManifestFile] = field(default_factory=list)
    unread: dict[str, str] = field(default_factory=dict)


def collect(paths: Iterable[str]) -> Collected:
    """The files that are named, and those below directories that are named; hidden ones and links are not followed.

    Raises Problem (wrong use) for a path that is not there.
    """
    paths = list(paths)
    found = Collected(_folder(paths))
    for path in paths:
        if not os.path.lexists(path):
            raise Problem(f"there is no {path}", exit_code=Exit.USAGE)
        for one, named in [(path, True)] if not Path(path).is_dir() else [(below, False) for below in _below(path)]:
            manifest = named or one.endswith(_NAMES)
            try:
                found.files.append(ManifestFile(one, read_regular(one, _MOST if manifest else _OTHERS), manifest))
            except OSError as error:
                if manifest:
                    found.unread[one] = str(error.strerror or error)
    return found


def _folder(paths: list[str]) -> str:
    return os.path.commonpath(
        [Path(path).absolute() if Path(path).is_dir() else Path(path).absolute().parent for path in paths]
    )


def _below(path: str) -> Iterator[str]:
    for folder, folders, names in os.walk(path, followlinks=False):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (str(Path(folder) / name) for name in sorted(names) if not name.startswith("."))


def rewrite(change: Change) -> None:
    """Carries out a change of many files. Raises Problem when one is not what it was, or cannot be written."""
    wanted = change.after
    assert isinstance(wanted, Files)
    folder = Path(change.target.name)
    made: list[Path] = []
    try:
        for name, before, after in wanted.texts:
            path = folder / name
            if before is None:
                path.parent.mkdir(parents=True, exist_ok=True)
            if (read_regular(str(path), _MOST) if os.path.lexists(path) else None) != before:
                raise _changed(path) if before is not None else _there(path)
            made.append(_beside(path))
            _put(made[-1], after, path.stat().st_mode & 0o777 if before is not None else 0o644)
        _put(folder / JOURNAL, json.dumps([name for name, _, _ in wanted.texts]).encode(), 0o644)
    except BaseException as error:
        for path in made:
            with suppress(OSError):
                path.unlink()
        if isinstance(error, OSError):
            raise Problem(f"{folder} cannot be written", str(error), "nothing was changed", Exit.FINDINGS) from None
        raise
    finish(str(folder))


def finish(folder: str) -> list[str]:
    """Ends a change that a journal tells of; the files that it put in their places. Raises Problem."""
    journal = Path(folder) / JOURNAL
    if not os.path.lexists(journal):
        return []
    done = []
    try:
        names = json.loads(read_regular(str(journal), _MOST))
        for name in names if isinstance(names, list) else ():
            path = Path(folder) / str(name)
            if ".." not in path.parts and not Path(str(name)).is_absolute() and _beside(path).is_file():
                _beside(path).replace(path)
                done.append(str(name))
        journal.unlink()
    except (OSError, ValueError) as error:
        raise Problem(f"{journal} cannot be worked off", str(error), "repair that, and run it again") from None
    return done


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.vgpuctl")


def _put(path: Path, data: bytes, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        os.fchmod(descriptor, mode)
        file.flush()
        os.fsync(descriptor)


def _there(path: Path) -> Problem:
    return Problem(f"{path} is there already", "nothing was changed", "name a new directory", Exit.FINDINGS)


def _changed(path: Path) -> Problem:
    return Problem(f"{path} is not what it was when it was read", remedy="run it again", exit_code=Exit.FINDINGS)
