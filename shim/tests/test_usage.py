"""Whatever ends an allocation, usage is back where it was: free, failed call, context's end, fork, exec, SIGKILL."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest
import region
from machine import MIB, OUT_OF_MEMORY, PROGRAMS, Actor, Container, Machine, settles

LIMIT_MIB, CONTEXT_MIB = 2048, 180
WAYS = ["linear", "pitch", "array", "array3d", "mipmap", "vmm", "graph", "managed", "async", "pool"]
FULL = (LIMIT_MIB - CONTEXT_MIB) * MIB, LIMIT_MIB * MIB


@pytest.fixture
def container(machine: Machine) -> Container:
    return machine.container(CUDA_DEVICE_MEMORY_LIMIT_0=f"{LIMIT_MIB}m")


def hold_everything(actor: Actor) -> None:
    for way in WAYS:
        actor.ok("take", way, 48 * MIB)


@pytest.mark.parametrize("way", WAYS)
def test_churn_leaves_nothing(container: Container, way: str) -> None:
    """Ten thousand times the limit passes through, no figure drifts."""
    actor = container.actor().start()
    actor.ok("churn", way, 100 * MIB, 300)
    actor.do("sync")
    actor.do("trim", 0)
    settles(lambda: actor.info() == FULL)


def test_the_parts_of_a_mix_can_be_freed_in_any_order(container: Container) -> None:
    actor = container.actor().start()
    hold_everything(actor)
    for index in (7, 0, 3, 3, 0, 2, 2, 0, 1, 0):
        actor.ok("give", index)
    actor.do("trim", 0)
    settles(lambda: actor.info() == FULL)


def end_by_reset(actor: Actor) -> None:
    actor.ok("reset", 0)
    actor.ok("retain", 0)


def end_by_release(actor: Actor) -> None:
    actor.ok("release", 0)
    actor.ok("retain", 0)


@pytest.mark.parametrize("end", [end_by_reset, end_by_release])
def test_the_end_of_the_primary_context_frees_its_memory(
    container: Container, machine: Machine, end: Callable[[Actor], None]
) -> None:
    actor = container.actor().start()
    for way in ("linear", "pitch", "array", "array3d", "mipmap", "managed"):
        actor.ok("take", way, 100 * MIB)
    end(actor)
    assert machine.used() == {actor.pid: CONTEXT_MIB * MIB}
    settles(lambda: actor.info() == FULL)
    code, (count,) = actor.ask("fill", "linear", 64 * MIB)
    assert (code, int(count)) == (OUT_OF_MEMORY, (LIMIT_MIB - CONTEXT_MIB) // 64)


def test_the_end_of_a_second_context_frees_its_memory_only(container: Container) -> None:
    actor = container.actor().start()
    actor.ok("take", "linear", 200 * MIB)
    actor.ok("context", 0)
    actor.ok("take", "linear", 300 * MIB)
    settles(lambda: actor.info()[0] == (LIMIT_MIB - 2 * CONTEXT_MIB - 500) * MIB)
    actor.ok("destroy")
    actor.ok("retain", 0)
    settles(lambda: actor.info()[0] == (LIMIT_MIB - CONTEXT_MIB - 200) * MIB)


def test_a_thousand_contexts_leave_nothing(container: Container) -> None:
    actor = container.actor().start()
    for _ in range(1000):
        actor.ok("context", 0)
        actor.ok("destroy")
    actor.ok("retain", 0)
    settles(lambda: actor.info() == FULL)


@pytest.mark.parametrize("count", [1, 4])
def test_killed_processes_leave_nothing(container: Container, count: int) -> None:
    survivor = container.actor().start()
    before = survivor.info()
    victims = [container.actor().start() for _ in range(count)]
    for victim in victims:
        victim.ok("take", "linear", 50 * MIB)
        victim.ok("take", "vmm", 50 * MIB)
        victim.ok("take", "async", 10 * MIB)
    for victim in victims:
        victim.kill()
    settles(lambda: survivor.info() == before)
    code, (filled,) = survivor.ask("fill", "linear", 64 * MIB)
    assert (code, int(filled)) == (OUT_OF_MEMORY, (LIMIT_MIB - CONTEXT_MIB) // 64)


def test_a_killed_process_does_not_make_the_next_allocation_fail(container: Container) -> None:
    """No wait and no query between the kill and the allocation that needs the room."""
    survivor = container.actor().start()
    for _ in range(10):
        victim = container.actor().start()
        assert victim.do("fill", "linear", 64 * MIB) == OUT_OF_MEMORY
        victim.kill()
        survivor.ok("take", "linear", 1500 * MIB)
        survivor.ok("give-all")


def test_all_killed_and_a_new_one_starts_afresh(container: Container) -> None:
    for _ in range(3):
        actors = [container.actor().start() for _ in range(3)]
        for actor in actors:
            assert actor.do("fill", "linear", 64 * MIB) == OUT_OF_MEMORY
        for actor in actors:
            actor.kill()
        fresh = container.actor().start()
        settles(lambda actor=fresh: actor.info() == FULL)
        fresh.kill()


@pytest.mark.parametrize("how", ["exit", "_exit"])
def test_a_child_of_fork_takes_nothing_and_frees_nothing(container: Container, machine: Machine, how: str) -> None:
    """Exit handlers run in the child; the parent's accounts stay as they are."""
    actor = container.actor().start()
    hold_everything(actor)
    before, held = actor.info(), machine.used()
    for _ in range(5):
        assert actor.ok("fork", how) == ["3"]
        assert actor.info() == before
    assert machine.used() == held
    actor.ok("give-all")
    actor.do("trim", 0)
    settles(lambda: actor.info() == FULL)


