"""Prepares a program to run under a limit: its state on this machine and its environment."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vgpuctl import resources
from vgpuctl.model.card import Card
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.model.quantity import MIB, Size
from vgpuctl.model.run import Limits, RunState, environment, simulation
from vgpuctl.sources import runs
from vgpuctl.sources.driver import NvmlDriver

_LOCKS = Path("/tmp/vgpulock")
OWN_FAILURE = 125


@dataclass(frozen=True)
class Prepared:
    """What to execute, and the directory of its state."""

    command: tuple[str, ...]
    environment: dict[str, str]
    folder: Path

    def forget(self) -> None:
        """Undoes the preparation, when the program could not be started."""
        runs.remove(self.folder)


def prepare(
    command: Sequence[str], memory: Size | None, cores: int | None, gpu: str, simulate: str, before: Mapping[str, str]
) -> Prepared:
    """Writes the state of the run of this process (which will become the program) and gives what to execute.

    memory: a limit on each card, a percentage is of that card; a bare number is MiB. simulate: cards for the fake
    driver, "" for the real one. Raises Problem.
    """
    machine = platform.machine()
    library = part(f"shim/build/{machine}/libvgpu.so", "the library")
    simulated: dict[str, str] = {}
    if simulate:
        simulated = simulated_driver(before, simulate)
    by_percent = memory is not None and memory.percent is not None
    cards = cards_here(simulated, simulate, by_percent) if simulate or by_percent or gpu else ()
    uuids: tuple[str, ...]
    if gpu.startswith("MIG-"):
        if by_percent:
            raise Problem(f"--memory: what {gpu} has is not known", remedy="write a size such as 4Gi")
        cards, uuids = (), (gpu,)
    else:
        cards = (chosen(cards, gpu, "--gpu"),) if gpu and cards else cards
        uuids = tuple(card.uuid for card in cards)
    limits = Limits(_bytes(memory, cards) if memory else (), cores, uuids, gpu)
    folder = runs.create(runs.base(before))
    pid = os.getpid()
    state = RunState(pid=pid, started=runs.start_of(pid), command=list(command), simulated=simulated)
    runs.save(folder, state)
    _make_locks()
    after = environment({**before, **simulated}, limits, str(library), str(runs.region_of(folder)))
    return Prepared(tuple(command), after, folder)


def _bytes(memory: Size, cards: Sequence[Card]) -> tuple[int, ...]:
    """The limit in bytes: one for every card, or one by card when it is a percentage."""
    if memory.percent is None:
        return ((memory.mib if memory.mib is not None else memory.units or 0) * MIB,)
    share = memory.percent / 100
    return tuple(int(card.memory * share) // MIB * MIB for card in cards)


def chosen(cards: Sequence[Card], gpu: str, option: str) -> Card:
    """The card of an index or a UUID, which may be shortened as CUDA allows. option: where it was named."""
    found = tuple(
        card for card in cards if str(card.index) == gpu or (len(gpu) > len("GPU-") and card.uuid.startswith(gpu))
    )
    if len(found) != 1:
        known = ", ".join(f"{card.index} ({card.uuid})" for card in cards)
        raise Problem(f"{option} {gpu} names {'several cards' if found else 'no card'}", f"the cards are {known}")
    return found[0]


def simulated_driver(before: Mapping[str, str], simulate: str) -> dict[str, str]:
    """The variables that put the simulated driver with these cards in place. Raises Problem where it is not there."""
    driver = part(f"shim/build/{platform.machine()}/fake/libcuda.so.1", "the simulated driver")
    return simulation(before, str(driver.parent), simulate)


def cards_here(simulated: Mapping[str, str], simulate: str, needed: bool) -> tuple[Card, ...]:
    """The cards of this machine, or simulated ones. Raises Problem for none of those, and for none that are needed."""
    driver = NvmlDriver(environment=simulated)
    try:
        cards = driver.read()[1]
    finally:
        driver.close()
    if not cards.value and simulate:
        why = "it does not know these cards, or its driver does not support them"
        raise Problem(
            f"--simulate {simulate}: the simulated driver shows no card", why, "write, for example, 2xT4-16GB"
        )
    if not cards.value and needed:
        raise Problem("a percentage of memory needs the card's size", cards.reason, "write a size such as 4Gi")
    return cards.value or ()


def part(name: str, what: str) -> Path:
    """A file of the shim. Raises Problem where this installation does not have it."""
    try:
        return resources.path(name)
    except FileNotFoundError:
        raise Problem(
            f"{what} ({name}) is not part of this installation",
            "it was built with VGPUCTL_NO_SHIM=1, or this is a checkout where `make shim` has not run",
            "run `make shim`, or install a wheel that has it",
            Exit.UNKNOWN,
        ) from None


def _make_locks() -> None:
    """/tmp/vgpulock, where the containers of one card meet: everybody may write there, nobody may remove another's."""
    try:
        _LOCKS.mkdir()
        _LOCKS.chmod(0o1777)
    except OSError:
        pass
