"""The shim built with sanitizers, under the busiest programs: no report."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import make
from machine import BUILD, MIB, OUT_OF_MEMORY, PROGRAMS, SHIM, Container, Machine

RUNTIME = {"address,undefined": "libasan.so", "thread": "libtsan.so"}
REPORT = re.compile(r"ERROR: AddressSanitizer|runtime error:|WARNING: ThreadSanitizer|LeakSanitizer")
RUNS = [
    ("threads", "0"),
    ("threads", "1"),
    ("vmm",),
    ("capture",),
    ("streams",),
    ("reopen",),
    ("external",),
    ("nulls",),
    ("storm", "300"),
    ("linked", "64"),
]


@pytest.fixture(scope="module", params=RUNTIME)
def sanitized(built: None, request: pytest.FixtureRequest) -> str:
    """What to preload: the sanitizer's runtime, then the shim built with it."""
    kind = request.param
    runtime = subprocess.run(
        ["gcc", f"-print-file-name={RUNTIME[kind]}"], capture_output=True, text=True, check=False
    ).stdout.strip()
    if shutil.which("gcc") is None or not Path(runtime).is_absolute():
        pytest.skip(f"needs gcc with {RUNTIME[kind]}")
    make(SHIM, f"SAN={kind}", "CC=gcc")
    return f"{runtime} {BUILD / f'x86_64-{kind}' / 'libvgpu.so'}"


def options(preload: str) -> dict[str, str]:
    return {
        "LD_PRELOAD": preload,
        "ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "TSAN_OPTIONS": "report_bugs=1:exitcode=66",
    }


@pytest.mark.parametrize("command", RUNS, ids=" ".join)
def test_no_report(machine_of: Callable[..., Machine], sanitized: str, command: tuple[str, ...]) -> None:
    container: Container = machine_of().container(CUDA_DEVICE_MEMORY_LIMIT_0="1g")
    words = (
        ["setarch", "-R", str(PROGRAMS / command[0]), *command[1:]]
        if "tsan" in sanitized
        else [str(PROGRAMS / command[0]), *command[1:]]
    )
    env = container.env | options(sanitized)
    preload = env.pop("LD_PRELOAD")
    result = subprocess.run(
        ["env", f"LD_PRELOAD={preload}", *words], env=env, capture_output=True, text=True, timeout=120, check=False
    )
    assert not REPORT.search(result.stderr), result.stderr[:4000]
    assert result.returncode == 0, result.stdout + result.stderr[:2000]


def test_limits_hold_and_processes_meet(machine_of: Callable[..., Machine], sanitized: str) -> None:
    if "tsan" in sanitized:
        pytest.skip("threads of one process only")
    container = machine_of().container(CUDA_DEVICE_MEMORY_LIMIT_0="1g")
    a, b = (container.actor(**options(sanitized)).start() for _ in range(2))
    assert a.do("fill", "linear", 64 * MIB) == OUT_OF_MEMORY
    a.kill()
    b.ok("take", "linear", 500 * MIB)
    assert b.quit() == 0
    assert not REPORT.search("".join(b.stderr))
