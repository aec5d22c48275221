"""Writes a folder of files that belong together, such as an export of manifests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from vgpuctl.model.problem import Exit, Problem


def write_folder(place: str, files: Mapping[str, str], mark: str) -> list[str]:
    """Writes the files into a folder, which is made; the other files that are in it. mark: the file by which a folder
    shows that it was written so before; one that holds anything without it is refused. Raises Problem."""
    folder = Path(place)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        there = sorted(path.name for path in folder.iterdir())
        if there and mark not in there:
            raise Problem(
                f"{place} is not empty", f"it holds {there[0]}", "name a new folder, or an earlier export", Exit.USAGE
            )
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise Problem(f"{place} cannot be written", str(error.strerror or error), exit_code=Exit.USAGE) from None
    return [name for name in there if name not in files]
