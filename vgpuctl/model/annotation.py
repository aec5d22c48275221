"""Codecs of the annotations on nodes and pods (docs/contract.md §4), tolerant of what should not be there.

Decoders never raise: what is broken is told beside what could be read. They read as Volcano's scheduler reads.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

REGISTER = "volcano.sh/node-vgpu-register"
HANDSHAKE = "volcano.sh/node-vgpu-handshake"
LOCK = "hamivgpu"
IDS = "volcano.sh/vgpu-ids-new"
TO_ALLOCATE = "volcano.sh/devices-to-allocate"
NODE = "volcano.sh/vgpu-node"
TIME = "volcano.sh/vgpu-time"
BIND_TIME = "volcano.sh/bind-time"
BIND_PHASE = "volcano.sh/bind-phase"
USE_TYPE, NO_USE_TYPE = "nvidia.com/use-gputype", "nvidia.com/nouse-gputype"
USE_UUID, NO_USE_UUID = "volcano.sh/vgpu-use-gpuuuid", "volcano.sh/vgpu-nouse-gpuuuid"
MODE = "volcano.sh/vgpu-mode"

LOCK_SECONDS = 300.0
"""Volcano takes a lock over when it is older (pkg/scheduler/api/devices/nodelock)."""

_INTEGER = re.compile(r"[+-]?\d+")
_UNSIGNED = re.compile(r"\d{1,10}")
_TRUE = {"1", "t", "T", "TRUE", "true", "True"}
_SLICE = re.compile(r"(?P<uuid>.*)\[(?P<group>.*)-(?P<number>\d+)\]")
_TIME = re.compile(r"(\d{4})[-.](\d\d)[-.](\d\d)[T ](\d\d:\d\d:\d\d)(?:\.\d+)?\s*(Z|[+-]\d\d:?\d\d)?")
_RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")


@dataclass(frozen=True)
class RegisteredCard:
    """A card as the plugin registered it. count: vGPUs. memory: memory units. type: such as `NVIDIA-Tesla T4`.

    index: its place in the annotation; parts that are no card keep theirs.
    """

    index: int
    uuid: str
    count: int
    memory: int
    type: str
    healthy: bool
    mode: str

    @property
    def model(self) -> str:
        """The type without the vendor that the plugin puts in front, such as `Tesla T4`."""
        return self.type.removeprefix("NVIDIA-")


@dataclass(frozen=True)
class Register:
    """A node's cards. error: why the scheduler sees no card on this node, "" when it does."""

    cards: tuple[RegisteredCard, ...]
    error: str = ""

    @property
    def mode(self) -> str:
        """The node's operating mode, which is that of the last card: `mig` exactly, else `hami-core`."""
        return "mig" if self.cards and self.cards[-1].mode == "mig" else "hami-core"


def decode_register(text: str) -> Register:
    """The node annotation `volcano.sh/node-vgpu-register`: `UUID,count,memory,TYPE,healthy,mode:` for each card."""
    if ":" not in text:
        return Register((), "it holds no `:`")
    cards = []
    for index, part in enumerate(text.split(":")):
        if "," not in part:
            continue
        fields = part.split(",")
        if len(fields) < 6:
            return Register((), f"card {index} has {len(fields)} fields, not 6: {part!r}")
        uuid, count, memory, kind, healthy, mode = fields[:6]
        cards.append(RegisteredCard(index, uuid, _int(count), _int(memory), kind, healthy in _TRUE, mode))
    return Register(tuple(cards), "" if cards else "it holds no card")


def encode_register(cards: Sequence[RegisteredCard]) -> str:
    """The annotation that `decode_register` reads back."""
    return "".join(
        f"{card.uuid},{card.count},{card.memory},{card.type},{str(card.healthy).lower()},{card.mode}:" for card in cards
    )