def test_a_child_that_fork_s_handlers_never_saw_leaves_the_parent_s_account_alone(
    container: Container, machine: Machine
) -> None:
    """Made by a bare clone; it runs the exit handlers."""
    actor = container.actor().start()
    hold_everything(actor)
    before, held = actor.info(), machine.used()
    assert actor.ok("fork", "clone") == ["7"]
    assert (actor.info(), machine.used()) == (before, held)
    assert actor.do("fill", "linear", 64 * MIB) == OUT_OF_MEMORY


def test_a_normal_end_clears_the_slot(container: Container) -> None:
    survivor = container.actor().start()
    actor = container.actor().start()
    actor.ok("take", "linear", 100 * MIB)
    assert actor.quit() == 0
    settles(lambda: survivor.info() == FULL)
    assert [p.pid for p in region.read(container.region).processes if p.total[0]] == [survivor.pid]


def test_exec_clears_the_slot(container: Container) -> None:
    """The same process, now another program: what it held is gone with the driver's descriptors."""
    survivor = container.actor().start()
    actor = container.actor().start()
    actor.ok("take", "linear", 500 * MIB)
    actor.send("exec", PROGRAMS / "actor")
    assert actor.receive()[0] == 0
    settles(lambda: survivor.info() == FULL)
    again = actor.start().info()
    assert again == ((LIMIT_MIB - 2 * CONTEXT_MIB) * MIB, LIMIT_MIB * MIB)


def test_usage_above_a_lowered_limit_shows_no_free_memory(container: Container) -> None:
    actor = container.actor().start()
    actor.ok("take", "linear", 1000 * MIB)
    region.set_limit(container.region, 0, 512 * MIB)
    settles(lambda: actor.info() == (0, 512 * MIB))
    assert actor.do("take", "linear", 2 * MIB) == OUT_OF_MEMORY
    actor.ok("give-all")
    settles(lambda: actor.info() == ((512 - CONTEXT_MIB) * MIB, 512 * MIB))


def test_a_raised_limit_counts_from_the_next_allocation(container: Container) -> None:
    actor = container.actor().start()
    assert actor.do("take", "linear", 3000 * MIB) == OUT_OF_MEMORY
    region.set_limit(container.region, 0, 4096 * MIB)
    actor.ok("take", "linear", 3000 * MIB)
    assert actor.info()[1] == 4096 * MIB


def test_memory_shared_by_a_child_with_its_own_context_is_counted_apart(container: Container) -> None:
    """A worker started anew (not forked) has an account of its own."""
    parent, child = container.actor().start(), container.actor().start()
    parent.ok("take", "linear", 300 * MIB)
    child.ok("take", "linear", 200 * MIB)
    by_pid = {p.pid: p.total[0] for p in region.read(container.region).processes}
    settles(
        lambda: (
            {p.pid: p.total[0] for p in region.read(container.region).processes}
            == {parent.pid: (CONTEXT_MIB + 300) * MIB, child.pid: (CONTEXT_MIB + 200) * MIB}
        )
    )
    assert set(by_pid) == {parent.pid, child.pid}


def test_descriptors_closed_by_the_program_do_not_matter(container: Container) -> None:
    """A daemon closes every descriptor it does not know; the account stays and ends with the process."""
    survivor = container.actor().start()
    result = subprocess.run(
        ["sh", "-c", 'exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; exec "$0" 64', PROGRAMS / "linked"],
        env=container.env,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert result.stdout.split()[0] == str(OUT_OF_MEMORY), result.stderr
    settles(lambda: survivor.info() == FULL)
