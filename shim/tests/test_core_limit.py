"""One process under a core limit, in virtual time: what it gets of the card, to the tenth of a percent.

The program is the one that measures real cards, bench/share.c. Its kernels do fixed work, and the shares are of what
the same kernels reach without a limit.
"""

from __future__ import annotations

import json
import mmap
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from machine import Container, Machine, own_card

Row = dict[str, Any]
GAP = 1500  # ns between two kernels of a stream: the simulated card needs what a real one does


@pytest.fixture
def machine(machine_of: Callable[..., Machine]) -> Machine:
    return machine_of(gpus=own_card("H200-141GB"))


def container(machine: Machine, limit: int, **more: str) -> Container:
    more.setdefault("GPU_CORE_UTILIZATION_POLICY", "force")
    return machine.container(CUDA_DEVICE_SM_LIMIT=str(limit), **more)


def cells(where: Container, program: Path, *words: str) -> list[Row]:
    done = where.run(program, *words, timeout=120, **where.machine.virtual())
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def core(where: Container, offset: int) -> int:
    data = where.region.with_name(where.region.name + ".core").read_bytes()
    (value,) = struct.unpack_from("<Q", data, 4096 + offset)
    return int(value)


def seconds(us: float, limit: int) -> float:
    return max(1, 20 * us * 1e-6 * 100 / limit)


@pytest.mark.parametrize("limit", [5, 20, 50, 80, 95])
@pytest.mark.parametrize("us", [5, 20, 100, 1000, 10000, 100000])
def test_a_dense_stream_gets_its_limit(machine: Machine, share: Path, us: int, limit: int) -> None:
    (row,) = cells(container(machine, limit), share, f"dense,{us},{limit},{seconds(us, limit)}")
    kernel = us * 1e-6 / row["span_s"] * 100  # counting begins and ends between kernels
    assert row["share"] == pytest.approx(limit, abs=0.2 + 1.01 * kernel)


@pytest.mark.parametrize(
    ("kind", "us", "limit", "within"),
    [
        ("sync", 5, 10, 0.2),
        ("sync", 100, 10, 0.2),
        ("sync", 100, 25, 0.2),
        ("sync", 1000, 50, 0.2),
        ("host:20", 5, 5, 0.2),
        ("host:20", 5, 10, 0.2),
        ("host:50", 20, 25, 0.2),
        ("graph:10", 20, 20, 0.2),
        ("graph:10", 20, 80, 0.2),
        ("graph:1000", 20, 50, 0.6),
        ("coop", 20, 50, 0.2),
        ("pdl", 20, 50, 0.2),
        ("streams:4", 1000, 20, 0.5),
        ("streams:4", 1000, 50, 0.5),
        ("streams:4", 100, 50, 1),
        ("streams:4", 20, 50, 2),
    ],
)
def test_every_way_of_launching_gets_its_limit(
    machine: Machine, share: Path, kind: str, us: int, limit: int, within: float
) -> None:
    (row,) = cells(container(machine, limit), share, f"{kind},{us},{limit},2")
    assert row["share"] == pytest.approx(limit, abs=within)


@pytest.mark.parametrize(("kind", "us", "alone"), [("host:20", 5, 28.8), ("sync", 5, 66)])
def test_a_program_below_its_limit_is_not_slowed(
    machine: Machine, share: Path, kind: str, us: int, alone: float
) -> None:
    free, held = cells(container(machine, 95), share, f"{kind},{us},100,1", f"{kind},{us},95,1")
    assert free["share"] == pytest.approx(alone, rel=0.1)
    assert held["kernels"] / held["span_s"] == pytest.approx(free["kernels"] / free["span_s"], rel=0.03)


def test_a_new_limit_holds_while_the_program_runs(machine: Machine, share: Path) -> None:
    """The program itself writes 80, 20, 80 into the region, as `vgpuctl` does from outside."""
    rows = cells(container(machine, 80), share, *(f"dense,20,{limit},1" for limit in (80, 20, 80)))
    assert [row["share"] for row in rows] == pytest.approx([80, 20, 80], abs=0.3)


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
    assert core(where, 288) >= row["kernels"]  # launches
    assert core(where, 320) == pytest.approx(500_000, abs=20_000)  # share_1s


def test_nonsense_in_the_bucket_holds_nobody_for_long(machine: Machine, share: Path) -> None:
    """A region left from before a restart of the machine, or written over by the container itself."""
    where = container(machine, 50)
    cells(where, share, "dense,20,50,1")
    path = where.region.with_name(where.region.name + ".core")
    for word in (2**63 + 5, 10**18, 1):
        with path.open("r+b") as file, mmap.mmap(file.fileno(), path.stat().st_size) as data:
            struct.pack_into("<Q", data, 4096 + 256, word)
        (row,) = cells(where, share, "dense,20,50,1")
        assert row["share"] == pytest.approx(50, abs=0.5), word


class TestProcessesOfOneContainer:
    def run(self, machine: Machine, share: Path, limit: int, *kinds: str) -> list[float]:
        where = container(machine, limit)
        running = []
        for kind in kinds:
            us = float(kind.split(",")[1])
            command = [
                str(share),
                "--iterations",
                f"{us * 1000:.0f}",
                "--period",
                f"{us * 1000 + GAP:.0f}",
                f"{kind},{limit},3",
            ]
            env = where.env | machine.virtual(len(kinds))
            running.append(subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True))
        return [json.loads(process.communicate(timeout=120)[0])["share"] for process in running]

    @pytest.mark.parametrize("limit", [20, 50, 80])
    @pytest.mark.parametrize("us", [20, 1000])
    def test_two_share_the_limit_equally(self, machine: Machine, share: Path, us: int, limit: int) -> None:
        shares = self.run(machine, share, limit, f"dense,{us}", f"dense,{us}")
        assert sum(shares) == pytest.approx(limit, abs=0.5)
        assert all(0.8 <= got / (limit / 2) <= 1.25 for got in shares), shares

    def test_small_kernels_are_not_starved_by_long_ones(self, machine: Machine, share: Path) -> None:
        shares = self.run(machine, share, 50, "dense,20", "dense,1000")
        assert sum(shares) == pytest.approx(50, abs=0.7)
        assert min(shares) > 18, shares

    def test_four_share_it(self, machine: Machine, share: Path) -> None:
        shares = self.run(machine, share, 60, *["dense,100"] * 4)
        assert sum(shares) == pytest.approx(60, abs=1)
        assert all(0.7 <= got / 15 <= 1.4 for got in shares), shares
