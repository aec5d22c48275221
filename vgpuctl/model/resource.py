"""The names of the vGPU resources. The device configuration may change them; a tool must use the configured ones."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property


class What(str, Enum):
    """What a vGPU resource counts."""

    NUMBER = "number"
    """vGPUs of a container, each on another card."""
    MEMORY = "memory"
    """Memory per vGPU, in units of gpuMemoryFactor MiB."""
    PERCENTAGE = "percentage"
    """Memory per vGPU in percent of the card."""
    CORES = "cores"
    """Percent of one card's compute per vGPU."""


@dataclass(frozen=True)
class ResourceNames:
    """The four resource names in force."""

    number: str = "volcano.sh/vgpu-number"
    memory: str = "volcano.sh/vgpu-memory"
    percentage: str = "volcano.sh/vgpu-memory-percentage"
    cores: str = "volcano.sh/vgpu-cores"

    def name(self, what: What) -> str:
        return str(getattr(self, what.value))

    def what(self, name: str) -> What | None:
        """What a resource name counts, None when it is no vGPU resource."""
        return self._meanings.get(name)

    @cached_property
    def _meanings(self) -> dict[str, What]:
        return {self.name(what): what for what in reversed(What)}

    @cached_property
    def all(self) -> tuple[str, ...]:
        return tuple(self.name(what) for what in What)
