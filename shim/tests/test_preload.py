"""However a program reaches the driver and however the shim reaches the program, the limit holds and nothing breaks."""

from __future__ import annotations

import os
import re
import shutil
import statistics
import subprocess
import time
from pathlib import Path

import pytest
from machine import MIB, OUT_OF_MEMORY, PROGRAMS, Container, Machine, library, run

LIMIT_MIB = 2048
HOOKED = ["cuMemAlloc_v2", "cuMemGetInfo_v2", "cuMemCreate", "cuMemAllocAsync", "cuLaunchKernel", "cuDeviceTotalMem_v2"]
PASSED = ["cuDeviceGetName", "cuDriverGetVersion", "cuCtxGetCurrent", "cuMemcpyDtoD_v2"]
WAYS = ["handle", "default", "next", "dlsym@2.2.5", "dlsym@2.34", "dlsym-of-dlsym", "getproc-v1", "getproc-v2"]


@pytest.fixture
def container(machine: Machine) -> Container:
    return machine.container(CUDA_DEVICE_MEMORY_LIMIT_0=f"{LIMIT_MIB}m")


def found(container: Container, names: list[str]) -> dict[tuple[str, str], str]:
    text = container.run(PROGRAMS / "paths", *names).stdout
    return {(way, name): module for way, name, module in (line.split() for line in text.splitlines()[: -2 or None])}


@pytest.mark.parametrize("way", WAYS)
def test_each_way_to_look_a_function_up_gives_the_hook(container: Container, way: str) -> None:
    answers = found(container, HOOKED)
    assert {name: answers[way, name] for name in HOOKED} == dict.fromkeys(HOOKED, library().name)


def test_a_lookup_by_version_gives_the_hook(container: Container) -> None:
    """The real driver has no symbol versions, so dlvsym finds its functions under any; here a toy stands for it."""
    command = [PROGRAMS / "paths", "cuMemAlloc_v2", "cuDeviceGetName"]
    text = container.run(*command, LD_LIBRARY_PATH=str(PROGRAMS / "toy")).stdout
    assert f"dlvsym cuMemAlloc_v2 {library().name}" in text
    assert "dlvsym cuDeviceGetName libcuda.so.1" in text


def test_functions_that_are_not_hooked_are_the_driver_s_own(container: Container, machine: Machine) -> None:
    command = [PROGRAMS / "paths", *PASSED]
    plain = machine.run(*command).stdout
    assert container.run(*command).stdout == plain


def test_missing_names_stay_missing_and_dlerror_is_clean(container: Container) -> None:
    text = container.run(PROGRAMS / "paths", "cuInit").stdout
    assert text.splitlines()[-2:] == ["missing absent error", "clean no-error"]


@pytest.mark.parametrize("how", ["getproc", "dlsym", "next", "default"])
def test_the_limit_holds_however_the_functions_were_found(container: Container, how: str) -> None:
    actor = container.actor(how).start()
    assert actor.info()[1] == LIMIT_MIB * MIB
    assert actor.do("take", "linear", LIMIT_MIB * MIB) == OUT_OF_MEMORY


