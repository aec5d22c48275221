"""Region files: what the captures say, and everything that a tenant can do to a file."""

from __future__ import annotations

import gzip
import os
import struct
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.unit.machines import CAPTURED, CAPTURES
from vgpuctl.model import region_layout as layout
from vgpuctl.model.region import Region, parse
from vgpuctl.model.region_core import CoreProcess, parse_core
from vgpuctl.sources.region import (
    Companions,
    Processes,
    ProcessInfo,
    alive,
    read_core,
    read_processes,
    read_region,
    read_regions,
    region_file,
)

NAMES = tuple(CAPTURED["regions"])
UUID = "GPU-5e1f0c2a-7d34-4b9e-8a61-c0ffee200001"
GIB = 1 << 30
LIMITS = {
    "one-8g-50": (8 * GIB, 50),
    "two-16g-30": (16 * GIB, 30),
    "killed-8g": (8 * GIB, None),
    "nolimit": (None, None),
    "units-5120m": (5 * GIB, None),
    "finished": (8 * GIB, 50),
}
"""Memory limit in bytes and core limit in percent, as the captures' README tells them."""


def bytes_of(name: str) -> bytearray:
    return bytearray(gzip.decompress((CAPTURES / f"{name}.cache.gz").read_bytes()))


def live(name: str) -> set[int]:
    return {row["pid"] for row in CAPTURED["regions"][name].get("nvml_processes", [])}


def judged(name: str) -> Region:
    """The capture's region with each slot judged by the processes that NVML listed at that moment."""
    return parse(bytes(bytes_of(name))).with_life(lambda slot: slot.pid in live(name))


@pytest.fixture
def file(tmp_path: Path) -> Callable[[bytes | bytearray], Path]:
    def write(data: bytes | bytearray) -> Path:
        path = tmp_path / "region.cache"
        path.write_bytes(data)
        return path

    return write


@pytest.mark.parametrize("name", NAMES)
class TestCaptures:
    def test_the_limits_are_what_was_set(self, name: str) -> None:
        region = judged(name)
        assert region.uuids == (UUID,)
        assert (region.limits, region.cores) == ((LIMITS[name][0],), (LIMITS[name][1],))
        assert region.faults == ()

    def test_the_processes_are_the_ones_that_ran(self, name: str) -> None:
        told = CAPTURED["regions"][name].get("pids", CAPTURED["regions"]["one-8g-50"]["pids"])
        assert sorted(slot.pid for slot in judged(name).slots) == sorted(told)

    def test_the_sum_is_what_the_programs_saw_as_used(self, name: str) -> None:
        region = judged(name)
        for said in CAPTURED["regions"][name].get("processes_say", {}).values():
            if region.limits[0] is not None:
                assert said["total"] == region.limits[0]
                assert said["free"] == region.limits[0] - (region.used(0) or 0)
            else:
                assert said["total"] - said["free"] == region.used(0)

    def test_each_process_holds_what_it_and_nvml_say(self, name: str) -> None:
        facts = CAPTURED["regions"][name]
        slots = {slot.pid: slot for slot in judged(name).slots}
        for row in facts.get("nvml_processes", []):
            used = slots[row["pid"]].used[0]
            assert used is not None
            assert slots[row["pid"]].nvml == (row["bytes"],)
            assert 0 < row["bytes"] - used.total < 5 << 20, "about 4 MiB below NVML"
        for pid, said in zip(facts.get("pids", []), facts.get("processes_say", {}).values(), strict=True):
            used = slots[pid].used[0]
            assert used is not None
            assert said["reserved"] <= used.data < said["reserved"] + (128 << 20)
            assert used.total == used.context + used.data

    def test_stale_slots_are_those_of_processes_that_are_gone(self, name: str) -> None:
        assert {slot.pid for slot in judged(name).stale} == {
            "killed-8g": {503},
            "finished": {426},
        }.get(name, set())

    def test_the_last_kernel_ran_at_the_moment_of_the_copy(self, name: str) -> None:
        last, wall = judged(name).last_kernel, CAPTURED["regions"][name]["wall"]
        assert last is not None
        assert wall - last < (60 if name == "finished" else 2)


def test_a_stale_slot_counts_until_it_is_left_out() -> None:
    region = judged("killed-8g")
    assert (region.used(0), region.used(0, stale=False)) == (4_014_213_120, 1_201_800_192)
    assert round(((region.used(0) or 0) - 1_201_800_192) / (1 << 20)) == 2682


def put(field: layout.Field, value: int, index: int = 0, base: int = 0) -> Callable[[bytearray], None]:
    def change(data: bytearray) -> None:
        struct.pack_into(field.format, data, base + field.offset + index * field.stride, value)

    return change


