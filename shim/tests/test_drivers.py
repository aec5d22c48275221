"""Old drivers and new ones: every program runs on each as it does without the shim, and no symbol is missing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from machine import ABSENT, MIB, OUT_OF_MEMORY, PROGRAMS, Machine

DRIVERS = {
    "450.80.02": "1xT4-16GB",
    "470.256.02": "1xK80-12GB",
    "580.159.04": "1xP40-24GB",
    "13.5": "1xH200-141GB",
}
PAIRS = list(DRIVERS.items())
WAYS = ["linear", "pitch", "array", "array3d", "mipmap", "vmm", "graph", "managed", "async", "pool"]
SELF_CHECKING = ["capture", "vmm", "streams", "threads", "reopen", "external"]


@pytest.fixture(params=PAIRS, ids=DRIVERS)
def machine(machine_of: Callable[..., Machine], request: pytest.FixtureRequest) -> Machine:
    driver, gpus = request.param
    return machine_of(gpus=gpus, driver=driver)


@pytest.mark.parametrize("how", ["getproc", "dlsym"])
def test_the_limit_holds(machine: Machine, how: str) -> None:
    actor = machine.container(CUDA_DEVICE_MEMORY_LIMIT_0="2g").actor(how).start()
    assert actor.info()[1] == 2048 * MIB
    for way in WAYS:
        code = actor.do("take", way, 4096 * MIB)
        assert code in (OUT_OF_MEMORY, ABSENT)
        if code != ABSENT:
            actor.ok("take", way, 64 * MIB)
    actor.ok("give-all")
    held = sum(machine.used().values())
    assert actor.info()[0] >= 2048 * MIB - held - 32 * MIB
    assert actor.quit() == 0
    assert "undefined symbol" not in "".join(actor.stderr)


def test_what_the_driver_lacks_stays_missing(machine: Machine) -> None:
    """A name that the driver does not export is not there under the shim either."""
    names = [
        "cuMemAllocAsync",
        "cuGetProcAddress",
        "cuGetProcAddress_v2",
        "cuGraphAddMemAllocNode",
        "cuCtxCreate_v4",
        "cuLaunchKernelEx",
    ]
    command = [PROGRAMS / "paths", *names]
    plain = machine.run(*command).stdout
    shimmed = machine.container(CUDA_DEVICE_MEMORY_LIMIT_0="2g").run(*command)
    assert shimmed.returncode == 0, shimmed.stderr

    def missing(text: str) -> list[str]:
        return [line for line in text.splitlines() if line.endswith("absent") and not line.startswith("next")]

    assert missing(shimmed.stdout) == missing(plain)


@pytest.mark.parametrize("program", SELF_CHECKING)
def test_programs_run_as_without_the_shim(machine: Machine, program: str) -> None:
    plain = machine.run(PROGRAMS / program)
    assert plain.returncode == 0, plain.stdout + plain.stderr
    result = machine.container(CUDA_DEVICE_MEMORY_LIMIT_0="4g").run(PROGRAMS / program)
    assert result.returncode == 0, result.stdout + result.stderr


def test_wrong_calls_end_as_without_the_shim(machine: Machine) -> None:
    plain = machine.run(PROGRAMS / "nulls")
    result = machine.container(CUDA_DEVICE_MEMORY_LIMIT_0="4g").run(PROGRAMS / "nulls")
    assert (result.returncode, result.stdout) == (0, plain.stdout)
