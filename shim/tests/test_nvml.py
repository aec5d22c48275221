"""One story for every query: the driver's, NVML's and nvidia-smi's figures inside a container agree."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from machine import MIB, PROGRAMS, Actor, Container, Machine, run, settles

LIMIT_MIB, CONTEXT_MIB = 2048, 180

ASK = """
import json, pynvml as n
n.nvmlInit()
h = n.nvmlDeviceGetHandleByIndex(0)
one, two = n.nvmlDeviceGetMemoryInfo(h), n.nvmlDeviceGetMemoryInfo(h, version=n.nvmlMemory_v2)
lists = {}
for name in ("Compute", "Graphics", "MPSCompute"):
    for version in ("", "_v2", "_v3"):
        get = getattr(n, f"nvmlDeviceGet{name}RunningProcesses{version}", None)
        lists[name + version] = {p.pid: p.usedGpuMemory for p in get(h)} if get else {}
try:
    util = {u.pid: u.smUtil for u in n.nvmlDeviceGetProcessUtilization(h, 0)}
except n.NVMLError as e:
    util = {}
try:
    n.nvmlDeviceGetMemoryInfo(h, version=0x0300FFFF)
    wrong = 0
except n.NVMLError as e:
    wrong = e.value
rates = n.nvmlDeviceGetUtilizationRates(h)
print(json.dumps({
    "v1": [one.total, one.free, one.used], "v2": [two.total, two.reserved, two.free, two.used],
    "lists": lists, "util": util, "wrong": wrong, "gpu": rates.gpu,
    "count": n.nvmlDeviceGetCount(), "uuid": n.nvmlDeviceGetUUID(h), "name": n.nvmlDeviceGetName(h)}))
"""


@pytest.fixture
def container(machine: Machine) -> Container:
    return machine.container(CUDA_DEVICE_MEMORY_LIMIT_0=f"{LIMIT_MIB}m", CUDA_DEVICE_SM_LIMIT="40")


def ask(env: dict[str, str]) -> dict[str, Any]:
    pytest.importorskip("pynvml")
    result = run(sys.executable, "-c", ASK, env=env)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def two_busy(container: Container) -> list[Actor]:
    a, b = container.actor().start(), container.actor().start()
    a.ok("take", "linear", 300 * MIB)
    b.ok("take", "vmm", 500 * MIB)
    return [a, b]


def test_memory_is_the_container_s_in_every_version(container: Container, machine: Machine) -> None:
    outside = machine.actor().start()
    outside.ok("take", "linear", 3000 * MIB)
    a, _ = two_busy(container)
    seen = ask(container.env)
    used = (2 * CONTEXT_MIB + 800) * MIB
    total, free, v1_used = seen["v1"]
    assert (total, v1_used) == (LIMIT_MIB * MIB, used)
    assert free == total - v1_used
    total, reserved, free, v2_used = seen["v2"]
    assert total == LIMIT_MIB * MIB
    assert v2_used == used
    assert reserved + free + v2_used == total
    assert a.info() == (free, total)


def test_free_never_wraps_around(container: Container) -> None:
    import region

    two_busy(container)
    region.set_limit(container.region, 0, 100 * MIB)
    seen = ask(container.env)
    assert seen["v1"][:2] == [100 * MIB, 0]
    assert seen["v2"][0] == 100 * MIB
    assert seen["v2"][2] == 0
    assert seen["v1"][2] <= 2000 * MIB


def test_the_process_lists_hold_the_container_s_own(container: Container, machine: Machine) -> None:
    outside = machine.actor().start()
    a, b = two_busy(container)
    lists = ask(container.env)["lists"]
    expected = {str(a.pid): (CONTEXT_MIB + 300) * MIB, str(b.pid): (CONTEXT_MIB + 500) * MIB}
    for name in ("", "_v2", "_v3"):
        assert lists[f"Compute{name}"] == expected
    assert lists["Graphics_v3"] == {}
    assert str(outside.pid) in ask(machine.env)["lists"]["Compute_v3"]


def test_utilisation_is_the_container_s_own(container: Container, machine: Machine) -> None:
    outside = machine.actor().start()
    a, _ = two_busy(container)
    outside.ok("spin", 20_000_000, 500)
    settles(lambda: ask(machine.env)["gpu"] > 50, 8)
    inside = ask(container.env)
    assert str(outside.pid) not in inside["util"]
    assert inside["gpu"] <= 10
    a.send("spin", 20_000_000, 500)
    settles(lambda: ask(container.env)["util"].get(str(a.pid), 0) > 10, 8)


def test_what_is_not_about_memory_is_the_card_s_own(container: Container, machine: Machine) -> None:
    container.actor().start()
    inside, outside = ask(container.env), ask(machine.env)
    for field in ("count", "uuid", "name", "wrong"):
        assert inside[field] == outside[field]


def test_a_tool_started_first_sees_the_limit(container: Container) -> None:
    """nvidia-smi in a fresh container, before any program used the driver."""
    assert ask(container.env)["v1"] == [LIMIT_MIB * MIB, LIMIT_MIB * MIB, 0]


def test_the_count_protocol(container: Container) -> None:
    result = container.run(PROGRAMS / "count")
    assert result.returncode == 0, result.stdout + result.stderr


SMI = PROGRAMS / "bin" / "nvidia-smi"
BLOCK = """HAMI-core Virtual GPU:
    Memory Usage : 980/2048 MB (47%)
    Compute Usage : 0/40 cores
    Process Count : 2
"""


class TestSmi:
    """`nvidia-smi -q` in a container ends with a block per vGPU."""

    def test_its_memory_is_the_limit(self, container: Container) -> None:
        two_busy(container)
        assert container.run(SMI).stdout == f"{2 * CONTEXT_MIB + 800} MiB / {LIMIT_MIB} MiB\n"

    def test_the_block_stands_at_the_end_through_a_pipe(self, container: Container) -> None:
        a, b = two_busy(container)
        a.ok("give-all")
        b.ok("take", "linear", 120 * MIB)
        settles(lambda: b.info()[0] == (LIMIT_MIB - 980) * MIB)
        text = container.run(SMI, "-q").stdout
        first, block = text.split("\n", 1)
        assert first == f"980 MiB / {LIMIT_MIB} MiB"
        assert block.strip("\n") + "\n" == BLOCK
        piped = subprocess.run(
            ["sh", "-c", f"'{SMI}' -q | grep -A 5 HAMI-core"],
            env=container.env,
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
        ).stdout
        assert piped == BLOCK

    @pytest.mark.parametrize(
        "arguments",
        [
            [],
            ["-L"],
            ["-q", "-x"],
            ["-x", "-q"],
            ["-q", "-f", "/dev/null"],
            ["-q", "-d", "MEMORY"],
            ["--query-gpu=name", "--format=csv"],
        ],
    )
    def test_other_forms_are_left_as_they_are(
        self, container: Container, machine: Machine, arguments: list[str]
    ) -> None:
        two_busy(container)
        result = container.run(SMI, *arguments)
        assert result.returncode == 0
        assert "HAMI-core" not in result.stdout

    def test_without_a_container_there_is_no_block(self, machine: Machine) -> None:
        result = machine.run(SMI, "-q")
        assert "HAMI-core" not in result.stdout

    def test_another_program_with_the_same_arguments_has_no_block(self, container: Container) -> None:
        assert "HAMI-core" not in container.run(PROGRAMS / "linked", "-q").stdout
