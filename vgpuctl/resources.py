"""Finds the data that travels with the tool: schemas, templates, completions, the shim's libraries.

In a wheel they lie in `vgpuctl/_data/`, in an editable install or a checkout beside the package.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

_PACKAGE = Path(__file__).resolve().parent


def path(name: str) -> Path:
    """The path of a data file or folder, such as `schemas/DoctorReport.json`.

    Raises FileNotFoundError, naming the places looked at, when neither layout has it.
    """
    places = (_PACKAGE / "_data" / name, _PACKAGE.parent / name)
    for place in places:
        if place.exists():
            return place
    raise FileNotFoundError(f"{name} is not part of this installation (looked at {', '.join(map(str, places))})")


def text(name: str) -> str:
    """The content of a data file as text."""
    return path(name).read_text(encoding="utf-8")


def documents(name: str) -> list[Any]:
    """The documents of a data file in YAML, as plain data."""
    import yaml

    return list(yaml.load_all(text(name), getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
