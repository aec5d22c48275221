"""Each way to allocate, filled up to the limit: refused as out of memory exactly where the limit says.

Exactly means: the card, asked from outside, never holds more than the limit for the container, and less than one more
step fits. Device memory comes in pieces of 2 MiB (smaller allocations share one), pools take pieces of 32 MiB.
"""

from __future__ import annotations

import pytest
from machine import MIB, OUT_OF_MEMORY, Actor, Container, Machine, settles

LIMIT_MIB = 2048
CONTEXT_MIB = 180  # of a T4
STEPS = {"1 MiB": MIB, "2 MiB and 1 byte": 2 * MIB + 1, "64 MiB": 64 * MIB}
POOLED = {"async": 32 * MIB, "pool": 32 * MIB}
WAYS = ["linear", "pitch", "array", "array3d", "mipmap", "vmm", "graph", "managed", *POOLED]


def piece(way: str, step: int) -> int:
    """How much the card has to give for one more step, at most."""
    whole = -(-step // (2 * MIB)) * 2 * MIB
    return max(whole, POOLED.get(way, 0))


def check_full(machine: Machine, way: str, step: int, counts: list[int]) -> None:
    held = sum(machine.used().values())
    if way == "managed":  # lies in the host's memory until it is touched, and is charged in full
        held += sum(counts) * step
    limit = LIMIT_MIB * MIB
    assert held <= limit, f"{(held - limit) / MIB:.1f} MiB too much"
    assert held > limit - piece(way, step), f"{(limit - held) / MIB:.1f} MiB were left"


def four_in(container: Container) -> list[Actor]:
    return [container.actor() for _ in range(4)]


def container_of(machine: Machine) -> Container:
    return machine.container(CUDA_DEVICE_MEMORY_LIMIT_0=f"{LIMIT_MIB}m")


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
@pytest.mark.parametrize("way", WAYS)
def test_one_process_fills_the_limit(machine: Machine, way: str, step: int) -> None:
    actor = container_of(machine).actor().start()
    before = actor.info()
    assert before == ((LIMIT_MIB - CONTEXT_MIB) * MIB, LIMIT_MIB * MIB)
    code, (count,) = actor.ask("fill", way, step)
    assert code == OUT_OF_MEMORY
    check_full(machine, way, step, [int(count)])
    assert actor.info()[0] <= piece(way, step) + 2 * MIB
    actor.ok("give-all")
    actor.do("trim", 0)
    assert machine.used() == {actor.pid: CONTEXT_MIB * MIB}
    assert actor.info() == before


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
@pytest.mark.parametrize("way", WAYS)
def test_four_processes_fill_the_limit_together(machine: Machine, way: str, step: int) -> None:
    actors = [actor.start() for actor in four_in(container_of(machine))]
    before = actors[0].info()
    assert before == ((LIMIT_MIB - 4 * CONTEXT_MIB) * MIB, LIMIT_MIB * MIB)
    for actor in actors:
        actor.send("fill", way, step)
    answers = [actor.receive() for actor in actors]
    assert {code for code, _ in answers} == {OUT_OF_MEMORY}
    check_full(machine, way, step, [int(values[0]) for _, values in answers])
    for actor in actors:
        actor.ok("give-all")
        actor.do("trim", 0)
    assert machine.used() == {actor.pid: CONTEXT_MIB * MIB for actor in actors}
    settles(lambda: [actor.info() for actor in actors] == [before] * 4)


@pytest.mark.parametrize("step", [MIB // 8, MIB // 8 * 3, MIB // 2 + 512, MIB - 512])
def test_small_ones_of_four_processes_never_pass_the_limit(machine: Machine, step: int) -> None:
    """Each process begins blocks of its own: four that are nearly empty count as four. Room that one gives back in
    pieces is there for the others only by whole blocks."""
    actors = [actor.start() for actor in four_in(container_of(machine))]
    for _ in range(2):
        for actor in actors:
            actor.send("fill", "linear", step)
        answers = [actor.receive() for actor in actors]
        assert {code for code, _ in answers} == {OUT_OF_MEMORY}
        check_full(machine, "linear", step, [])
        most = max(range(4), key=lambda i: int(answers[i][1][0]))
        for i in range(20):
            assert actors[most].do("give", i) == 0
            assert {actor.do("take", "linear", step) for actor in actors} <= {0, OUT_OF_MEMORY}
            assert sum(machine.used().values()) <= LIMIT_MIB * MIB
        for actor in actors:
            actor.ok("give-all")
    assert machine.used() == {actor.pid: CONTEXT_MIB * MIB for actor in actors}


def test_host_memory_is_not_limited(machine: Machine) -> None:
    actor = container_of(machine).actor().start()
    before = actor.info()
    for _ in range(40):
        actor.ok("take", "host", 64 * MIB)
        actor.ok("take", "vmm-host", 64 * MIB)
    assert actor.info() == before


@pytest.mark.parametrize("way", WAYS)
def test_a_refused_call_changes_nothing(machine: Machine, way: str) -> None:
    actor = container_of(machine).actor().start()
    before, held = actor.info(), machine.used()
    for _ in range(20):
        assert actor.do("take", way, 2 * LIMIT_MIB * MIB) == OUT_OF_MEMORY
    assert machine.used() == held
    assert actor.info() == before
    actor.ok("take", way, 64 * MIB)


def test_what_one_process_gives_back_another_can_take(machine: Machine) -> None:
    container = container_of(machine)
    a, b = container.actor().start(), container.actor().start()
    assert a.do("fill", "linear", 64 * MIB) == OUT_OF_MEMORY
    assert b.do("take", "vmm", 64 * MIB) == OUT_OF_MEMORY
    a.ok("give", 0)
    b.ok("take", "vmm", 64 * MIB)
    assert a.do("take", "linear", 64 * MIB) == OUT_OF_MEMORY


def test_a_card_that_is_full_refuses_below_the_limit(machine: Machine) -> None:
    """The driver's own refusal comes through as it is."""
    outside = machine.actor().start()
    outside.ok("take", "linear", 14000 * MIB)
    actor = container_of(machine).actor().start()
    assert actor.do("fill", "linear", 64 * MIB) == OUT_OF_MEMORY
    free, total = actor.info()
    assert total == LIMIT_MIB * MIB
    assert free < 64 * MIB
    outside.kill()
    actor.ok("take", "linear", 64 * MIB)


@pytest.mark.parametrize("limit", ["", "0m", "20000m"], ids=["none", "0", "more than the card"])
def test_without_a_limit_the_whole_card_is_there(machine: Machine, limit: str) -> None:
    plain = machine.actor().start()
    total = plain.info()[1]
    plain.kill()
    limits = {"CUDA_DEVICE_MEMORY_LIMIT_0": limit} if limit else {}
    actor = machine.container(**limits).actor().start()
    assert actor.info() == (total - CONTEXT_MIB * MIB, total)
    actor.ok("take", "linear", actor.info()[0] // (2 * MIB) * 2 * MIB)
    assert actor.do("take", "linear", 2 * MIB) == OUT_OF_MEMORY
