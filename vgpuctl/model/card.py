"""A card as the driver (NVML) shows it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Card:
    """One physical GPU. memory: bytes. model: as NVML names it, such as `NVIDIA H100 80GB HBM3`."""

    index: int
    uuid: str
    model: str
    memory: int
