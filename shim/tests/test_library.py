"""What the built library is made of: old glibc only, no needless dependency, small, nothing that ends the program."""

from __future__ import annotations

import gzip
import re
import subprocess
from pathlib import Path

import pytest
from machine import BUILD, library

ARCHITECTURES = {"x86_64": "2.17", "aarch64": "2.17"}


def tool(*command: object) -> str:
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, check=True).stdout


def built(architecture: str) -> Path:
    path = BUILD / architecture / "release" / "libvgpu.so"
    if not path.exists():
        pytest.skip(f"{path} was not built")
    return path


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_no_symbol_is_newer_than_glibc_2_17(architecture: str) -> None:
    needed = tool("readelf", "-VW", built(architecture)).split("Version needs section")[1]
    versions = set(re.findall(r"Name: GLIBC_([\d.]+)", needed))
    assert versions
    newest = max(tuple(map(int, v.split("."))) for v in versions)
    assert newest <= tuple(map(int, ARCHITECTURES[architecture].split(".")))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_it_needs_the_c_library_only(architecture: str) -> None:
    needed = set(re.findall(r"\(NEEDED\).*\[(.+)]", tool("readelf", "-dW", built(architecture))))
    assert needed <= {"libc.so.6", "libdl.so.2", "libpthread.so.0"}
    assert "libc.so.6" in needed


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_it_fits_a_config_map(architecture: str) -> None:
    data = built(architecture).read_bytes()
    assert len(data) < 300_000
    assert len(gzip.compress(data, 9)) < 180 * 1024


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_it_never_ends_the_program(architecture: str) -> None:
    undefined = set(re.findall(r" U (\w+)", tool("nm", "-D", "--undefined-only", built(architecture))))
    assert not undefined & {"exit", "_exit", "abort", "raise", "__assert_fail", "quick_exit", "signal", "sigaction"}


# What glibc's own start files want of every shared library, and the names that musl's dynamic linker must find too.
MUSL_LACKS = {"dlvsym", "gnu_get_libc_version", "__register_atfork", "__libc_dlsym", "secure_getenv_"}


def test_no_function_that_musl_lacks() -> None:
    undefined = set(re.findall(r" U (\w+)(?:@\S+)?", tool("nm", "-D", "--undefined-only", library())))
    weak = set(re.findall(r" w (\w+)", tool("nm", "-D", "--undefined-only", library())))
    musl = Path("/lib/ld-musl-x86_64.so.1")
    if musl.exists():
        there = set(re.findall(r" [TWiDBRV] (\w+)", tool("nm", "-D", "--defined-only", musl)))
        assert sorted(undefined - there - weak) == []
    assert sorted(undefined & MUSL_LACKS - weak) == []


def test_both_versions_of_dlsym_and_dlvsym_are_exported() -> None:
    text = tool("nm", "-D", "--defined-only", library())
    for name in ("dlsym", "dlvsym"):
        assert set(re.findall(rf"{name}@+(GLIBC_\S+)", text)) == {"GLIBC_2.2.5", "GLIBC_2.34"}


def test_the_stack_is_not_executable_and_relocations_are_read_only() -> None:
    segments = tool("readelf", "-lW", library())
    assert re.search(r"GNU_STACK.* RW ", segments)
    assert "GNU_RELRO" in segments
    assert "TEXTREL" not in tool("readelf", "-dW", library())


def test_dlsym_ends_in_a_jump() -> None:
    """The real dlsym must see the caller's return address, or RTLD_NEXT is counted from here: no call of it."""
    code = tool("objdump", "-d", "--no-show-raw-insn", library())
    body = re.search(r"<dlsym@@?[^>]*>:\n(.*?)\n\n", code, re.DOTALL)
    assert body, "no dlsym in the disassembly"
    assert re.search(r"\bjmp\s+\*", body.group(1)), body.group(1)


def test_it_has_no_constructor() -> None:
    """Nothing runs when a program that never touches CUDA is started, but what reads the environment."""
    text = tool("readelf", "-dW", library())
    size = re.search(r"INIT_ARRAYSZ\)\s+(\d+)", text)
    assert size is None or int(size.group(1)) <= 16
