"""What a monitor said of the cards and vGPUs of one node."""

from __future__ import annotations

from dataclasses import dataclass

UUID_LENGTH = 40
"""Monitors cut UUIDs to so many characters; a MIG slice is longer."""


@dataclass(frozen=True)
class CardSample:
    """A card as the node's driver saw it. memory_used: bytes. busy: ratio of time with a kernel running."""

    uuid: str
    memory_used: int | None = None
    busy: float | None = None


@dataclass(frozen=True)
class VgpuSample:
    """A container's part of one card, as the library in it counts. Memory in bytes, cores in cards.

    uuid: as the monitor writes it, see UUID_LENGTH. last_kernel: Unix seconds, 0 for never.
    busy, throttled: ratios of time, None for monitors that do not tell. reason: what was odd about the figures.
    """

    namespace: str
    pod: str
    container: str
    uuid: str
    memory_used: int | None = None
    memory_limit: int | None = None
    cores_used: float | None = None
    cores_limit: float | None = None
    busy: float | None = None
    throttled: float | None = None
    last_kernel: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class Scrape:
    """One answer of one node's monitor. node: its node; at: when, Unix seconds. reason: why there is none ("" if there
    is). late: this is its last answer, no new one came in time."""

    node: str
    at: float
    cards: tuple[CardSample, ...] = ()
    vgpus: tuple[VgpuSample, ...] = ()
    reason: str = ""
    late: bool = False