SLOT = layout.REGION_FILE_SLOTS.offset
TOTAL = SLOT + layout.REGION_SLOT_USED.offset


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda data: data.clear(), "0 bytes long"),
        (lambda data: data.pop(), "2008952 bytes long"),
        (lambda data: data.append(0), "2008954 bytes long"),
        (lambda data: data.__setitem__(slice(None), bytes(len(data))), "not initialised"),
        (put(layout.REGION_FILE_MAGIC, 1), "magic number is 1"),
        (put(layout.REGION_FILE_MAGIC, -1), "magic number is -1"),
        (put(layout.REGION_FILE_MAJOR, 2), "format version 2.2"),
        (put(layout.REGION_FILE_MINOR, 1), "format version 1.1"),
        (put(layout.REGION_FILE_DEVICE_NUM, 17), "17 cards"),
        (put(layout.REGION_FILE_LIMIT, 1 << 63), "memory limit"),
        (put(layout.REGION_FILE_SM_LIMIT, 101), "core limit"),
    ],
)
def test_what_is_not_a_region_is_a_reading_with_the_reason(
    change: Callable[[bytearray], Any], reason: str, file: Callable[[bytearray], Path]
) -> None:
    data = bytes_of("one-8g-50")
    change(data)
    reading = read_region(file(data))
    assert reading.value is None
    assert reason in reading.reason


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (put(layout.REGION_USAGE_TOTAL, (1 << 64) - 4096, 0, TOTAL), "impossible memory"),
        (put(layout.REGION_USAGE_DATA, 1 << 60, 0, TOTAL), "impossible memory"),
        (put(layout.REGION_SLOT_PID, -5, 0, SLOT), "pid -5"),
    ],
)
def test_garbage_counters_make_the_sum_unknown_never_wrong(change: Callable[[bytearray], Any], fault: str) -> None:
    data = bytes_of("two-16g-30")
    change(data)
    region = parse(bytes(data))
    assert fault in region.faults[0]
    assert region.used(0) is None
    assert region.limits == (16 * GIB,)


@pytest.mark.parametrize("claimed", [-1, 1025, 1 << 30])
def test_a_wrong_number_of_processes_hides_none(claimed: int) -> None:
    data = bytes_of("two-16g-30")
    put(layout.REGION_FILE_PROC_NUM, claimed)(data)
    region = parse(bytes(data))
    assert {slot.pid for slot in region.slots} == {455, 456}
    assert str(claimed) in region.faults[0]


def test_a_region_without_cards_is_read() -> None:
    data = bytes_of("one-8g-50")
    put(layout.REGION_FILE_DEVICE_NUM, 0)(data)
    assert parse(bytes(data)).uuids == ()


class TestPlace:
    """What may lie where a region is expected."""

    def test_a_link_is_not_followed(self, tmp_path: Path, file: Callable[[bytearray], Path]) -> None:
        link = tmp_path / "link.cache"
        link.symlink_to(file(bytes_of("one-8g-50")))
        assert "is a link" in read_region(link).reason

    def test_a_fifo_does_not_hold_us(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "fifo")
        assert "is a FIFO" in read_region(tmp_path / "fifo").reason

    def test_a_device_is_not_opened(self) -> None:
        assert "is a device" in read_region("/dev/zero").reason

    def test_a_directory_and_nothing(self, tmp_path: Path) -> None:
        assert "is a directory" in read_region(tmp_path).reason
        assert read_region(tmp_path / "none").absent

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
    def test_a_file_that_is_not_ours(self, file: Callable[[bytearray], Path]) -> None:
        path = file(bytes_of("one-8g-50"))
        path.chmod(0)
        assert read_region(path).denied


class TestRace:
    """A tenant changes the file while it is read."""

    ROUNDS = 60

    @staticmethod
    def racing(action: Callable[[], None]) -> tuple[threading.Thread, threading.Event]:
        stop = threading.Event()

        def run() -> None:
            while not stop.is_set():
                action()

        thread = threading.Thread(target=run)
        thread.start()
        return thread, stop

    def check(self, path: Path, action: Callable[[], None]) -> set[bool]:
        whole = parse(bytes(bytes_of("two-16g-30")))
        thread, stop = self.racing(action)
        try:
            readings = [read_region(path) for _ in range(self.ROUNDS)]
        finally:
            stop.set()
            thread.join()
        for reading in readings:
            assert reading.value is None or reading.value == whole, reading.value
            assert reading.known or reading.reason
        return {reading.known for reading in readings}

    def test_truncated_and_restored(self, file: Callable[[bytearray], Path]) -> None:
        data = bytes(bytes_of("two-16g-30"))
        path = file(bytearray(data))

        def action() -> None:
            os.truncate(path, 4096)
            with path.open("r+b") as out:
                out.seek(4096)
                out.write(data[4096:])

        assert False in self.check(path, action)

    def test_replaced_by_a_link_a_fifo_and_back(self, tmp_path: Path, file: Callable[[bytearray], Path]) -> None:
        data = bytes_of("two-16g-30")
        path = file(data)
        turn = 0

        def action() -> None:
            nonlocal turn
            turn += 1
            other = tmp_path / "other"
            if turn % 3 == 0:
                other.write_bytes(data)
            elif turn % 3 == 1:
                other.symlink_to("/etc/passwd")
            else:
                os.mkfifo(other)
            other.replace(path)

        self.check(path, action)


