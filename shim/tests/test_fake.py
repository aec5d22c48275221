"""The simulated driver by itself, without the shim: what it exports, what it remembers, what it refuses."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import Callable

import pytest
from machine import ABSENT, BUILD, MIB, OUT_OF_MEMORY, SHIM, Machine
from tables import entry_points, lookups, rows

FAKE = SHIM / "fake" / "data"
DRIVERS = {row[0]: int(row[2]) for row in rows(FAKE / "drivers.tsv")}
T4_MIB, T4_RESERVED, T4_CONTEXT = 15360, 399, 180


def exports(library: str, driver: str) -> set[str]:
    text = subprocess.run(
        ["nm", "-D", "--defined-only", BUILD / "fake" / driver / library], capture_output=True, text=True, check=True
    ).stdout
    return {line.split()[-1] for line in text.splitlines()}


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize(("library", "table"), [("libcuda.so.1", "cuda"), ("libnvidia-ml.so.1", "nvml")])
def test_a_driver_exports_what_existed_then(library: str, table: str, driver: str) -> None:
    expected = {symbol for symbol, first, _ in rows(FAKE / f"{table}.tsv") if int(first) <= DRIVERS[driver]}
    assert exports(library, driver) == expected
    assert expected <= set(entry_points(table))


def test_the_oldest_driver_lacks_what_came_later() -> None:
    old = exports("libcuda.so.1", "450.80.02")
    assert {"cuMemAlloc_v2", "cuMemCreate", "cuGraphLaunch"} <= old
    assert not {"cuGetProcAddress", "cuMemAllocAsync", "cuGraphAddMemAllocNode", "cuCtxCreate_v3"} & old


@pytest.mark.parametrize("driver", DRIVERS)
def test_get_proc_address_gives_exactly_the_exported_symbol(driver: str) -> None:
    cuda = ctypes.CDLL(str(BUILD / "fake" / driver / "libcuda.so.1"))
    if DRIVERS[driver] < 12000:
        pytest.skip("this driver has no cuGetProcAddress_v2")
    first = {symbol: int(version) for symbol, version, _ in rows(FAKE / "cuda.tsv")}
    for name, version, mode, symbol in lookups():
        found, status = ctypes.c_void_p(), ctypes.c_int(-1)
        flags = {"any": 0, "legacy": 1, "per-thread": 2}[mode]
        code = cuda.cuGetProcAddress_v2(
            name.encode(), ctypes.byref(found), version, ctypes.c_uint64(flags), ctypes.byref(status)
        )
        assert code == 0
        if first.get(symbol, 1 << 30) > DRIVERS[driver]:
            assert not (found.value and status.value == 0 and found.value == getattr(cuda, symbol, None))
            continue
        assert found.value == ctypes.cast(getattr(cuda, symbol), ctypes.c_void_p).value, (name, version, mode)
        assert status.value == 0


@pytest.mark.parametrize("name", ["cuMemAlloc_v2", "cuLaunchKernel_ptsz", "", "nothing"])
def test_get_proc_address_refuses_names_with_a_suffix(name: str) -> None:
    cuda = ctypes.CDLL(str(BUILD / "fake" / "libcuda.so.1"))
    found, status = ctypes.c_void_p(1), ctypes.c_int(-1)
    code = cuda.cuGetProcAddress_v2(name.encode(), ctypes.byref(found), 12000, ctypes.c_uint64(0), ctypes.byref(status))
    assert (code, found.value, status.value) == (0, None, 1)
    assert cuda.cuGetProcAddress_v2(name.encode(), ctypes.byref(found), 12000, ctypes.c_uint64(0), None) == 500


def test_what_is_not_simulated_says_so() -> None:
    cuda = ctypes.CDLL(str(BUILD / "fake" / "libcuda.so.1"))
    nvml = ctypes.CDLL(str(BUILD / "fake" / "libnvidia-ml.so.1"))
    for library, table, code in ((cuda, "cuda", 801), (nvml, "nvml", 3)):
        for symbol, first, simulated in rows(FAKE / f"{table}.tsv"):
            if simulated == "no" and int(first) <= 13000:
                assert getattr(library, symbol)() == code, symbol


def test_memory_is_counted_across_processes_and_contexts_cost(machine: Machine) -> None:
    a, b = machine.actor().start(), machine.actor().start()
    free, total = a.info()
    assert total == (T4_MIB - T4_RESERVED) * MIB
    assert free == total - 2 * T4_CONTEXT * MIB
    a.ok("take", "linear", 100 * MIB)
    b.ok("take", "linear", 10)
    assert machine.used() == {a.pid: (T4_CONTEXT + 100) * MIB, b.pid: (T4_CONTEXT + 2) * MIB}
    assert a.do("fill", "linear", 64 * MIB) == OUT_OF_MEMORY
    assert b.info()[0] < 64 * MIB


def test_nothing_is_left_of_a_killed_process(machine: Machine) -> None:
    watcher = machine.actor().start()
    before = watcher.info()
    for _ in range(5):
        actor = machine.actor().start()
        actor.ok("take", "linear", 500 * MIB)
        actor.ok("take", "async", 500 * MIB)
        assert watcher.info()[0] < before[0] - 1000 * MIB
        actor.kill()
        assert watcher.info() == before
        assert set(machine.used()) == {watcher.pid}


def test_a_child_of_fork_cannot_use_the_driver(machine: Machine) -> None:
    actor = machine.actor().start()
    actor.ok("take", "linear", 100 * MIB)
    before = machine.used()
    assert actor.ok("fork", "exit") == ["3"]
    assert machine.used() == before


def test_the_legacy_mistakes_have_the_right_codes(machine: Machine) -> None:
    actor = machine.actor()
    assert actor.do("retain", 0) == 3
    actor.ok("init")
    assert actor.do("info") == 201
    actor.ok("retain", 0)
    assert actor.do("free", 12345) == 1
    assert actor.do("take", "linear", 0) == 1
    actor.ok("reset", 0)
    assert actor.do("info") == 709


KERNEL_MS = 5


def test_kernels_take_their_time_and_processes_share_the_card(machine: Machine) -> None:
    a, b = machine.actor().start(), machine.actor().start()
    import time

    start = time.monotonic()
    for actor in (a, b):
        actor.ok("spin", KERNEL_MS * 1_000_000, 20)
    a.send("sync")
    b.send("sync")
    assert a.receive()[0] == b.receive()[0] == 0
    took = time.monotonic() - start
    assert 0.2 <= took < 0.35  # 40 kernels of 5 ms and the switches between the two


def test_captures_end_with_the_driver_s_codes(machine: Machine) -> None:
    result = machine.run(BUILD / "tests" / "capture")
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("gpus", "words"),
    [
        ("2xT4-16GB,1xP40-24GB", None),
        ("3xNOPE", "cannot read"),
        ("99xT4-16GB", "cannot read"),
        ("/no/such/file", "cannot read the file"),
    ],
)
def test_cards_are_chosen_by_the_environment(machine_of: Callable[..., Machine], gpus: str, words: str | None) -> None:
    actor = machine_of(gpus=gpus).actor()
    code = actor.do("init")
    if words is None:
        assert code == 0
        assert actor.ok("count") == ["3"]
    else:
        assert code == 100
        actor.quit()
        assert words in "".join(actor.stderr)


@pytest.mark.parametrize(("driver", "seen"), [("470.256.02", 1), ("580.159.04", 0)])
def test_a_driver_sees_only_the_cards_it_supports(machine_of: Callable[..., Machine], driver: str, seen: int) -> None:
    assert machine_of(gpus="1xK80-12GB", driver=driver).actor().do("init") == (0 if seen else 100)


def test_old_drivers_have_no_stream_ordered_memory(machine_of: Callable[..., Machine]) -> None:
    actor = machine_of(driver="450.80.02").actor().start()
    assert actor.do("take", "async", MIB) == ABSENT
    actor.ok("take", "vmm", MIB)


PYNVML = """
import pynvml as n
n.nvmlInit()
h = n.nvmlDeviceGetHandleByIndex(0)
i = n.nvmlDeviceGetMemoryInfo(h)
print(n.nvmlDeviceGetName(h), n.nvmlDeviceGetUUID(h)[:4], i.total >> 20, n.nvmlSystemGetDriverVersion(),
      [p.usedGpuMemory >> 20 for p in n.nvmlDeviceGetComputeRunningProcesses(h)], n.nvmlDeviceGetCount())
