"""cuGetProcAddress under the shim: the driver's code, status and choice of version, the hook in the symbol's place."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest
from machine import PROGRAMS, Machine, library
from tables import lookups
from test_tables import hooked

DRIVERS = {"470.256.02": ("1xK80-12GB", "1"), "580.159.04": ("1xT4-16GB", "2"), "13.5": ("1xH200-141GB", "2")}
OTHERS = ["cuMemAlloc_v2", "cuLaunchKernel_ptsz", "cuNothing", "cudaMalloc"]


def questions() -> list[str]:
    """Every name at the version it came with, one below, and the newest; for each kind of default stream."""
    asked = {(name, at) for name, version, _, _ in lookups() for at in (version, version - 1, 11030, 12000, 13050)}
    asked |= {(name, 12000) for name in OTHERS}
    return [f"{name} {version} {flags}" for name, version in sorted(asked) for flags in (0, 1, 2, 64)]


def answers(env: dict[str, str], form: str) -> list[list[str]]:
    text = "\n".join(questions()) + "\n"
    result = subprocess.run(
        [PROGRAMS / "lookups", form], env=env, input=text, capture_output=True, text=True, timeout=60, check=False
    )
    assert result.returncode == 0, result.stderr
    return [line.split() for line in result.stdout.splitlines()]


@pytest.mark.parametrize("driver", DRIVERS)
def test_every_lookup_is_the_driver_s_with_the_hook_in_its_place(
    machine_of: Callable[..., Machine], driver: str
) -> None:
    gpus, form = DRIVERS[driver]
    machine = machine_of(gpus=gpus, driver=driver)
    plain = answers(machine.env, form)
    shimmed = answers(machine.container(CUDA_DEVICE_MEMORY_LIMIT_0="1g").env, form)
    hooks = hooked()
    for theirs, ours in zip(plain, shimmed, strict=True):
        assert theirs[:-1] == ours[:-1]  # question, code, status, symbol
        symbol, file = theirs[-2:]
        assert ours[-1] == (library().name if symbol in hooks else file), ours
    assert sum(row[-1] == library().name for row in shimmed) > 300


@pytest.mark.parametrize("driver", DRIVERS)
def test_it_works_before_init_and_without_a_status(machine_of: Callable[..., Machine], driver: str) -> None:
    """As the runtime library starts: the first question has an empty name, version 0 and no status."""
    gpus, _ = DRIVERS[driver]
    machine = machine_of(gpus=gpus, driver=driver)
    actor = machine.container(CUDA_DEVICE_MEMORY_LIMIT_0="1g").actor("getproc")
    assert actor.start().info()[1] == 1 << 30
