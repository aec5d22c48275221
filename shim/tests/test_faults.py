"""A region that cannot be used, or holds nonsense, never stops a program; where it can, the limit still holds."""

from __future__ import annotations

import os
import random
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
import region
from machine import MIB, OUT_OF_MEMORY, PROGRAMS, Container, Machine, run

LIMIT_MIB, CONTEXT_MIB = 2048, 180
STEPS = (LIMIT_MIB - CONTEXT_MIB) // 64
ROUNDS = 400 if os.environ.get("VGPUCTL_SOAK") else 40


@pytest.fixture
def container(machine: Machine) -> Container:
    return machine.container(CUDA_DEVICE_MEMORY_LIMIT_0=f"{LIMIT_MIB}m")


def runs(container: Container, **env: str) -> tuple[int, int]:
    """A program that fills the card; the code of the refusal and how many steps there were before it."""
    result = container.run(PROGRAMS / "linked", 64, **env)
    assert result.returncode == 0, (result.returncode, result.stderr[-1000:])
    code, steps, free, total = map(int, result.stdout.split())
    assert free <= total
    return code, steps


def no_directory(c: Container) -> str:
    return str(c.directory / "none" / "x.cache")


def a_directory(c: Container) -> str:
    (c.directory / "x.cache").mkdir()
    return str(c.directory / "x.cache")


def a_fifo(c: Container) -> str:
    os.mkfifo(c.directory / "x.cache")
    return str(c.directory / "x.cache")


def a_link(c: Container) -> str:
    (c.directory / "target").write_bytes(b"precious")
    (c.directory / "x.cache").symlink_to(c.directory / "target")
    return str(c.directory / "x.cache")


def a_dangling_link(c: Container) -> str:
    (c.directory / "x.cache").symlink_to("/nonexistent/there")
    return str(c.directory / "x.cache")


def a_device(c: Container) -> str:
    del c
    return "/dev/null"


def a_long_path(c: Container) -> str:
    return str(c.directory / ("x" * 5000))


def nothing(c: Container) -> str:
    del c
    return ""


PATHS = [no_directory, a_directory, a_fifo, a_link, a_dangling_link, a_device, a_long_path, nothing]


@pytest.mark.parametrize("path", PATHS)
def test_a_path_that_is_no_region(container: Container, path: Callable[[Container], str]) -> None:
    named = path(container)
    code, steps = runs(container, CUDA_DEVICE_MEMORY_SHARED_CACHE=named)
    assert code == OUT_OF_MEMORY
    assert steps == STEPS
    target = container.directory / "target"
    assert not target.exists() or target.read_bytes() == b"precious"


@pytest.mark.parametrize("size", [0, 1, 4096, region.BYTES - 1, region.BYTES + 1, 4 * region.BYTES])
def test_a_file_of_another_size(container: Container, size: int) -> None:
    container.region.write_bytes(b"\0" * size)
    code, steps = runs(container)
    assert (code, steps) == (OUT_OF_MEMORY, STEPS)


