"""`vgpuctl run`: real processes under the real library, on the simulated driver."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from vgpuctl.model.region import Region
from vgpuctl.sources import runs
from vgpuctl.sources.region import read_region

ROOT = Path(__file__).resolve().parents[2]
TOOL = [sys.executable, "-m", "vgpuctl", "run"]

FILL = """
import ctypes, sys, time
cuda = ctypes.CDLL("libcuda.so.1")
cuda.cuInit(0)
count = ctypes.c_int(); cuda.cuDeviceGetCount(ctypes.byref(count))
context = ctypes.c_void_p(); cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0)
free, total = ctypes.c_size_t(), ctypes.c_size_t()
cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
pointer, taken = ctypes.c_uint64(), 0
while (code := cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(64 << 20))) == 0 and taken < 100:
    taken += 1
print(count.value, total.value >> 20, taken, code, flush=True)
time.sleep(float(sys.argv[1]) if len(sys.argv) > 1 else 0)
"""

NAME = """
import ctypes, sys, time
cuda, nvml = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL("libnvidia-ml.so.1")
cuda.cuInit(0); nvml.nvmlInit_v2()
context = ctypes.c_void_p(); assert cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == 0
name, version = ctypes.create_string_buffer(96), ctypes.create_string_buffer(96)
cuda.cuDeviceGetName(name, 96, 0); nvml.nvmlSystemGetDriverVersion(version, 96)
major, minor = ctypes.c_int(), ctypes.c_int()
cuda.cuDeviceGetAttribute(ctypes.byref(major), 75, 0); cuda.cuDeviceGetAttribute(ctypes.byref(minor), 76, 0)
print("ready", flush=True)
print(name.value.decode(), version.value.decode(), f"{major.value}.{minor.value}", flush=True)
time.sleep(60)
"""


BUSY = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
context, module, kernel = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
ptx = b".version 6.0\\n.target sm_50\\n.address_size 64\\n.visible .entry empty()\\n{\\n ret;\\n}\\n"
cuda.cuInit(0); cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0)
assert cuda.cuModuleLoadData(ctypes.byref(module), ptx) == 0
assert cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"empty") == 0
print("runs", flush=True)
while True:
    cuda.cuLaunchKernel(kernel, 200_000, 1, 1, 256, 1, 1, 0, None, None, None)
    cuda.cuCtxSynchronize()
"""


Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(place: dict[str, str]) -> Iterator[Start]:
    """Starts `vgpuctl run …` and ends what is left of it."""
    started: list[subprocess.Popen[str]] = []

    def begin(*arguments: str, **options: object) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*TOOL, *arguments],
            cwd=ROOT,
            env=place,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **options,  # type: ignore[call-overload]
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def _fill(start: Start, *limits: str) -> tuple[int, ...]:
    out, err = start(*limits, "--", sys.executable, "-c", FILL).communicate(timeout=60)
    assert out, err
    return tuple(int(word) for word in out.split())


@pytest.mark.parametrize(
    ("limits", "cards", "total"),
    [
        (("--memory", "1Gi", "--simulate", "1xT4-16GB"), 1, 1024),
        (("--memory", "2GiB", "--simulate", "2xT4-16GB"), 2, 2048),
        (("--memory", "1536Mi", "--simulate", "2xT4-16GB", "--gpu", "1"), 1, 1536),
        (("--memory", "4Gi", "--simulate", "1xP40-24GB"), 1, 4096),
        (("--memory", "25%", "--simulate", "1xT4-16GB"), 1, 3840),
    ],
)
def test_a_program_sees_and_gets_its_limit(start: Start, limits: tuple[str, ...], cards: int, total: int) -> None:
    seen, shown, taken, code = _fill(start, *limits)
    assert (seen, shown, code) == (cards, total, 2)
    assert total - 512 <= 64 * taken <= total