@given(st.binary(max_size=4096), st.integers(0, layout.REGION_BYTES - 1))
@example(b"\xff" * 4096, 0)
@example(b"\xff" * 4096, 1856)
def test_random_bytes_never_crash_and_never_give_an_impossible_number(noise: bytes, offset: int) -> None:
    data = bytes_of("two-16g-30")
    data[offset : offset + len(noise)] = noise
    data = data[: layout.REGION_BYTES]
    try:
        region = parse(bytes(data))
    except ValueError as error:
        assert str(error)
        return
    assert len(region.uuids) == len(region.limits) == len(region.cores) <= layout.REGION_CARDS
    assert all(limit is None or 0 < limit <= 1 << 50 for limit in region.limits)
    assert all(cores is None or 0 < cores < 100 for cores in region.cores)
    for card in range(len(region.uuids)):
        used = region.used(card)
        assert used is None or 0 <= used <= layout.REGION_SLOTS << 50


@given(st.binary(min_size=0, max_size=200))
def test_random_files_of_the_right_size_are_refused(noise: bytes) -> None:
    data = (noise * (layout.REGION_BYTES // max(len(noise), 1) + 1))[: layout.REGION_BYTES] if noise else b""
    with pytest.raises(ValueError, match=r"\w"):
        parse(data.ljust(layout.REGION_BYTES, b"\0"))


def core_bytes() -> bytearray:
    """A .core file with one card and one process, written by the published layout."""
    data = bytearray(layout.CORE_BYTES)
    put(layout.CORE_HEADER_MAGIC, layout.CORE_MAGIC)(data)
    put(layout.CORE_HEADER_MAJOR, 1)(data)
    put(layout.CORE_HEADER_READY, 1)(data)
    put(layout.CORE_HEADER_POLICY, layout.CORE_POLICY_FORCE)(data)
    put(layout.CORE_HEADER_PROCESS_HIGH, 1)(data)
    put(layout.CORE_HEADER_CREATED, 1_796_093_000)(data)
    data[layout.CORE_CARDS_OFFSET : layout.CORE_CARDS_OFFSET + len(UUID)] = UUID.encode()
    card = layout.CORE_CARDS_OFFSET
    for field, value in (
        (layout.CORE_CARD_MEMORY_LIMIT, 8 * GIB),
        (layout.CORE_CARD_CORE_LIMIT, 50),
        (layout.CORE_CARD_SHARE_1S, 497_000),
        (layout.CORE_CARD_SHARE_TIME, 1_796_093_779_000_000_000),
        (layout.CORE_CARD_THROTTLED_TIME, 2_500_000_000),
    ):
        put(field, value, 0, card)(data)
    process = layout.CORE_CARDS_OFFSET + layout.REGION_CARDS * layout.CORE_CARD_SIZE
    put(layout.CORE_PROCESS_OWNER, (77 << 32) | 426, 0, process)(data)
    put(layout.CORE_PROCESS_PID_NAMESPACE, 4026532000, 0, process)(data)
    put(layout.CORE_PROCESS_START_TIME, 77, 0, process)(data)
    return data


class TestCore:
    def test_it_says_what_the_library_wrote(self, file: Callable[[bytearray], Path]) -> None:
        core = read_core(file(core_bytes())).need()
        (card,) = core.cards
        assert (core.policy, card.uuid, card.memory_limit, card.core_limit) == ("force", UUID, 8 * GIB, 50)
        assert (card.share_1s, card.throttled, card.tasks) == (0.497, 2.5, None)
        assert core.processes == (CoreProcess(0, 426, 4026532000, 77, False),)
        assert core.created == 1_796_093_000

    def test_it_is_remembered_for_the_next_look(self, file: Callable[[bytearray], Path]) -> None:
        path = file(bytes_of("one-8g-50"))
        core = path.with_name(f"{path.name}{layout.CORE_SUFFIX}")
        core.write_bytes(core_bytes())
        companions = Companions()
        (first,) = companions.remembered([region_file(path)], 100.0)
        assert (first.core.at, first.before.known) == (100.0, False)
        core.write_bytes(b"damaged")
        companions.remembered([region_file(path)], 101.0)
        core.write_bytes(core_bytes())
        (third,) = companions.remembered([region_file(path)], 102.0)
        assert (third.before.at, third.before.value) == (100.0, first.core.value)

    @pytest.mark.parametrize(
        ("change", "reason"),
        [
            (lambda data: data.pop(), "bytes long"),
            (put(layout.CORE_HEADER_MAGIC, 1), "magic"),
            (put(layout.CORE_HEADER_MAJOR, 2), "version 2"),
            (put(layout.CORE_HEADER_READY, 0), "not complete"),
            (put(layout.CORE_HEADER_POLICY, 9), "policy 9"),
            (put(layout.CORE_CARD_CORE_LIMIT, 1 << 40, 0, layout.CORE_CARDS_OFFSET), "damaged"),
        ],
    )
    def test_what_it_is_not(
        self, change: Callable[[bytearray], Any], reason: str, file: Callable[[bytearray], Path]
    ) -> None:
        data = core_bytes()
        change(data)
        assert reason in read_core(file(data)).reason

    @given(st.binary(max_size=2048), st.integers(0, layout.CORE_BYTES - 1))
    def test_random_bytes(self, noise: bytes, offset: int) -> None:
        data = core_bytes()
        data[offset : offset + len(noise)] = noise
        try:
            core = parse_core(bytes(data[: layout.CORE_BYTES]))
        except ValueError:
            return
        assert all(card.core_limit is None or 0 < card.core_limit < 100 for card in core.cards)


HERE, THERE = 4026531836, 4026532000
POD = "0a1b2c3d-0000-4000-8000-00000000beef"


def process(*pids: int, namespace: int = THERE, cgroup: str = "", start: int = 77) -> ProcessInfo:
    return ProcessInfo(pids, namespace, cgroup, start)


@pytest.mark.parametrize(
    ("name", "with_core", "pod", "processes", "wanted"),
    [
        ("in its namespace", True, "", Processes((process(9000, 426),), HERE, True), True),
        ("another start time", True, "", Processes((process(9000, 426, start=99),), HERE, True), False),
        ("the pid in another namespace", True, "", Processes((process(9000, 426, namespace=5),), HERE, True), False),
        ("another's namespace not readable", True, "", Processes((process(9000, 7, namespace=0),), HERE, True), False),
        ("namespaces not readable", True, "", Processes((process(9000, 426, namespace=0),), HERE, True), None),
        ("seen from another container", True, "", Processes((process(1),), HERE, False), None),
        ("in our own namespace", True, "", Processes((process(1),), THERE, False), False),
        (
            "by the pod's cgroup",
            False,
            POD,
            Processes((process(9000, 426, cgroup=f"0::/pod{POD}/x"),), HERE, True),
            True,
        ),
        (
            "by the systemd cgroup",
            False,
            POD,
            Processes((process(9000, 426, cgroup=f"0::/kubepods-pod{POD.replace('-', '_')}.slice"),), HERE, True),
            True,
        ),
        (
            "another pod's process",
            False,
            POD,
            Processes((process(9000, 426, cgroup="0::/podother"),), HERE, True),
            False,
        ),
        ("without any means", False, "", Processes((process(426),), HERE, True), None),
    ],
)
def test_whether_a_slot_lives(name: str, with_core: bool, pod: str, processes: Processes, wanted: bool | None) -> None:
    slot = parse(bytes(bytes_of("one-8g-50"))).slots[0]
    core = parse_core(bytes(core_bytes())) if with_core else None
    assert alive(slot, core, processes, pod) is wanted
    if not with_core and not pod:
        assert alive(replace(slot, host_pid=9000), None, processes, "") is False


@pytest.mark.parametrize(
    ("state", "threads", "seen"), [("S", 1, True), ("Z", 1, False), ("Z", 3, True), ("X", 0, False)]
)
def test_a_zombie_is_a_process_no_more(state: str, threads: int, seen: bool, tmp_path: Path) -> None:
    folder = tmp_path / "426"
    folder.mkdir()
    (folder / "status").write_text("NSpid:\t426\n")
    (folder / "cgroup").write_text("0::/\n")
    (folder / "stat").write_text(f"426 (a) b) {state} {'0 ' * 16}{threads} 0 99 0\n")
    assert [row.start for row in read_processes(tmp_path).all] == ([99] if seen else [])


def test_regions_are_found_by_pod_and_container(tmp_path: Path) -> None:
    folder = tmp_path / f"{POD}_trainer"
    folder.mkdir()
    (folder / "x.cache").write_bytes(bytes_of("one-8g-50"))
    (folder / "x.cache.core").write_bytes(core_bytes())
    (folder / "y.cache").write_bytes(b"short")
    (tmp_path / "link").symlink_to(folder)
    found = read_regions(tmp_path).need()
    assert [(one.pod, one.container, one.region.known, one.core.known) for one in found] == [
        (POD, "trainer", True, True),
        (POD, "trainer", False, False),
    ]
    assert read_regions(tmp_path / "none").absent
