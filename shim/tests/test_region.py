"""The region that the shim writes, read at the fixed offsets as upstream's monitor does: running and after kills."""

from __future__ import annotations

import time

import pytest
import region
from machine import MIB, OUT_OF_MEMORY, Container, Machine, settles

LIMIT_MIB, CONTEXT_MIB = 2048, 180
NEAR = 4 * MIB  # upstream's own figure is that much below NVML's


@pytest.fixture
def container(machine: Machine) -> Container:
    return machine.container(CUDA_DEVICE_MEMORY_LIMIT_0=f"{LIMIT_MIB}m", CUDA_DEVICE_SM_LIMIT="30")


def test_the_header_is_what_the_monitor_expects(container: Container) -> None:
    container.actor().start()
    seen = region.read(container.region)
    assert (seen.magic, seen.version, seen.sm_init_flag) == (region.MAGIC, (1, 2), 0)
    assert seen.device_num == 1
    assert len(seen.uuids[0]) == 40
    assert seen.limit[0] == LIMIT_MIB * MIB
    assert seen.limit[1:] == [0] * 15
    assert seen.sm_limit[0] == 30
    assert (seen.utilization_switch, seen.recent_kernel, seen.priority) == (1, 2, 1)


@pytest.mark.parametrize(("limits", "memory", "cores"), [({}, 0, 100), ({"CUDA_DEVICE_SM_LIMIT": "0"}, 0, 100)])
def test_no_limit_has_its_own_values(machine: Machine, limits: dict[str, str], memory: int, cores: int) -> None:
    container = machine.container(**limits)
    container.actor().start()
    seen = region.read(container.region)
    assert (seen.limit[0], seen.sm_limit[0]) == (memory, cores)


def test_a_core_limit_of_one_card_beats_the_common_one(machine: Machine) -> None:
    container = machine.container(CUDA_DEVICE_SM_LIMIT="30", CUDA_DEVICE_SM_LIMIT_0="70")
    container.actor().start()
    assert region.read(container.region).sm_limit[0] == 70


def test_each_process_has_a_slot_with_its_memory(container: Container, machine: Machine) -> None:
    a, b = container.actor().start(), container.actor().start()
    a.ok("take", "linear", 300 * MIB)
    b.ok("take", "vmm", 500 * MIB)
    b.ok("take", "async", 64 * MIB)

    def right() -> bool:
        by_pid = {p.pid: p for p in region.read(container.region).processes}
        truth = machine.used()
        return set(by_pid) == {a.pid, b.pid} and all(
            p.status == 1 and abs(p.total[0] - truth[pid]) <= NEAR and p.context[0] + p.data[0] == p.total[0]
            for pid, p in by_pid.items()
        )

    settles(right)
    seen = region.read(container.region)
    assert seen.proc_num >= 2
    assert all(p.total[1:] == [0] * 15 for p in seen.processes)


@pytest.mark.parametrize("way", ["async", "pool", "async-sync"])
def test_what_a_pool_gave_back_at_a_synchronisation_is_gone_from_it(
    container: Container, machine: Machine, way: str
) -> None:
    """Without a query or allocation after it that would look again."""
    actor = container.actor().start()
    actor.ok("take", way, 500 * MIB)
    actor.ok("give-all")
    actor.ok("sync")

    def is_right() -> bool:
        return abs(region.read(container.region).processes[0].total[0] - machine.used()[actor.pid]) <= NEAR

    settles(is_right)


def test_what_nvml_said_stands_beside_it(container: Container, machine: Machine) -> None:
    actor = container.actor().start()
    actor.ok("take", "linear", 300 * MIB)
    settles(
        lambda: (
            actor.info(),
            abs(region.read(container.region).processes[0].monitor[0] - machine.used()[actor.pid]) <= 300 * MIB,
        )[1]
    )


def test_after_a_kill_the_next_allocation_clears_the_slot(container: Container) -> None:
    survivor, victim = container.actor().start(), container.actor().start()
    victim.ok("take", "linear", 800 * MIB)
    victim.kill()
    survivor.ok("take", "linear", 1500 * MIB)
    assert [p.pid for p in region.read(container.region).processes if p.total[0]] == [survivor.pid]


def test_the_last_kernel_s_time_is_written(container: Container) -> None:
    actor = container.actor().start()
    assert region.read(container.region).last_kernel_time == 0
    before = int(time.time())
    actor.ok("spin", 1000, 1)
    actor.ok("sync")
    assert before <= region.read(container.region).last_kernel_time <= time.time() + 1
    assert region.read(container.region).recent_kernel == 2


@pytest.mark.parametrize("recent", [-5, 0, 1, 2147483647])
def test_what_the_monitor_writes_is_ignored(container: Container, recent: int) -> None:
    """It counts recentKernel down and flips utilization_switch: neither stops a program."""
    actor = container.actor().start()
    with container.region.open("r+b") as file:
        file.seek(2008900)
        file.write((0).to_bytes(4, "little") + recent.to_bytes(4, "little", signed=True))
    actor.ok("spin", 1000, 10)
    actor.ok("sync")
    assert actor.do("take", "linear", 4096 * MIB) == OUT_OF_MEMORY


def test_the_directory_holds_the_two_files_and_nothing_else(container: Container) -> None:
    """The monitor refuses a directory with more, and takes the first name with .cache in it."""
    actors = [container.actor().start() for _ in range(4)]
    for actor in actors:
        actor.do("fill", "linear", 64 * MIB)
    actors[0].kill()
    assert sorted(p.name for p in container.directory.iterdir()) == ["vgpu.cache", "vgpu.cache.core"]
    assert container.region.stat().st_size == region.BYTES


def test_the_region_outlives_its_processes_and_is_used_again(container: Container) -> None:
    first = container.actor().start()
    inode = container.region.stat().st_ino
    first.quit()
    assert container.actor(CUDA_DEVICE_MEMORY_LIMIT_0="100m").start().info()[1] == LIMIT_MIB * MIB
    assert container.region.stat().st_ino == inode
