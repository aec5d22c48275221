"""Running one program under a limit on this machine, without a cluster: what it asks for and what it is told.

The environment is the one that a container gets (docs/contract.md §5), so the library sees no difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from vgpuctl.model.output import Item


@dataclass(frozen=True)
class Limits:
    """memory: bytes by card, or one number for every card; () for no limit. cores: percent of a card, None for no
    limit. cards: the UUIDs of the cards to use, in the order that gives limits their numbers; () for all, or where they
    are not known. gpu: what CUDA is to show where the UUIDs are not known, "" for everything."""

    memory: tuple[int, ...] = ()
    cores: int | None = None
    cards: tuple[str, ...] = ()
    gpu: str = ""


class RunState(Item, frozen=True, kw_only=True):
    """What `run` leaves beside its region for `top`: the process, what it is and which driver it has.

    started: field 22 of /proc/PID/stat, which tells a reused pid. simulated: the variables that put the simulated
    driver in place, empty for the real one.
    """

    pid: int
    started: int
    command: list[str]
    simulated: dict[str, str] = {}


def environment(before: Mapping[str, str], limits: Limits, library: str, region: str) -> dict[str, str]:
    """The program's environment. library: path of the shim. region: path of the region file to use.

    As in a container, NVIDIA_VISIBLE_DEVICES lists the cards that the region has; nothing but the driver's own
    variable hides the others from CUDA here.
    """
    after = dict(before)
    after["LD_PRELOAD"] = ":".join([library, *filter(None, [before.get("LD_PRELOAD")])])
    after["CUDA_DEVICE_MEMORY_SHARED_CACHE"] = region
    after["GPU_CORE_UTILIZATION_POLICY"] = "force"
    for name in [name for name in after if name.startswith(("CUDA_DEVICE_MEMORY_LIMIT", "CUDA_DEVICE_SM_LIMIT"))]:
        del after[name]
    if len(limits.memory) == 1:
        after["CUDA_DEVICE_MEMORY_LIMIT"] = str(limits.memory[0])
    else:
        after.update({f"CUDA_DEVICE_MEMORY_LIMIT_{card}": str(limit) for card, limit in enumerate(limits.memory)})
    if limits.cores is not None:
        after["CUDA_DEVICE_SM_LIMIT"] = str(limits.cores)
    if limits.cards:
        after["NVIDIA_VISIBLE_DEVICES"] = ",".join(limits.cards)
    if limits.gpu:
        after["CUDA_VISIBLE_DEVICES"] = ",".join(limits.cards) or limits.gpu
    return after


def simulation(before: Mapping[str, str], directory: str, cards: str) -> dict[str, str]:
    """The variables that put the simulated driver of a directory in the place of the real one, showing these cards."""
    path = ":".join([directory, *filter(None, [before.get("LD_LIBRARY_PATH")])])
    return {"LD_LIBRARY_PATH": path, "VGPUCTL_FAKE_GPUS": cards}


def encode(state: RunState) -> bytes:
    """The state as the text of its file."""
    return msgspec.json.encode(state)


def decode(data: bytes) -> RunState:
    """The state from the text of its file. Raises msgspec.DecodeError for anything else."""
    return msgspec.json.decode(data, type=RunState)
