"""Threads, devices, changes and mishaps under a core limit: how busy the card was from moment to moment."""

from __future__ import annotations

import statistics
import struct
import subprocess
import time
from collections.abc import Callable

import pytest
from machine import PROGRAMS, Container, Machine, own_card

WINDOW = 0.05  # seconds
GAP = 1.5  # us between two kernels of a stream, in which the card counts as busy


@pytest.fixture
def machine(machine_of: Callable[..., Machine]) -> Machine:
    return machine_of(gpus=own_card("H200-141GB"))


def container(machine: Machine, limit: int, **more: str) -> Container:
    return machine.container(CUDA_DEVICE_SM_LIMIT=str(limit), GPU_CORE_UTILIZATION_POLICY="force", **more)


def windows(where: Container, mode: str, us: float, seconds: float, **more: str) -> list[list[float]]:
    """Busy percent in windows of 50 ms, by device; the gaps between kernels counted in."""
    done = where.run(PROGRAMS / "core_ways", mode, us, seconds, timeout=120, **where.machine.virtual(), **more)
    assert done.returncode == 0, done.stderr
    gaps = 1 if mode in ("threads", "streams", "legacy") else (us + GAP) / us  # of several streams others fill them
    return [[float(word) * gaps for word in line.split()] for line in done.stdout.splitlines()]


def core(where: Container, offset: int) -> int:
    data = where.region.with_name(where.region.name + ".core").read_bytes()
    return int(struct.unpack_from("<Q", data, 4096 + offset)[0])


@pytest.mark.parametrize(
    ("mode", "us", "within"), [("threads", 200, 1.5), ("streams", 100, 3), ("legacy", 50, 1.5), ("cluster", 20, 0.3)]
)
def test_every_way_of_launching_is_limited(machine: Machine, mode: str, us: float, within: float) -> None:
    """Several threads cannot be measured as exactly: where another one is just launching no mark is set."""
    (busy,) = windows(container(machine, 50), mode, us, 1.5)
    assert statistics.mean(busy[10:]) == pytest.approx(50, abs=within)


def test_each_device_has_its_own_limit(machine_of: Callable[..., Machine]) -> None:
    machine = machine_of(gpus=",".join(own_card("H200-141GB") for _ in range(2)))
    first, second = windows(container(machine, 60, CUDA_DEVICE_SM_LIMIT_1="20"), "devices", 20, 1.5)
    assert statistics.mean(first[10:]) == pytest.approx(60, abs=0.3)
    assert statistics.mean(second[10:]) == pytest.approx(20, abs=0.3)


@pytest.mark.parametrize(("us", "settled"), [(20, 0.2), (1000, 0.2), (20000, 0.2)])
def test_a_new_limit_holds_while_the_program_runs(machine: Machine, us: float, settled: float) -> None:
    """80, then 20, then 80 again: within 3 points after 200 ms, for long kernels after two of them at the new limit."""
    (busy,) = windows(container(machine, 80), "live", us, 9)
    each = len(busy) // 3
    for number, limit in enumerate((80, 20, 80)):
        part = busy[number * each : (number + 1) * each]
        skipped = int(max(settled, 2 * us * 1e-6 * 100 / limit) / WINDOW)
        together = max(1, round(us * 1e-6 * 100 / limit / WINDOW) * 4)  # a window of several long kernels
        rest = part[skipped:]
        means = [statistics.mean(rest[i : i + together]) for i in range(0, len(rest) - together + 1, together)]
        assert all(abs(mean - limit) <= 3 for mean in means), (limit, means)


def test_a_kernel_that_becomes_ten_times_slower(machine: Machine) -> None:
    (busy,) = windows(container(machine, 50), "slower", 100, 4)
    assert statistics.mean(busy[10:40]) == pytest.approx(50, abs=1)
    assert statistics.mean(busy[44:]) == pytest.approx(50, abs=1.5)


def test_a_pause_earns_a_tenth_of_a_second_at_most(machine: Machine) -> None:
    (busy,) = windows(container(machine, 50), "pause", 100, 6)
    after = next(i for i in range(60, len(busy)) if busy[i] < 1) + 40
    first = next(i for i in range(after - 2, len(busy)) if busy[i] > 1)
    assert statistics.mean(busy[first : first + 10]) <= 50 + 100 * 0.1 * 0.5 / (10 * WINDOW) + 2
    assert statistics.mean(busy[first + 10 :]) == pytest.approx(50, abs=1)


def test_the_calendar_may_jump(machine: Machine) -> None:
    """Every second by an hour, forth and back."""
    (busy,) = windows(container(machine, 50), "dense", 100, 4, VGPUCTL_FAKE_CALENDAR="jumps")
    assert all(abs(share - 50) <= 3 for share in busy[4:]), busy


def test_copies_alone_are_not_held_back(machine: Machine) -> None:
    took = [windows(container(machine, limit), "copies", 1, 1)[0][0] for limit in (100, 10)]
    assert took[1] == pytest.approx(took[0], rel=0.001)


@pytest.mark.parametrize("limit", [50, 100])
@pytest.mark.parametrize(("mode", "tasks", "source"), [("graphs", 10, 1), ("tasks", 7, 2)])
def test_tasks_are_graphs_until_the_program_reports_its_own(
    machine: Machine, mode: str, tasks: int, source: int, limit: int
) -> None:
    where = container(machine, limit)
    windows(where, mode, 20, 1)
    assert core(where, 296) == 10  # graphs
    assert (core(where, 304), core(where, 312)) == (tasks, source)


def test_a_killed_process_leaves_its_part_to_the_others(machine: Machine) -> None:
    where = container(machine, 50)
    env = where.env | machine.virtual(2)
    start = lambda seconds: subprocess.Popen(  # noqa: E731
        [str(PROGRAMS / "core_ways"), "dense", "1000", seconds], env=env, stdout=subprocess.PIPE, text=True
    )
    lasting, killed = start("12"), start("1000")
    deadline = time.monotonic() + 30
    published = where.region.with_name(where.region.name + ".core")
    while not published.exists() or not published.stat().st_size or core(where, 264) < 5e8:  # ns of the card
        assert time.monotonic() < deadline
        time.sleep(0.001)
    killed.kill()
    killed.communicate()
    busy = [float(word) for word in lasting.communicate(timeout=60)[0].split()]
    assert statistics.mean(busy[2:10]) < 40  # both
    assert statistics.mean(busy[-40:]) == pytest.approx(50, abs=0.5)
