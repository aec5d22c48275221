"""The preloaded library as a machine's files show it: from a local root, and from a recording."""

from __future__ import annotations

import gzip
import hashlib
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.machines import CAPTURES, POD
from vgpuctl.checks.check import Options, Status
from vgpuctl.checks.registry import all_checks
from vgpuctl.model.facts import Part
from vgpuctl.model.host import ABSENT, Stat
from vgpuctl.model.shim import (
    LIBRARY,
    LOCK,
    LOCKS,
    MOUNTED,
    PRELOAD,
    REGIONS,
    Mapped,
    elf_machine,
    glibc_needed,
    glibc_release,
    mapped,
    pod_of,
)
from vgpuctl.sources.files import LocalFiles
from vgpuctl.sources.machine import Machine
from vgpuctl.sources.recorded import RecordedFiles
from vgpuctl.sources.shim import read_shim
from vgpuctl.tasks.doctor import diagnose

ELF = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\x00\x3e\x00"
SYMBOLS = b"\0malloc\0GLIBC_2.2.5\0GLIBC_2.17\0GLIBC_2.4\0GLIBC_PRIVATE\0"
LIBC = "/lib/x86_64-linux-gnu/libc.so.6"
SAYS = b"\0GNU C Library (Debian GLIBC 2.36-9) stable release version 2.36.\n"
MAPS = "7f00-7f01 r-xp 00000000 08:01 {inode} {path}\n"
CGROUP = f"0::/kubepods.slice/kubepods-pod{POD.replace('-', '_')}.slice/cri-containerd-1.scope\n"
SHIM = [check for check in all_checks() if check.area == "shim"]


