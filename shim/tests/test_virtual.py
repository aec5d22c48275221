"""Virtual time: the same figures on any machine, and quickly."""

from __future__ import annotations

import time

import pytest
from machine import Actor, Machine

MS = 1_000_000
GAP = 1500  # ns between two kernels


def actors(machine: Machine, count: int) -> list[Actor]:
    """Processes whose time begins when all of them have begun to wait."""
    virtual = {
        "VGPUCTL_FAKE_TIME": "virtual",
        "VGPUCTL_FAKE_THREADS": str(count),
        "LD_PRELOAD": f"{machine.env['LD_LIBRARY_PATH']}/libvtime.so",
    }
    return [machine.actor(env=machine.env | virtual).start() for _ in range(count)]


def clock(actor: Actor) -> int:
    return int(actor.ok("clock")[0])


def test_a_long_run_takes_no_time(machine: Machine) -> None:
    (actor,) = actors(machine, 1)
    actor.ok("spin", 1000, 1)  # loads the module
    actor.ok("sync")
    begun, before = time.monotonic(), clock(actor)
    actor.ok("spin", 5 * MS, 2000)
    actor.ok("sync")
    took = clock(actor) - before
    assert time.monotonic() - begun < 3
    assert took == pytest.approx(2000 * (5 * MS + GAP), rel=1e-5)


def test_sleeping_moves_the_clock(machine: Machine) -> None:
    (actor,) = actors(machine, 1)
    before = clock(actor)
    for _ in range(100):
        actor.ok("sleep", 1000 * MS)
    assert clock(actor) - before == pytest.approx(100 * 1000 * MS, rel=1e-6)


def test_it_is_the_same_every_time(machine_of) -> None:
    def run() -> list[int]:
        (actor,) = actors(machine_of(), 1)
        seen = []
        for ns in (1000, 20_000, 1 * MS, 20 * MS):
            actor.ok("busy", ns, 200 * MS)
            actor.ok("sync")
            seen.append(clock(actor))
        return seen

    assert run() == run()


def test_launches_have_a_cost_and_a_depth(machine: Machine) -> None:
    """Short kernels are bound by their launches, long ones by the card."""
    (actor,) = actors(machine, 1)
    actor.ok("spin", 1, 1)
    (short,) = actor.ok("busy", 100, 100 * MS)
    assert int(short) == pytest.approx(100 * MS / 2525, rel=0.02)
    actor.ok("sync")
    (long,) = actor.ok("busy", 1 * MS, 3000 * MS)
    assert int(long) == pytest.approx(3000 + 1024, rel=0.01)


@pytest.mark.parametrize(("kernel", "span"), [(20_000, 500 * MS), (1 * MS, 3000 * MS), (20 * MS, 6000 * MS)])
def test_two_processes_take_turns(machine: Machine, kernel: int, span: int) -> None:
    """Each gets half the card, less what the changes cost: 0.15 ms after each turn of 2 ms."""
    pair = actors(machine, 2)
    for actor in pair:
        actor.send("busy", kernel, span)
    counts = [int(actor.receive()[1][0]) for actor in pair]
    for count in counts:
        assert (count - 1024) * (kernel + GAP) == pytest.approx(span / 2 * 2 / 2.15, rel=0.05)
