"""One container under a core limit, in virtual time: what it gets of the card, to the tenth of a percent.

The program is the one that measures real cards, bench/share.c: its kernels do fixed work and note their start and end,
and the shares are of what the same kernels reach without a limit. CI measures a tenth of the grid, `make soak` all.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from machine import Container, Machine, own_card

Row = dict[str, Any]
GAP = 1500  # ns between two kernels of a stream: the simulated card needs what a real one does
LIMITS = (5, 10, 20, 50, 80, 95)
KERNELS = (5, 20, 100, 1000, 10000, 100000)
#: kind, us, the most points of time by which it may miss
WAYS = [
    *(("dense", us, 0.1) for us in KERNELS),
    *(("pdl", us, 0.1) for us in (5, 20, 1000)),
    *(("mix", us, 0.3) for us in (5, 20, 100)),
    *(("graph:10", us, 0.1) for us in (5, 20, 100)),
    *(("graph:1000", us, 0.1) for us in (5, 20)),
    *(("streams:4", us, 0.5) for us in (20, 100, 1000, 10000)),
    *(("streams:4:33", us, 0.5) for us in (20, 1000)),
    ("coop", 20, 0.1),
]
GRID = [(kind, us, limit, within) for kind, us, within in WAYS for limit in LIMITS]
#: These end before they reach a high limit: the host or the wait between two kernels keeps the card idle.
BOUND = [
    *(("sync", us, limit, 0.3) for us, count in ((5, 3), (100, 4), (1000, 5)) for limit in LIMITS[:count]),
    *(("host:20", us, limit, 0.3) for us in (5, 20) for limit in LIMITS[:3]),
]
CELLS = [*GRID, *BOUND] if os.environ.get("VGPUCTL_SOAK") else [*GRID, *BOUND][::10]


@pytest.fixture
def machine(machine_of: Callable[..., Machine]) -> Machine:
    return machine_of(gpus=own_card("H200-141GB"))


def container(machine: Machine, limit: int, **more: str) -> Container:
    more.setdefault("GPU_CORE_UTILIZATION_POLICY", "force")
    return machine.container(CUDA_DEVICE_SM_LIMIT=str(limit), **more)


def cells(where: Container, program: Path, *words: str, **more: str) -> list[Row]:
    done = where.run(program, *words, timeout=120, **where.machine.virtual(), **more)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def core(where: Container, offset: int) -> int:
    data = where.region.with_name(where.region.name + ".core").read_bytes()
    (value,) = struct.unpack_from("<Q", data, 4096 + offset)
    return int(value)


def launch_us(kind: str, us: float) -> float:
    """What the card takes as one."""
    return us * int(kind.split(":")[1]) if kind.startswith("graph") else us * 15 if kind == "mix" else us


def seconds(kind: str, us: float, limit: int) -> float:
    """Of the cell: thirty launches at least."""
    return max(1.5, 30 * launch_us(kind, us) * 1e-6 * 100 / limit)


@pytest.mark.soak
@pytest.mark.parametrize(("kind", "us", "limit", "within"), CELLS)
def test_it_gets_its_limit(machine: Machine, share: Path, kind: str, us: int, limit: int, within: float) -> None:
    (row,) = cells(container(machine, limit), share, f"{kind},{us},{limit},{seconds(kind, us, limit)}")
    assert row["time"] == pytest.approx(limit, abs=within)
    assert row["share"] == pytest.approx(limit, abs=2 if kind.startswith("streams") else within)
    if kind in ("dense", "pdl", "coop") and us <= 1000:
        assert row["cv"] <= 0.02


@pytest.mark.parametrize(("kind", "us", "alone"), [("host:20", 5, 28.8), ("sync", 5, 66)])
def test_a_program_below_its_limit_is_not_slowed(
    machine: Machine, share: Path, kind: str, us: int, alone: float
) -> None:
    free, held = cells(container(machine, 95), share, f"{kind},{us},100,1", f"{kind},{us},95,1")
    assert free["share"] == pytest.approx(alone, rel=0.1)
    assert held["kernels"] / held["span_s"] == pytest.approx(free["kernels"] / free["span_s"], rel=0.03)


def test_kernels_that_change_are_learned_anew(machine: Machine, share: Path) -> None:
    """The same functions and shapes, in a mixture, with other times from one cell to the next."""
    rows = cells(container(machine, 15), share, *(f"mix,{us},15,3" for us in (20, 50, 10)))
    assert [row["time"] for row in rows] == pytest.approx([15, 15, 15], abs=1)


@pytest.mark.parametrize("limit", [0, 100, 250])
def test_no_limit_is_no_limit(machine: Machine, share: Path, limit: int) -> None:
    (row,) = cells(container(machine, limit), share, "dense,20,100,1")
    assert row["share"] == pytest.approx(100, abs=0.1)


def test_policy_disable_switches_the_limit_off(machine: Machine, share: Path) -> None:
    where = container(machine, 20, GPU_CORE_UTILIZATION_POLICY="disable")
    (row,) = cells(where, share, "dense,20,20,1")
    assert row["share"] == pytest.approx(100, abs=0.1)
    assert core(where, 112) == 100  # core_limit: what is in force


def test_the_region_s_policy_counts_not_the_environment_s(machine: Machine, share: Path) -> None:
    where = container(machine, 20)
    cells(where, share, "dense,20,20,1")
    where.limits["GPU_CORE_UTILIZATION_POLICY"] = "disable"
    where.limits["CUDA_DEVICE_SM_LIMIT"] = "100"
    (row,) = cells(where, share, "dense,20,20,1")
    assert row["share"] == pytest.approx(20, abs=0.2)


def test_what_it_did_is_published(machine: Machine, share: Path) -> None:
    where = container(machine, 50)
    (row,) = cells(where, share, "dense,1000,50,3")
    assert core(where, 264) / 1e9 == pytest.approx(row["kernels"] / 1e3, rel=0.3)  # busy_time; the warm-up is in it
    assert core(where, 272) / 1e9 > row["span_s"] / 2  # throttled_time: launching itself takes next to none
    assert core(where, 280) > 1000  # waits
    assert sum(core(where, 512 + 8 * bucket) for bucket in range(32)) == core(where, 280)  # wait_histogram
    assert sum(core(where, 512 + 8 * bucket) for bucket in range(8, 13)) > 1000  # of them 0.13 to 4.1 ms
    assert core(where, 288) >= row["kernels"]  # launches
    assert core(where, 320) == pytest.approx(500_000, abs=20_000)  # share_1s


def test_nonsense_in_the_shared_words_holds_nobody_for_long(machine: Machine, share: Path) -> None:
    """A region left from before a restart of the machine, or written over by the container itself."""
    where = container(machine, 50)
    cells(where, share, "dense,20,50,1")
    path = where.region.with_name(where.region.name + ".core")
    for word in (2**63 + 5, 10**18, 1):
        for offset in (256, 368, *range(1024, 1056, 8)):  # bucket, finish, the first process's place in the queue
            with path.open("r+b") as file, mmap.mmap(file.fileno(), path.stat().st_size) as data:
                struct.pack_into("<Q", data, 4096 + offset, word)
        (row,) = cells(where, share, "dense,20,50,1")
        assert row["share"] == pytest.approx(50, abs=0.5), word


class TestProcessesOfOneContainer:
    """Each gets its part of the limit, whatever the others launch."""

    def run(self, machine: Machine, share: Path, limit: int, *kinds: str) -> list[float]:
        where = container(machine, limit)
        length = max(2.0, *(150 * float(kind.split(",")[1]) * 1e-6 * 100 / limit for kind in kinds))
        running = []
        for kind in kinds:
            us = float(kind.split(",")[1])
            given = ["--iterations", f"{us * 1000:.0f}", "--period", f"{us * 1000 + GAP:.0f}"]
            command = [str(share), *given, f"{kind},{limit},{length}"]
            env = where.env | machine.virtual(len(kinds))
            running.append(subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True))
        return [json.loads(process.communicate(timeout=120)[0])["share"] for process in running]

    @pytest.mark.parametrize(
        ("limit", "kinds"),
        [
            (20, ["dense,20", "dense,20"]),
            (80, ["dense,20", "dense,20"]),
            (50, ["dense,1000", "dense,1000"]),
            (95, ["dense,1000", "dense,1000"]),
            (50, ["dense,20000", "dense,20000"]),
            (80, ["dense,20000", "dense,20000"]),
            (50, ["dense,20", "dense,1000"]),
            (50, ["dense,20", "dense,20000"]),
            (50, ["dense,1000", "dense,20000"]),
            (50, ["dense,20", "sync,20"]),
            (50, ["dense,1000", "sync,20"]),
            (50, ["sync,1000", "dense,1000"]),
            (50, ["sync,20000", "dense,20"]),
            (60, ["dense,100"] * 4),
        ],
        ids=str,
    )
    def test_each_gets_its_part(self, machine: Machine, share: Path, limit: int, kinds: list[str]) -> None:
        shares, part = self.run(machine, share, limit, *kinds), limit / len(kinds)
        assert sum(shares) == pytest.approx(limit, abs=0.5), shares
        assert all(0.9 <= got / part <= 1.1 for got in shares), shares
