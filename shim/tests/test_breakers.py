"""Programs that are known to break interposers, each as a small one of its kind."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
import region
from machine import MIB, OUT_OF_MEMORY, PROGRAMS, Container, Machine, settles

LIMIT_MIB, CONTEXT_MIB = 2048, 180
FULL = (LIMIT_MIB - CONTEXT_MIB) * MIB, LIMIT_MIB * MIB
INVALID_VALUE = 1


@pytest.fixture
def container(machine: Machine) -> Container:
    return machine.container(CUDA_DEVICE_MEMORY_LIMIT_0=f"{LIMIT_MIB}m")


def test_a_pool_allocation_is_freed_by_the_driver(container: Container) -> None:
    """As RAPIDS' memory manager does: memory from a pool of its own, freed in stream order."""
    actor = container.actor().start()
    actor.ok("stream")
    for _ in range(100):
        actor.ok("take", "pool", 64 * MIB)
        actor.ok("give-all")
    settles(lambda: actor.info() == FULL)


def test_a_kept_pool_does_not_count_twice(container: Container) -> None:
    """With a release threshold the pool keeps what was freed; taking it again needs no more room."""
    actor = container.actor().start()
    actor.ok("threshold", 1 << 62)
    for _ in range(200):
        actor.ok("take", "async", 1500 * MIB)
        actor.ok("give-all")
    assert actor.info()[0] < (LIMIT_MIB - CONTEXT_MIB - 1400) * MIB
    actor.ok("take", "vmm", 1000 * MIB)  # what a pool only keeps is given up before anything is refused
    assert actor.do("take", "async", 1500 * MIB) == OUT_OF_MEMORY


def test_stream_ordered_memory_can_be_freed_at_once(container: Container) -> None:
    actor = container.actor().start()
    for _ in range(20):
        actor.ok("take", "async-sync", 200 * MIB)
        actor.ok("give-all")
    settles(lambda: actor.info() == FULL)


def test_managed_memory_is_not_taken_for_a_smaller_context(container: Container) -> None:
    """It is charged in full while the card holds none of it: what the card says is less than what was charged."""
    actor = container.actor().start()
    time.sleep(1.5)  # the next allocation is a time to measure again
    actor.ok("take", "managed", 100 * MIB)
    held = int(container.actor().start().info()[0])
    assert held == (LIMIT_MIB - 2 * CONTEXT_MIB - 100) * MIB


def test_graph_memory_freed_by_the_plain_call(container: Container) -> None:
    actor = container.actor().start()
    for _ in range(30):
        actor.ok("take", "graph", 100 * MIB)
        actor.ok("give-all")
    actor.ok("trim", 0)
    settles(lambda: actor.info() == FULL)


@pytest.mark.parametrize("way", ["vmm", "linear"])
def test_a_thread_without_a_context_allocates(container: Container, way: str) -> None:
    """PyTorch's expandable segments grow in worker threads: the device is in the request, no context is needed."""
    actor = container.actor().start()
    assert actor.do("thread", way, 100 * MIB) == (0 if way == "vmm" else 201)
    if way == "vmm":
        assert actor.do("thread", way, 2 * LIMIT_MIB * MIB) == OUT_OF_MEMORY
    settles(lambda: actor.info() == FULL)


def test_memory_of_the_host_by_handle_is_not_the_card_s(container: Container) -> None:
    actor = container.actor().start()
    actor.ok("take", "vmm-host", 2 * LIMIT_MIB * MIB)
    assert actor.info() == FULL
    actor.ok("give-all")
    assert actor.info() == FULL


@pytest.mark.parametrize("wanted", ["free", "total", "none"])
def test_outputs_that_are_null(container: Container, wanted: str) -> None:
    actor = container.actor().start()
    expected = {"free": FULL[0], "total": FULL[1], "none": 0}[wanted]
    assert actor.ok("info-null", wanted) == [str(expected)]


def test_null_outputs_end_as_without_the_shim(container: Container, machine: Machine) -> None:
    """Every result code of calls with missing outputs and wrong arguments is the driver's own."""
    command = [PROGRAMS / "nulls"]
    plain = machine.run(*command)
    shimmed = container.run(*command)
    assert shimmed.returncode == 0, shimmed.stderr
    assert shimmed.stdout == plain.stdout
    assert len(plain.stdout.splitlines()) > 40


@pytest.mark.parametrize("way", ["free", "free-async"])
@pytest.mark.parametrize("pointer", [1, 4096, 0x7F0000000000, (1 << 64) - 1])
def test_a_free_of_an_unknown_pointer_is_the_driver_s_business(
    container: Container, machine: Machine, way: str, pointer: int
) -> None:
    expected = machine.actor().start().do(way, pointer)
    assert container.actor().start().do(way, pointer) == expected == INVALID_VALUE


@pytest.mark.parametrize("way", ["free", "free-async"])
def test_nothing_is_freed_twice(container: Container, way: str) -> None:
    actor = container.actor().start()
    actor.ok("take", "linear", 100 * MIB)
    actor.ok("take", "linear", 300 * MIB)
    (pointer,) = actor.ok("pointer", 0)
    actor.ok(way, pointer)
    for _ in range(5):
        assert actor.do(way, pointer) == INVALID_VALUE
    settles(lambda: actor.info()[0] == FULL[0] - 300 * MIB)


def test_external_memory_can_be_mapped_and_freed(container: Container) -> None:
    """As OptiX and Vulkan programs do: the mapped pointer was never allocated by a call that could be seen."""
    result = container.run(PROGRAMS / "external")
    assert result.returncode == 0, result.stdout + result.stderr