def test_the_program_keeps_its_exit_code_and_arguments(start: Start) -> None:
    process = start("sh", "-c", 'echo "$1"; exit 37', "sh", "--memory")
    out, _ = process.communicate(timeout=30)
    assert (process.returncode, out) == (37, "--memory\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
def test_signals_reach_the_program(start: Start, number: signal.Signals) -> None:
    process = start("--", "sh", "-c", "echo ready; exec sleep 60")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    assert process.wait(timeout=10) == -number


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--", "no-such-program"), 127, "not found"),
        (("--", "/etc/passwd"), 126, "ermission denied"),
        (("--memory", "4x", "--", "true"), 2, "is not a size"),
        (("--memory", "0", "--", "true"), 2, "would be no limit"),
        (("--cores", "101", "--", "true"), 2, "101"),
        (("--gpu", "2", "--simulate", "2xT4-16GB", "--", "true"), 125, "--gpu 2 names no card"),
        (("--gpu", "GPU-", "--simulate", "2xT4-16GB", "--", "true"), 125, "names no card"),
        (("--simulate", "nonsense", "--memory", "10%", "--", "true"), 125, "nonsense"),
        ((), 2, "Missing argument"),
    ],
)
def test_its_own_failures_have_codes_of_their_own(
    start: Start, arguments: tuple[str, ...], code: int, said: str
) -> None:
    process = start(*arguments)
    _, err = process.communicate(timeout=30)
    assert process.returncode == code
    assert said in err


def test_the_state_is_there_while_the_program_runs_and_gone_after(
    start: Start, place: dict[str, str], tmp_path: Path
) -> None:
    process = start(
        "--memory", "1Gi", "--cores", "40", "--simulate", "1xT4-16GB", "--", sys.executable, "-c", FILL, "60"
    )
    assert process.stdout is not None
    assert process.stdout.readline().split()[3] == "2"
    (run,) = runs.running(place)
    assert run.state.pid == process.pid
    assert run.state.command[0] == sys.executable
    region = read_region(run.region).need()
    assert isinstance(region, Region)
    assert (region.limits, region.cores) == ((1 << 30,), (40,))
    process.kill()
    process.wait()
    assert runs.running(place) == ()
    start("true").wait(timeout=30)
    assert not run.folder.exists()


def _hold(start: Start, simulate: str, memory: str, *program: str, gpu: str = "") -> subprocess.Popen[str]:
    """Starts a program and waits until it has filled its limit."""
    words = program or (sys.executable, "-c", FILL, "60")
    chosen = ("--gpu", gpu) if gpu else ()
    process = start("--memory", memory, "--simulate", simulate, *chosen, "--", *words)
    assert process.stdout is not None
    assert process.stdout.readline()
    return process