@dataclass(frozen=True)
class Allocation:
    """One vGPU that a container holds. memory: memory units. cores: percent of the card."""

    uuid: str
    memory: int
    cores: int
    kind: str = "NVIDIA"

    @property
    def card(self) -> str:
        """The card's UUID, without the MIG slice."""
        found = _SLICE.fullmatch(self.uuid)
        return found["uuid"] if found else self.uuid

    @property
    def slice(self) -> str:
        """The MIG slice, such as `group1-2`; "" on a card that is not in MIG mode."""
        found = _SLICE.fullmatch(self.uuid)
        return f"{found['group']}-{found['number']}" if found else ""


@dataclass(frozen=True)
class Allocations:
    """A pod's vGPUs, one tuple for each container that asked. broken: entries that could not be read."""

    containers: tuple[tuple[Allocation, ...], ...]
    broken: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[Allocation, ...]:
        """The vGPUs of all containers."""
        return tuple(item for container in self.containers for item in container)


@lru_cache(maxsize=1 << 16)
def decode_allocations(text: str) -> Allocations:
    """The pod annotations `vgpu-ids-new` and `devices-to-allocate`: `UUID,NVIDIA,memory,cores:`, containers by `;`."""
    containers = []
    broken = []
    for part in text.split(";") if text else ():
        entries = []
        for entry in filter(None, part.split(":")):
            fields = entry.split(",")
            if len(fields) >= 4 and _UNSIGNED.fullmatch(fields[2]) and _UNSIGNED.fullmatch(fields[3]):
                entries.append(Allocation(fields[0], int(fields[2]), int(fields[3]), fields[1]))
            else:
                broken.append(entry)
        containers.append(tuple(entries))
    return Allocations(tuple(containers), tuple(broken))


def encode_allocations(containers: Sequence[Sequence[Allocation]]) -> str:
    """The annotation that `decode_allocations` reads back."""
    return ";".join(
        "".join(f"{item.uuid},{item.kind},{item.memory},{item.cores}:" for item in container)
        for container in containers
    )


@dataclass(frozen=True)
class Handshake:
    """state: `Reported` (by the plugin), `Requesting` (the scheduler waits for an answer), `Deleted` or "" for another.

    at: Unix seconds, None when the time cannot be read.
    """

    state: str
    at: float | None


def decode_handshake(text: str) -> Handshake:
    """The node annotation `volcano.sh/node-vgpu-handshake`."""
    for state, mark in (("Reported", " "), ("Requesting", "_"), ("Deleted", "_")):
        if text.startswith(f"{state}{mark}"):
            return Handshake(state, decode_time(text[len(state) + 1 :]))
    return Handshake("", None)


def lock_age(text: str, now: float) -> float | None:
    """Seconds since the node lock `hamivgpu` was taken, None when Volcano cannot parse it: it then blocks for ever."""
    at = decode_time(text) if _RFC3339.fullmatch(text) else None
    return None if at is None else now - at


def decode_time(text: str) -> float | None:
    """Unix seconds of an RFC 3339 time, of Go's `2006-01-02 15:04:05.9 +0000 UTC …` or of the scheduler's
    `2006.01.02 15:04:05`; None for anything else. Without a zone it is taken as UTC."""
    found = _TIME.match(text.strip())
    if not found:
        return None
    year, month, day, clock, zone = found.groups()
    zone = "+00:00" if zone in (None, "Z") else f"{zone[:3]}:{zone[-2:]}"
    try:
        return datetime.fromisoformat(f"{year}-{month}-{day}T{clock}{zone}").timestamp()
    except (ValueError, OverflowError):
        return None


def unix_time(text: str) -> float | None:
    """Unix seconds as `vgpu-time` and `bind-time` hold them; None for anything else."""
    return float(text) if text.isascii() and text.isdigit() and len(text) <= 12 else None


def _int(text: str) -> int:
    """A number as Go's Atoi takes it, for all else 0."""
    return int(text) if _INTEGER.fullmatch(text) and len(text) <= 19 else 0
