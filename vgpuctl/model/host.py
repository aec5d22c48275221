"""A machine as its own files tell it: /proc, /sys, /dev, the runtime's configuration.

`Host` holds Readings of what the files said, already parsed; the functions here parse the texts. The same type
is filled from the local root, a pod on a node and a bundle.
"""

from __future__ import annotations

from dataclasses import dataclass

from vgpuctl.model.reading import Reading, missing

_NOT_READ = "not read"


@dataclass(frozen=True)
class Host:
    """What is known of one machine. Each field is a Reading of its own."""

    name: str
    driver_version: Reading[str] = missing(_NOT_READ)