"""


def test_pynvml_works_against_it(machine: Machine) -> None:
    pytest.importorskip("pynvml")
    actor = machine.actor().start()
    actor.ok("take", "linear", 20 * MIB)
    text = machine.run(sys.executable, "-c", PYNVML).stdout
    assert text.split("\n")[0] == f"Tesla T4 GPU- {T4_MIB} 580.159.04 [{T4_CONTEXT + 20}] 1"


def test_two_machines_do_not_share_a_state(machine_of: Callable[..., Machine]) -> None:
    one = machine_of()
    one.actor().start()
    env = one.env | {"VGPUCTL_FAKE_GPUS": "4xP40-24GB"}
    other = one.actor(env=env)
    assert other.do("init") == 999
    other.quit()
    assert "belongs to another simulated machine" in "".join(other.stderr)


MIG = "1xA100-80GB:mig=1g.10gb+2g.20gb"


def test_mig_devices_have_memory_of_their_own(machine_of: Callable[..., Machine]) -> None:
    machine = machine_of(gpus=MIG)
    actor = machine.actor().start()
    assert actor.ok("count") == ["1"]
    assert actor.info()[1] == 10 * 1024 * MIB * 97 // 100 // MIB * MIB
    assert actor.do("fill", "linear", 512 * MIB) == OUT_OF_MEMORY
    pynvml = pytest.importorskip("pynvml")
    del pynvml
    text = """
import pynvml as n
n.nvmlInit()
h = n.nvmlDeviceGetHandleByIndex(0)
print(n.nvmlDeviceGetMigMode(h)[0], n.nvmlDeviceGetMaxMigDeviceCount(h))
for i in range(2):
    m = n.nvmlDeviceGetMigDeviceHandleByIndex(h, i)
    print(n.nvmlDeviceGetUUID(m)[:4], n.nvmlDeviceGetMemoryInfo(m).total >> 20, n.nvmlDeviceGetGpuInstanceId(m))
"""
    shown = machine.run(sys.executable, "-c", text).stdout
    assert shown.splitlines() == ["1 7", "MIG- 9932 1", "MIG- 19865 2"]