def test_a_full_disk(container: Container, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    disk = tmp_path / "disk"
    disk.mkdir()
    script = f"mount -t tmpfs -o size=64k none {disk} && exec {PROGRAMS / 'linked'} 64"
    env = container.env | {"CUDA_DEVICE_MEMORY_SHARED_CACHE": str(disk / "x.cache"), "PATH": os.environ["PATH"]}
    preload = env.pop("LD_PRELOAD")
    script = script.replace("exec ", f"LD_PRELOAD={preload} exec ")
    result = run("unshare", "-m", "sh", "-c", script, env=env)
    assert result.returncode == 0, result.stderr
    assert result.stdout.split()[:2] == [str(OUT_OF_MEMORY), str(STEPS)]


def test_a_directory_that_may_not_be_written(container: Container) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to become somebody else")
    container.directory.chmod(0o555)
    state = Path(f"/dev/shm/vgpuctl-test-{os.getpid()}")
    env = container.env | {"VGPUCTL_FAKE_STATE": str(state), "PATH": os.environ["PATH"]}
    nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    preload = env.pop("LD_PRELOAD")
    for directory in container.directory.parents:
        if directory != Path("/tmp") and directory.is_relative_to("/tmp"):
            directory.chmod(0o755)
    try:
        result = run(*nobody, "env", f"LD_PRELOAD={preload}", PROGRAMS / "linked", 64, env=env)
    finally:
        state.unlink(missing_ok=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout.split()[:2] == [str(OUT_OF_MEMORY), str(STEPS)]


def made(container: Container) -> tuple[Path, Path]:
    """The two files as a process left them."""
    actor = container.actor().start()
    actor.ok("take", "linear", 100 * MIB)
    actor.kill()
    return container.region, container.region.with_name(container.region.name + ".core")


def is_sane(container: Container) -> None:
    """The program ran to the end with a documented code, whatever limit the nonsense made."""
    code, _ = runs(container)
    assert code == OUT_OF_MEMORY


@pytest.mark.soak
@pytest.mark.parametrize("which", [0, 1], ids=["region", "core"])
@pytest.mark.parametrize("seed", range(ROUNDS // 4))
def test_random_bytes_in_the_files(container: Container, which: int, seed: int) -> None:
    """Whole files of noise, noise in the header, single bytes changed all over."""
    file = made(container)[which]
    dice = random.Random(seed)
    data = bytearray(file.read_bytes())
    match seed % 4:
        case 0:
            data = bytearray(dice.randbytes(len(data)))
        case 1:
            data[:8192] = dice.randbytes(8192)
        case 2:
            for _ in range(2000):
                data[dice.randrange(len(data))] = dice.randrange(256)
        case _:
            start = dice.randrange(len(data) - 100_000)
            data[start : start + 100_000] = b"\xff" * 100_000
    file.write_bytes(data)
    is_sane(container)


OWN = Path("/proc/self/ns/pid").stat().st_ino


@pytest.mark.parametrize("namespace", [0, 1, OWN])
@pytest.mark.parametrize("owner", [0, 1, 74, 1 << 32 | 1, (1 << 63) | 99])
def test_a_record_that_nobody_holds_does_not_block_the_card(container: Container, owner: int, namespace: int) -> None:
    """Claims of a process that is not there, larger than any card: at the next refusal they are seen through."""
    core = made(container)[1]
    with core.open("r+b") as file:
        file.seek(48)
        file.write(struct.pack("<I", 16))  # records in use
        file.seek(4096 + 16 * 2048 + 5 * 512)
        file.write(struct.pack("<QQ", owner, namespace))
        file.seek(4096 + 16 * 2048 + 5 * 512 + 64)
        file.write(struct.pack("<Q", 1 << 62))
    assert runs(container) == (OUT_OF_MEMORY, STEPS)


@pytest.mark.soak
@pytest.mark.parametrize("which", [0, 1], ids=["region", "core"])
@pytest.mark.parametrize("seed", range(ROUNDS // 8))
def test_random_bytes_under_a_running_process(container: Container, which: int, seed: int) -> None:
    actor = container.actor().start()
    file = (container.region, container.region.with_name(container.region.name + ".core"))[which]
    dice = random.Random(1000 + seed)
    with file.open("r+b") as f:
        for _ in range(50):
            f.seek(dice.randrange(file.stat().st_size - 4096) if seed % 2 else dice.randrange(4096))
            f.write(dice.randbytes(dice.choice((1, 4, 8, 64, 4000))))
            f.flush()
            for words in (f"take linear {10 * MIB}", "info", "spin 1000", f"take vmm {MIB}", f"take async {MIB}"):
                assert actor.do(words) in (0, OUT_OF_MEMORY)
    assert actor.do("give-all") == 0
    assert actor.quit() == 0


def test_a_region_removed_or_replaced_while_in_use(container: Container) -> None:
    actor = container.actor().start()
    container.region.unlink()
    actor.ok("take", "linear", 100 * MIB)
    assert actor.do("take", "linear", 4096 * MIB) == OUT_OF_MEMORY
    other = container.actor().start()
    assert other.info()[1] == LIMIT_MIB * MIB
    actor.ok("give-all")