def _shown(place: dict[str, str], *arguments: str) -> dict[str, Any]:
    """What a command prints as JSON."""
    words = [sys.executable, "-m", "vgpuctl", *arguments, "-o", "json"]
    done = subprocess.run(words, cwd=ROOT, env=place, capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _rows(place: dict[str, str], level: str) -> list[dict[str, Any]]:
    return [row for row in _shown(place, "top", "--once", "--local")["rows"] if row["level"] == level]


def test_top_shows_what_runs(start: Start, place: dict[str, str]) -> None:
    _hold(start, "1xT4-16GB", "1Gi")
    assert [row["memoryLimit"] for row in _rows(place, "vgpu")] == [1 << 30]


@pytest.mark.parametrize(("memory", "limit"), [("1Gi", 1 << 30), ("50%", 7680 << 20)])
def test_the_card_that_gpu_names_is_the_only_one(start: Start, place: dict[str, str], memory: str, limit: int) -> None:
    """By its index and by its UUID: the region has that card alone, with the limits, and so has top."""
    _hold(start, "3xT4-16GB", memory, sys.executable, "-c", FILL, "60", gpu="1")
    cards = {row["uuid"]: row for row in _rows(place, "card")}
    assert len(cards) == 3
    (first,) = _rows(place, "vgpu")
    assert (first["memoryLimit"], first["uuid"]) == (limit, list(cards)[1])
    assert [row["uuid"] for row in cards.values() if row["memoryUsed"] > 500 << 20] == [first["uuid"]]
    _hold(start, "3xT4-16GB", memory, sys.executable, "-c", NAME, gpu=list(cards)[2])
    assert {row["uuid"] for row in _rows(place, "vgpu")} == set(list(cards)[1:])


def test_top_shows_the_simulated_card(start: Start, place: dict[str, str]) -> None:
    process = _hold(start, "1xP40-24GB", "4Gi", sys.executable, "-c", NAME)
    assert process.stdout is not None
    (card,) = _rows(place, "card")
    assert "P40" in card["model"]
    assert card["memoryTotal"] == 24576 << 20
    (vgpu,) = _rows(place, "vgpu")
    assert (vgpu["memoryLimit"], vgpu["uuid"]) == (4 << 30, card["uuid"])
    assert process.stdout.readline() == "Tesla P40 580.159.04 6.1\n"


def test_top_shows_two_programs_on_one_simulated_card(start: Start, place: dict[str, str]) -> None:
    processes = [_hold(start, "1xT4-16GB", memory) for memory in ("1Gi", "2Gi")]
    vgpus = _rows(place, "vgpu")
    assert sorted(row["memoryLimit"] for row in vgpus) == [1 << 30, 2 << 30]
    (card,) = _rows(place, "card")
    assert {row["uuid"] for row in vgpus} == {card["uuid"]}
    assert {row["pid"] for row in _rows(place, "process")} == {process.pid for process in processes}
    assert card["memoryUsed"] >= sum(row["memoryUsed"] for row in vgpus) > 2 << 30


def test_top_shows_how_much_a_core_limit_holds_back(start: Start, place: dict[str, str]) -> None:
    """Since the program began, then since the reading before; and doctor sees that the limit is in force."""
    process = start("--memory", "1Gi", "--cores", "20", "--simulate", "1xT4-16GB", "--", sys.executable, "-c", BUSY)
    assert process.stdout is not None and process.stdout.readline()
    watching = [sys.executable, "-m", "vgpuctl", "top", "--local", "-w", "-o", "json", "--interval", "1"]
    with subprocess.Popen(watching, cwd=ROOT, env=place, text=True, stdout=subprocess.PIPE) as top:
        assert top.stdout is not None
        looks = [json.loads(top.stdout.readline())["rows"] for _ in range(3)]
        top.terminate()
    shares = [row["throttled"] for rows in looks for row in rows if row["level"] == "vgpu"]
    assert len(shares) == 3
    assert all(0.05 < share <= 1 for share in shares[1:]), shares
    results = _shown({**place, "KUBECONFIG": ""}, "doctor", "--local", "--only", "limiter-armed")["results"]
    assert [result["status"] for result in results if "can be seen" in result["summary"]] == ["pass"], results


def test_doctor_looks_at_what_runs(start: Start, place: dict[str, str]) -> None:
    _hold(start, "1xT4-16GB", "1Gi")
    results = _shown({**place, "KUBECONFIG": ""}, "doctor", "--local", "--only", "shim")["results"]
    passed = {result["check"] for result in results if result["status"] == "pass"}
    assert {"region-format", "region-counters", "region-slots", "limit-held", "accounting-gap"} <= passed, results


def test_doctor_says_what_a_killed_process_leaves(start: Start, place: dict[str, str]) -> None:
    script = f'"{sys.executable}" tools/holder.py 600 & echo $!; wait; exec sleep 60'
    process = start("--memory", "1Gi", "--simulate", "1xT4-16GB", "--", "sh", "-c", script)
    assert process.stdout is not None
    child = int(process.stdout.readline())
    assert process.stdout.readline() == "holds\n"
    os.kill(child, signal.SIGKILL)
    found: list[str] = []
    for _ in range(20):  # until the kernel has ended it
        results = _shown({**place, "KUBECONFIG": ""}, "doctor", "--local", "--only", "region-slots")["results"]
        found = [result["summary"] for result in results if result["status"] == "pass"]
        if any("clears 1 slot" in summary for summary in found):
            return
    pytest.fail(f"{found}")


def test_a_place_that_others_can_write_is_refused(start: Start, place: dict[str, str]) -> None:
    (Path(place["XDG_RUNTIME_DIR"]) / "vgpuctl").mkdir()
    (Path(place["XDG_RUNTIME_DIR"]) / "vgpuctl").chmod(0o777)
    process = start("true")
    _, err = process.communicate(timeout=30)
    assert process.returncode == 125
    assert "only you can write" in err
