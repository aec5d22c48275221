"""Many processes at once, and many kills at random points. CI runs a tenth; VGPUCTL_SOAK=1 runs the whole."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable

import pytest
import region
from machine import MIB, OUT_OF_MEMORY, PROGRAMS, Container, Machine, settles

SOAK = bool(os.environ.get("VGPUCTL_SOAK"))
KILLS = 1000 if SOAK else 100
CONTEXT_MIB, LIMIT_MIB = 16, 8192


@pytest.fixture
def container(machine_of: Callable[..., Machine]) -> Container:
    machine = machine_of(gpus=f"1xA100-80GB:context={CONTEXT_MIB}")
    return machine.container(CUDA_DEVICE_MEMORY_LIMIT_0=f"{LIMIT_MIB}m")


def start(container: Container, milliseconds: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [PROGRAMS / "storm", str(milliseconds)],
        env=container.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def check_afresh(container: Container) -> None:
    """No usage is left, and exactly the limit can be had."""
    actor = container.actor().start()
    full = ((LIMIT_MIB - CONTEXT_MIB) * MIB, LIMIT_MIB * MIB)
    code, (count,) = actor.ask("fill", "linear", 64 * MIB)
    assert (code, int(count)) == (OUT_OF_MEMORY, (LIMIT_MIB - CONTEXT_MIB) // 64)
    actor.ok("give-all")
    settles(lambda: actor.info() == full)
    assert [p.pid for p in region.read(container.region).processes if p.total[0]] == [actor.pid]


@pytest.mark.soak
def test_two_hundred_processes_start_at_once(container: Container) -> None:
    """All run to the end, together they never hold more than the limit, and nothing is left."""
    begun = time.monotonic()
    processes = [start(container, 300) for _ in range(200)]
    most = 0
    while any(p.poll() is None for p in processes):
        most = max(most, sum(container.machine.used().values()))
        assert time.monotonic() - begun < 90, "hung"
        time.sleep(0.02)
    ends = [(p.returncode, *p.communicate()) for p in processes]
    assert [end for end in ends if end[0]] == []
    # what a context takes is known only when it is there: contexts that are being made may come on top
    assert 0 < most <= (LIMIT_MIB + 200 * CONTEXT_MIB) * MIB
    check_afresh(container)


@pytest.mark.soak
def test_kills_at_random_points(container: Container) -> None:
    """No hang, no leaked usage after the next allocation, no wrong refusal."""
    dice = random.Random(4711)
    survivor = container.actor().start()
    before = survivor.info()
    alive: list[subprocess.Popen[str]] = []
    for _ in range(KILLS):
        while len(alive) < 6:
            alive.append(start(container, 60_000))
        time.sleep(dice.uniform(0, 0.03))
        victim = alive.pop(dice.randrange(len(alive)))
        victim.send_signal(signal.SIGKILL)
        _, errors = victim.communicate(timeout=20)
        assert victim.returncode == -signal.SIGKILL, errors
        code = survivor.do("take", "linear", 16 * MIB)  # never hangs
        assert code in (0, OUT_OF_MEMORY)
        if code == 0:
            survivor.ok("give-all")
        assert sum(container.machine.used().values()) <= LIMIT_MIB * MIB
    for process in alive:
        process.kill()
        process.communicate(timeout=20)
    settles(lambda: survivor.info() == before)
    survivor.kill()
    check_afresh(container)


def test_limits_change_while_processes_run(container: Container) -> None:
    """A live change is one store: nobody gets more than the largest limit there was, and the last one holds at once."""
    processes = [start(container, 1500) for _ in range(6)]
    dice = random.Random(7)
    end = time.monotonic() + 1.2
    while time.monotonic() < end:
        if container.region.exists() and container.region.stat().st_size == region.BYTES:
            region.set_limit(container.region, 0, dice.choice((512, 1024, 2048, 4096, LIMIT_MIB)) * MIB)
        assert sum(container.machine.used().values()) <= LIMIT_MIB * MIB
        time.sleep(0.01)
    region.set_limit(container.region, 0, LIMIT_MIB * MIB)
    for process in processes:
        _, errors = process.communicate(timeout=20)
        assert process.returncode == 0, errors
    check_afresh(container)