def test_memory_of_another_process_is_not_charged_twice(container: Container) -> None:
    owner, guest = container.actor().start(), container.actor().start()
    owner.ok("take", "linear", 1000 * MIB)
    (pointer,) = owner.ok("pointer", 0)
    owner.ok("write", pointer, 4711)
    before = guest.info()
    (handle,) = owner.ok("export", 0)
    (imported,) = guest.ok("import", handle)
    assert guest.ok("read", imported) == ["4711"]
    assert guest.info() == before
    assert guest.do("free", imported) == INVALID_VALUE
    guest.ok("close", imported)
    assert guest.do("close", imported) == INVALID_VALUE
    assert guest.info() == before
    owner.ok("give-all")
    settles(lambda: guest.info()[0] == (LIMIT_MIB - 2 * CONTEXT_MIB) * MIB)


def test_memory_of_another_container_is_not_charged_here(machine: Machine) -> None:
    one, two = (machine.container(CUDA_DEVICE_MEMORY_LIMIT_0=limit) for limit in ("2048m", "512m"))
    owner, guest = one.actor().start(), two.actor().start()
    owner.ok("take", "linear", 1000 * MIB)
    (imported,) = guest.ok("import", owner.ok("export", 0)[0])
    settles(lambda: guest.info() == ((512 - CONTEXT_MIB) * MIB, 512 * MIB))
    guest.ok("close", imported)


def test_shared_physical_memory_lives_until_the_last_reference(container: Container) -> None:
    result = container.run(PROGRAMS / "vmm")
    assert result.returncode == 0, result.stdout + result.stderr


def test_more_limits_than_cards(machine: Machine) -> None:
    limits = {f"CUDA_DEVICE_MEMORY_LIMIT_{i}": "1g" for i in range(20)}
    actor = machine.container(**limits).actor().start()
    assert actor.info()[1] == 1024 * MIB


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1g", 1024), ("1G", 1024), ("1024m", 1024), ("1048576k", 1024), ("1Gi", 1024), ("1073741824", 1024)],
)
def test_units_of_a_limit(machine: Machine, text: str, expected: int) -> None:
    assert machine.container(CUDA_DEVICE_MEMORY_LIMIT_0=text).actor().start().info()[1] == expected * MIB


@pytest.mark.parametrize("text", ["lots", "-5m", "1e3m", "", "99999999999999999999g"])
def test_a_limit_that_cannot_be_read_never_breaks_the_program(machine: Machine, text: str) -> None:
    actor = machine.container(CUDA_DEVICE_MEMORY_LIMIT_0=text).actor().start()
    actor.ok("take", "linear", 10 * MIB)


def test_the_plain_limit_is_the_default_of_every_card(machine_of: Callable[..., Machine]) -> None:
    machine = machine_of(gpus="2xT4-16GB")
    container = machine.container(CUDA_DEVICE_MEMORY_LIMIT="1g", CUDA_DEVICE_MEMORY_LIMIT_1="2g")
    actor = container.actor().start()
    assert [actor.ok("total", card) for card in (0, 1)] == [[str(1024 * MIB)], [str(2048 * MIB)]]


def test_a_second_process_sees_what_the_first_holds(container: Container) -> None:
    a, b, c = (container.actor().start() for _ in range(3))
    a.ok("take", "linear", 500 * MIB)
    assert b.info()[0] == c.info()[0] == (LIMIT_MIB - 3 * CONTEXT_MIB - 500) * MIB


def test_a_child_with_a_stripped_environment_has_the_same_limit(container: Container) -> None:
    """Once the region is there only its values count; without its path the child knows no region and is outside."""
    container.actor().start()
    stripped = {name: value for name, value in container.env.items() if not name.startswith("CUDA_DEVICE_MEMORY_LIMIT")}
    child = container.machine.actor(env=stripped).start()
    assert child.info()[1] == LIMIT_MIB * MIB
    assert "nconsisten" not in "".join(child.stderr)


@pytest.mark.parametrize("other", ["512m", "14000m", "0"])
def test_another_environment_does_not_change_the_limit(container: Container, other: str) -> None:
    container.actor().start()
    child = container.actor(CUDA_DEVICE_MEMORY_LIMIT_0=other).start()
    assert child.info()[1] == LIMIT_MIB * MIB
    assert region.read(container.region).limit[0] == LIMIT_MIB * MIB


def test_refusals_are_logged_once_a_second_with_the_figures(container: Container) -> None:
    actor = container.actor().start()
    for _ in range(300):
        assert actor.do("take", "linear", 4096 * MIB) == OUT_OF_MEMORY
    actor.quit()
    lines = [line for line in "".join(actor.stderr).splitlines() if "out of memory" in line]
    assert 1 <= len(lines) <= 2
    assert "cuMemAlloc" in lines[0]
    for figure in ("4096 MiB", f"{LIMIT_MIB} MiB", f"{CONTEXT_MIB} MiB"):
        assert figure in lines[0]


def test_captures_work_as_without_the_shim(container: Container) -> None:
    """No call of the shim's own disturbs a stream that records, and the codes are the driver's."""
    result = container.run(PROGRAMS / "capture")
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_thousand_streams_and_events(container: Container) -> None:
    result = container.run(PROGRAMS / "streams")
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("limited", [False, True])
def test_threads_allocate_at_once(container: Container, limited: bool) -> None:
    """Eight threads, eight ways: no crash, no wrong code, the usage back at the start."""
    result = container.run(PROGRAMS / "threads", "1" if limited else "0")
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_library_of_the_driver_can_come_and_go(container: Container) -> None:
    """dlopen, use, dlclose, again."""
    result = container.run(PROGRAMS / "reopen")
    assert result.returncode == 0, result.stdout + result.stderr