class TestTexts:
    @pytest.mark.parametrize(
        ("number", "order", "name"),
        [(0x3E, "little", "x86_64"), (0xB7, "little", "aarch64"), (0x16, "big", "machine 22")],
    )
    def test_the_machine_of_an_elf_file(self, number: int, order: str, name: str) -> None:
        data = bytearray(ELF)
        data[5] = 1 if order == "little" else 2
        data[18:20] = number.to_bytes(2, order)  # type: ignore[arg-type]
        assert elf_machine(bytes(data)) == name

    @given(st.binary(max_size=64))
    def test_anything_else_is_none(self, data: bytes) -> None:
        if not data.startswith(b"\x7fELF"):
            with pytest.raises(ValueError, match="not an ELF file"):
                elf_machine(data)

    def test_the_newest_symbol_version(self) -> None:
        assert glibc_needed(ELF + SYMBOLS) == "2.17"
        assert glibc_needed(ELF) == ""

    def test_the_c_librarys_version(self) -> None:
        assert glibc_release(ELF + SAYS) == "2.36"
        with pytest.raises(ValueError, match="does not say"):
            glibc_release(ELF)

    @pytest.mark.parametrize(
        ("text", "wanted"),
        [
            (MAPS.format(inode=7, path=MOUNTED), Mapped(MOUNTED, 7, False)),
            (MAPS.format(inode=7, path=f"{MOUNTED} (deleted)"), Mapped(MOUNTED, 7, True)),
            (MAPS.format(inode=7, path=f"{MOUNTED}//deleted"), Mapped(MOUNTED, 7, True)),
            (MAPS.format(inode=7, path="/a b/libvgpu.so"), Mapped("/a b/libvgpu.so", 7, False)),
            (
                MAPS.format(inode=8, path=MOUNTED) + MAPS.format(inode=7, path=f"{MOUNTED} (deleted)"),
                Mapped(MOUNTED, 7, True),
            ),
            (MAPS.format(inode=7, path="/usr/lib/libvgpu.so.bak/libc.so"), None),
            (MAPS.format(inode="x", path=MOUNTED), None),
            ("7f00-7f01 rw-p 00000000 00:00 0\n", None),
            ("", None),
        ],
    )
    def test_what_a_process_has_mapped(self, text: str, wanted: Mapped | None) -> None:
        assert mapped(text) == wanted

    @pytest.mark.parametrize(
        "text",
        [CGROUP, f"11:memory:/kubepods/burstable/pod{POD}/abc\n0::/x\n", f"0::/../pod{POD}/x"],
    )
    def test_the_pod_of_a_process(self, text: str) -> None:
        assert pod_of(text) == POD

    def test_no_pod(self) -> None:
        assert pod_of("0::/user.slice/podman-1.scope\n") == ""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The root of a node with the library, a container with a dead process in its region, and a process of the pod."""
    put(tmp_path, LIBRARY, ELF + SYMBOLS)
    put(tmp_path, PRELOAD, f"{MOUNTED}\n".encode())
    put(tmp_path, "/bin/sh", ELF)
    put(tmp_path, LIBC, ELF + SAYS)
    put(tmp_path, f"{REGIONS}/{POD}_train/x.cache", gzip.decompress((CAPTURES / "killed-8g.cache.gz").read_bytes()))
    put(tmp_path, "/proc/2/comm", b"kthreadd\n")
    inode = (tmp_path / LIBRARY[1:]).stat().st_ino
    process(tmp_path, 502, MAPS.format(inode=inode, path=MOUNTED))
    (tmp_path / LOCKS[1:]).mkdir(parents=True)
    (tmp_path / LOCKS[1:]).chmod(0o777)
    return tmp_path


def put(root: Path, path: str, data: bytes) -> None:
    place = root / path[1:]
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(data)


def process(root: Path, pid: int, maps: str) -> None:
    put(root, f"/proc/{pid}/status", f"Name:\tpython\nNSpid:\t{pid}\n".encode())
    put(root, f"/proc/{pid}/stat", f"{pid} (python) S {'0 ' * 40}".encode())
    put(root, f"/proc/{pid}/cgroup", CGROUP.encode())
    put(root, f"/proc/{pid}/maps", maps.encode())


def results(machine: Machine) -> dict[str, Status]:
    return {one.check.id: one.result.status for one in diagnose([machine], SHIM, Options()).outcomes}


class TestLocalRoot:
    def test_all_of_it_is_read(self, root: Path) -> None:
        found = read_shim(LocalFiles(str(root)))
        file = found.file.need()
        assert (file.machine, file.glibc) == ("x86_64", "2.17")
        assert file.ours is not True
        assert file.sha256 == hashlib.sha256(ELF + SYMBOLS).hexdigest()
        assert (found.machine.value, found.glibc.value) == ("x86_64", "2.36")
        (program,) = found.programs.need()
        assert (program.pid, program.pod, program.library.need().path) == (502, POD, MOUNTED)
        assert found.locks.need().lock == ABSENT

    def test_doctor_looks_at_it(self, root: Path) -> None:
        found = results(Machine.local(str(root)))
        assert {name for name, status in found.items() if status is Status.PASS} == {
            "shim-file",
            "shim-version",
            "region-format",
            "limiter-armed",
            "vgpulock",
        }
        assert found["region-slots"] is Status.WARN, "503 is gone, 502 lives"
        assert found["region-counters"] is found["limit-held"] is Status.UNKNOWN, "no driver"
        assert found["region-orphans"] is Status.SKIP, "no cluster"

    def test_a_file_that_was_replaced_by_rename(self, root: Path) -> None:
        new = root / "new"
        new.write_bytes(ELF + SYMBOLS + b"\0")
        new.rename(root / LIBRARY[1:])
        assert results(Machine.local(str(root)))["shim-version"] is Status.WARN

    @pytest.mark.parametrize(("age", "status"), [(1, Status.PASS), (600, Status.WARN)])
    def test_a_lock_that_is_left_behind(self, root: Path, age: int, status: Status) -> None:
        put(root, LOCK, b"")
        then = time.time() - age
        os.utime(root / LOCK[1:], (then, then))
        assert results(Machine.local(str(root)))["vgpulock"] is status

    def test_a_root_without_a_trace_of_it(self, tmp_path: Path) -> None:
        (tmp_path / "proc").mkdir()
        assert set(results(Machine.local(str(tmp_path))).values()) <= {Status.SKIP, Status.UNKNOWN}
        assert read_shim(LocalFiles(str(tmp_path))).used is False

    @pytest.mark.parametrize("path", [LIBRARY, PRELOAD])
    def test_a_fifo_or_a_link_out_of_the_root_hangs_nobody(self, root: Path, path: str) -> None:
        place = root / path[1:]
        place.unlink()
        os.mkfifo(place)
        assert results(Machine.local(str(root)))["shim-file"] is Status.UNKNOWN
        place.unlink()
        place.symlink_to("/../../../../etc/passwd")
        assert results(Machine.local(str(root)))["shim-file"] in (Status.UNKNOWN, Status.FAIL)


class TestRecording:
    def machine(self, files: dict[str, bytes], **stats: Stat) -> Machine:
        return Machine.recorded(RecordedFiles(files, stats, "gpu-1"), 1_796_093_900.0)

    def test_one_without_it_holds_no_such_part(self) -> None:
        machine = self.machine({"/proc/modules": b""})
        assert not {Part.SHIM, Part.REGIONS} & machine.parts
        assert set(results(machine).values()) == {Status.SKIP}

    def test_one_of_a_node_that_has_none(self) -> None:
        absent = dict.fromkeys((LIBRARY, PRELOAD, REGIONS, LOCKS, LOCK), ABSENT)
        machine = Machine.recorded(RecordedFiles({}, absent, "gpu-1"))
        assert set(results(machine).values()) == {Status.SKIP}

    def test_one_with_a_region(self) -> None:
        region = gzip.decompress((CAPTURES / "killed-8g.cache.gz").read_bytes())
        files = {LIBRARY: ELF + SYMBOLS, PRELOAD: MOUNTED.encode(), "/bin/sh": ELF}
        found = results(self.machine({**files, f"{REGIONS}/{POD}_train/x.cache": region}))
        assert found["shim-file"] is found["region-format"] is Status.PASS
        assert found["region-slots"] is Status.UNKNOWN, "who lived then is not recorded"
