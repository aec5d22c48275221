"""The driver and its cards as NVML shows them.

A `Card` is one that answered; a card that NVML lists but that fails is a `BrokenCard` with the reason, so it is
shown and never counted. What a card does not offer (ECC on a consumer card, say) is a missing Reading.
"""

from __future__ import annotations

from dataclasses import dataclass

from vgpuctl.model.architecture import Architecture, by_capability, by_model
from vgpuctl.model.reading import Reading, missing

_NOT_READ = "not read"


@dataclass(frozen=True)
class Process:
    """A process on a card, as NVML lists it. pid: as the reader's driver numbers it. memory: bytes. busy: share of the
    card's time over the last samples, 0 to 1. kind: `compute` or `graphics`."""

    pid: int
    kind: str = "compute"
    memory: int | None = None
    busy: float | None = None
    name: str = ""


@dataclass(frozen=True)
class MigProfile:
    """A MIG profile that the card offers. memory: MiB. count: how many fit at most."""

    name: str
    memory: int
    count: int


@dataclass(frozen=True)
class Card:
    """One physical GPU. memory and used: bytes. model: as NVML names it, such as `NVIDIA H100 80GB HBM3`.
    bus: the PCI address. busy: share of time with a kernel running, 0 to 1. temperature: degrees Celsius.
    power and power_limit: watts. uncorrected: ECC errors that could not be corrected since the driver was loaded.
    pages_pending, remap_pending, remap_failed: memory repairs that wait for a reset, or failed.
    throttled: reasons why the clock is held down now. fabric: state of the NVLink fabric."""

    index: int
    uuid: str
    model: str
    memory: int
    bus: str = ""
    minor: Reading[int] = missing(_NOT_READ)
    capability: Reading[tuple[int, int]] = missing(_NOT_READ)
    used: Reading[int] = missing(_NOT_READ)
    busy: Reading[float] = missing(_NOT_READ)
    temperature: Reading[int] = missing(_NOT_READ)
    power: Reading[float] = missing(_NOT_READ)
    power_limit: Reading[float] = missing(_NOT_READ)
    persistence: Reading[bool] = missing(_NOT_READ)
    mig: Reading[bool] = missing(_NOT_READ)
    mig_pending: Reading[bool] = missing(_NOT_READ)
    mig_profiles: Reading[tuple[MigProfile, ...]] = missing(_NOT_READ)
    ecc: Reading[bool] = missing(_NOT_READ)
    uncorrected: Reading[int] = missing(_NOT_READ)
    pages_pending: Reading[bool] = missing(_NOT_READ)
    remap_pending: Reading[bool] = missing(_NOT_READ)
    remap_failed: Reading[bool] = missing(_NOT_READ)
    throttled: Reading[tuple[str, ...]] = missing(_NOT_READ)
    fabric: Reading[str] = missing(_NOT_READ)
    processes: Reading[tuple[Process, ...]] = missing(_NOT_READ)

    @property
    def architecture(self) -> Architecture | None:
        """By compute capability, else by name; None for one newer than our table."""
        if self.capability.value:
            return by_capability(*self.capability.value)
        return by_model(self.model)


@dataclass(frozen=True)
class BrokenCard:
    """A card that NVML lists but cannot answer for. name: its UUID or PCI address where NVML still says that.
    unified: it is healthy but has no memory of its own (GB10, Jetson), so it cannot be divided."""

    index: int
    reason: str
    name: str = ""
    unified: bool = False


@dataclass(frozen=True)
class Library:
    """libcuda as a program here would load it. path: the file. version: the driver version in its name, "" when the
    name has none. cuda: the newest CUDA version that it offers, such as `13.0`."""

    path: str
    version: str = ""
    cuda: str = ""


@dataclass(frozen=True)
class Driver:
    """The user-space driver. version: as NVML says. cuda: the newest CUDA version it supports. broken: cards that do
    not answer. Missing as a whole when NVML does not initialise."""

    version: str
    cuda: Reading[str] = missing(_NOT_READ)
    library: Reading[Library] = missing(_NOT_READ)
    broken: tuple[BrokenCard, ...] = ()
