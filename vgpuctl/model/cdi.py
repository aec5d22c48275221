"""CDI specifications: how a container engine is told what a GPU consists of.

Form: https://github.com/cncf-tags/container-device-interface, SPEC.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_VERSION = re.compile(r"\.so\.(\d{3}\.\d+(?:\.\d+)?)$")


@dataclass(frozen=True)
class CdiSpec:
    """One file. version: cdiVersion. kind: such as nvidia.com/gpu. devices: names. paths: every path on the host that
    it names. absent: those that are known not to exist."""

    path: str
    version: str
    kind: str
    devices: tuple[str, ...]
    paths: tuple[str, ...]
    absent: tuple[str, ...] = ()

    @property
    def drivers(self) -> tuple[str, ...]:
        """The driver versions in the names of its libraries."""
        found = (_VERSION.search(path) for path in self.paths)
        return tuple(dict.fromkeys(match.group(1) for match in found if match))


def cdi_spec(content: Any, path: str) -> CdiSpec:
    """From decoded YAML or JSON. Raises ValueError when it is not a CDI specification."""
    if not isinstance(content, Mapping) or not isinstance(content.get("kind"), str):
        raise ValueError("it has no `kind`, so it is not a CDI specification")
    devices = [entry for entry in _list(content.get("devices")) if isinstance(entry, Mapping)]
    edits = [content.get("containerEdits"), *(entry.get("containerEdits") for entry in devices)]
    return CdiSpec(
        path=path,
        version=str(content.get("cdiVersion", "")),
        kind=content["kind"],
        devices=tuple(str(entry.get("name", "")) for entry in devices),
        paths=tuple(dict.fromkeys(path for edit in edits for path in _paths(edit))),
    )


def _paths(edits: Any) -> Iterator[str]:
    if not isinstance(edits, Mapping):
        return
    for key in ("deviceNodes", "mounts", "hooks"):
        for entry in _list(edits.get(key)):
            if isinstance(entry, Mapping):
                path = entry.get("hostPath") or (entry.get("path") if key != "mounts" else None)
                if isinstance(path, str) and path.startswith("/"):
                    yield path


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
