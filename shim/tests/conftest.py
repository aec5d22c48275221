"""Builds the shim, the simulated driver and the programs once, and gives each test a simulated machine."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from machine import BUILD, PROGRAMS, SHIM, Machine


def make(directory: Path, *targets: str) -> None:
    result = subprocess.run(
        ["make", "-C", str(directory), "-j2", f"PYTHON={sys.executable}", *targets],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]


def keep(built: Path) -> Path:
    """A copy under a path of its own: a library that is mapped must never be written again by a later build."""
    kept = PROGRAMS / hashlib.sha256(built.read_bytes()).hexdigest()[:12] / built.name
    kept.parent.mkdir(exist_ok=True)
    if not kept.exists():
        shutil.copy(built, kept.with_suffix(f".{os.getpid()}"))
        kept.with_suffix(f".{os.getpid()}").rename(kept)
    return kept


@pytest.fixture(scope="session", autouse=True)
def built() -> None:
    if shutil.which("make") is None or shutil.which("cc") is None:
        pytest.skip("needs make and a C compiler")
    make(SHIM / "fake")
    make(SHIM / "tests")
    if "VGPU_LIBRARY" not in os.environ:
        make(SHIM, "release")
        os.environ["VGPU_LIBRARY"] = str(keep(BUILD / "x86_64" / "release" / "libvgpu.so"))


@pytest.fixture(scope="session")
def other_programs(built: None) -> Path:
    """Programs for an old glibc and for musl, built by zig."""
    if subprocess.run([sys.executable, "-m", "ziglang", "version"], capture_output=True, check=False).returncode:
        pytest.skip("needs ziglang")
    make(SHIM / "tests", "other")
    return PROGRAMS


@pytest.fixture(scope="session")
def share(built: None) -> Path:
    """The program that measures shares on a real card."""
    program = PROGRAMS / "share"
    source = SHIM / "bench" / "share.c"
    subprocess.run(
        ["cc", "-std=c11", "-D_GNU_SOURCE", "-O2", source, "-o", program, "-ldl", "-lm"],
        check=True,
        capture_output=True,
    )
    return program


@pytest.fixture
def machine_of(tmp_path: Path) -> Iterator[Callable[..., Machine]]:
    """Make a machine: machine_of(gpus="2xT4-16GB", driver="450.80.02")."""
    made: list[Machine] = []

    def make_machine(**options: str) -> Machine:
        directory = tmp_path / f"machine{len(made)}"
        directory.mkdir()
        made.append(Machine(directory, **options))
        return made[-1]

    yield make_machine
    for machine in made:
        machine.close()


@pytest.fixture
def machine(machine_of: Callable[..., Machine]) -> Machine:
    """One T4."""
    return machine_of()