def test_a_program_linked_to_the_driver(container: Container) -> None:
    code, steps, _, total = map(int, container.run(PROGRAMS / "linked", 64).stdout.split())
    assert (code, steps, total) == (OUT_OF_MEMORY, (LIMIT_MIB - 180) // 64, LIMIT_MIB * MIB)


@pytest.mark.parametrize(("mib", "code"), [(4096, OUT_OF_MEMORY), (100, 0)])
def test_a_library_loaded_with_deepbind(container: Container, mib: int, code: int) -> None:
    result = container.run(PROGRAMS / "deep", PROGRAMS / "deepbind.so", mib)
    assert result.stdout.split() == [str(code)], result.stderr


@pytest.mark.parametrize("order", ["{other} {shim}", "{shim} {other}"])
def test_another_interposer_before_or_after(container: Container, order: str) -> None:
    """Its RTLD_NEXT finds the shim or the driver, never itself; the limit holds and its count is right."""
    preload = order.format(shim=library(), other=PROGRAMS / "interposer.so")
    result = container.run(PROGRAMS / "linked", 64, LD_PRELOAD=preload)
    assert result.returncode == 0, result.stderr
    code, steps, *_ = map(int, result.stdout.split())
    assert code == OUT_OF_MEMORY
    assert steps == (LIMIT_MIB - 180) // 64
    if order.startswith("{other}"):
        assert f"interposer: {steps + 1} calls" in result.stderr


def test_a_program_for_an_old_glibc(container: Container, other_programs: Path) -> None:
    actor = container.actor(program="actor-glibc217").start()
    assert actor.info()[1] == LIMIT_MIB * MIB
    assert actor.do("take", "linear", LIMIT_MIB * MIB) == OUT_OF_MEMORY


def test_a_program_named_twice_in_the_preload(container: Container) -> None:
    result = container.run(PROGRAMS / "linked", 64, LD_PRELOAD=f"{library()} {library()}")
    assert result.stdout.split()[0] == str(OUT_OF_MEMORY)


class TestMusl:
    """A musl program reads LD_PRELOAD, and not /etc/ld.so.preload."""

    @pytest.fixture(autouse=True)
    def _loader(self, other_programs: Path) -> None:
        if not Path("/lib/ld-musl-x86_64.so.1").exists():
            pytest.skip("no musl on this machine (Debian: apt-get install musl)")

    def test_a_program_without_cuda_runs(self, container: Container) -> None:
        result = container.run(PROGRAMS / "plain-musl")
        assert (result.returncode, result.stdout) == (0, "plain\n"), result.stderr

    def test_a_program_that_finds_no_driver_says_so_itself(self, container: Container) -> None:
        result = container.run(PROGRAMS / "actor-musl", LD_LIBRARY_PATH="/nonexistent")
        assert result.returncode == 3
        assert "libcuda.so.1" in result.stderr

    @pytest.mark.parametrize("how", ["dlsym", "getproc"])
    def test_a_program_with_a_driver_is_limited_or_left_alone(
        self, machine: Machine, container: Container, how: str
    ) -> None:
        fake = PROGRAMS.parent / "fake-musl"
        actor = container.actor(how, program="actor-musl", LD_LIBRARY_PATH=str(fake)).start()
        actor.ok("take", "linear", 100 * MIB)
        free, total = actor.info()
        assert free <= total
        assert actor.do("take", "linear", 100000 * MIB) == OUT_OF_MEMORY
        actor.ok("give-all")
        assert actor.quit() == 0


class TestWholeSystem:
    """/etc/ld.so.preload in a mount namespace of its own, the container's directory on /tmp/vgpu."""

    SCRIPT = """
set -e
mount --make-rprivate /
mount --bind "$HOLD" /mnt
mount --bind "$ETC" /etc
mount -t tmpfs none /tmp
chmod 1777 /tmp
mkdir /tmp/vgpu /tmp/vgpulock
chmod 1777 /tmp/vgpulock
mount --bind "/mnt/$REGION" /tmp/vgpu
ldconfig
exec "$@"
"""

    @pytest.fixture
    def inside(self, tmp_path: Path, container: Container):
        if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
            pytest.skip("needs root and mount namespaces")
        etc = tmp_path / "etc"
        shutil.copytree("/etc", etc, symlinks=True, ignore_dangling_symlinks=True)
        hold = tmp_path / "hold"
        hold.mkdir()
        container.directory.chmod(0o777)
        for name, source in (
            ("libvgpu.so", library()),
            ("driver", Path(container.machine.env["LD_LIBRARY_PATH"])),
            ("programs", PROGRAMS),
        ):
            target = hold / name
            shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
        region = hold / "vgpu"
        region.mkdir(mode=0o777)
        region.chmod(0o777)
        (etc / "ld.so.preload").write_text("/mnt/libvgpu.so\n")
        (etc / "ld.so.conf.d" / "driver.conf").write_text("/mnt/driver\n")
        state = {
            "VGPUCTL_FAKE_GPUS": "1xT4-16GB",
            "VGPUCTL_FAKE_STATE": "/mnt/machine.state",
            "PATH": os.environ["PATH"],
        }
        state["CUDA_DEVICE_MEMORY_SHARED_CACHE"] = "/tmp/vgpu/pod.cache"
        state["CUDA_DEVICE_MEMORY_LIMIT_0"] = f"{LIMIT_MIB}m"

        def run(*command: object) -> subprocess.CompletedProcess[str]:
            outer = {"ETC": str(etc), "HOLD": str(hold), "REGION": "vgpu", **state}
            words = ["unshare", "-m", "sh", "-c", self.SCRIPT, "sh", *map(str, command)]
            return subprocess.run(words, env=outer, capture_output=True, text=True, timeout=60, check=False)

        return run

    def test_every_program_is_limited(self, inside) -> None:
        result = inside("/mnt/programs/linked", 64)
        assert result.stdout.split()[:2] == ["2", str((LIMIT_MIB - 180) // 64)], result.stderr

    def test_programs_started_with_an_empty_environment_are_limited_too(self, inside) -> None:
        """The first one made the region; a login shell's, cron's or sudo's child knows no variable."""
        first = "/mnt/programs/linked 64 >/dev/null;"
        first += "exec env -i VGPUCTL_FAKE_STATE=/mnt/machine.state /mnt/programs/linked 64"
        result = inside("sh", "-c", first)
        assert result.stdout.split()[:2] == ["2", str((LIMIT_MIB - 180) // 64)], result.stderr

    def test_without_variables_and_without_a_region_nothing_is_limited(self, inside) -> None:
        result = inside("env", "-i", "VGPUCTL_FAKE_STATE=/mnt/machine.state", "/mnt/programs/linked", 1024)
        code, steps, *_ = map(int, result.stdout.split())
        assert (code, steps) == (OUT_OF_MEMORY, 14)

    def test_a_setuid_program_is_left_alone(self, inside) -> None:
        """The loader honours /etc/ld.so.preload there: the shim reads no variable and opens nothing."""
        script = (
            "chmod 777 /mnt /tmp/vgpu; chown root /mnt/programs/linked; chmod 4755 /mnt/programs/linked;"
            "exec setpriv --reuid 65534 --regid 65534 --clear-groups /mnt/programs/linked 1024; "
        )
        result = inside("sh", "-c", script)
        code, steps, *_ = map(int, result.stdout.split())
        assert (code, steps) == (OUT_OF_MEMORY, 14), result.stderr
        assert "vgpu" not in result.stderr

    def test_another_user_is_limited(self, inside) -> None:
        script = (
            "chmod 777 /mnt /tmp/vgpu;exec setpriv --reuid 65534 --regid 65534 --clear-groups /mnt/programs/linked 64"
        )
        result = inside("sh", "-c", script)
        assert result.stdout.split()[:2] == ["2", str((LIMIT_MIB - 180) // 64)], result.stderr

    def test_shells_and_tools_run_as_ever(self, inside) -> None:
        result = inside("bash", "-c", "ls / >/dev/null && git --version >/dev/null && echo $((6*7)) | grep 42")
        assert (result.returncode, result.stdout, result.stderr) == (0, "42\n", "")

    def test_only_the_two_files_lie_in_the_directory(self, inside) -> None:
        result = inside("sh", "-c", "/mnt/programs/linked 64 >/dev/null; ls /tmp/vgpu")
        assert result.stdout.split() == ["pod.cache", "pod.cache.core"]


class TestPlainProgram:
    """A process without CUDA under the preload."""

    def opened(self, container: Container, preload: bool) -> list[str]:
        if shutil.which("strace") is None:
            pytest.skip("needs strace")
        log = container.directory / "trace"
        env = container.env if preload else {k: v for k, v in container.env.items() if k != "LD_PRELOAD"}
        setting = ["-E", f"LD_PRELOAD={env.pop('LD_PRELOAD')}"] if preload else []
        command = [
            "strace",
            "-f",
            "-o",
            str(log),
            "-e",
            "trace=%file,%network,%process",
            *setting,
            str(PROGRAMS / "plain"),
        ]
        result = run(*command, env=env)
        if result.returncode:
            pytest.skip(f"strace does not work here: {result.stderr[:200]}")
        return re.findall(r'(\w+)\(.*?"([^"]*)"', log.read_text())

    def test_it_opens_nothing_but_the_library_itself(self, container: Container) -> None:
        plain, shimmed = self.opened(container, False), self.opened(container, True)
        extra = [path for call, path in shimmed if (call, path) not in plain]
        others = [p for p in extra if not re.search(r"/(libvgpu|libdl|libpthread|libc)\.so|ld\.so|plain$", p)]
        assert others == []
        assert not list(container.directory.glob("*.cache*"))

    def test_it_starts_less_than_a_millisecond_later(self, container: Container) -> None:
        def once(env: dict[str, str]) -> float:
            start = time.perf_counter()
            pid = os.posix_spawn(
                PROGRAMS / "plain", ["plain"], env, file_actions=[(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)]
            )
            os.waitpid(pid, 0)
            return time.perf_counter() - start

        without = {k: v for k, v in container.env.items() if k != "LD_PRELOAD"}
        pairs = [(once(without), once(container.env)) for _ in range(150)]
        assert statistics.median(b - a for a, b in pairs) < 0.001
