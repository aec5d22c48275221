#!/usr/bin/env python3
"""Measure the core limit on a real GPU; only the standard library is needed.

    python3 shim/bench/core.py [--only NAME...] [--budget SECONDS] [--out FILE] [--library PATH]

Every cell of the plan is one line in the results file. Cells that are there already are not measured again, so a long
plan can be measured in several runs. A cell whose program failed is noted with its error and measured again next time.
All cells run under policy force; shares are percent of what the same kernels reach on the same stream without a limit.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ARCH = platform.machine()
START_SECONDS = 5.0  # until all processes of a cell stand ready

Row = dict[str, Any]


@dataclass(frozen=True)
class Bench:
    library: Path
    programs: Path
    directory: Path

    def environment(self, name: str, limit: int, memory: str | None = None) -> dict[str, str]:
        """What a container of that name has: its region, its limits, the shim."""
        env = dict(
            os.environ,
            LD_PRELOAD=":".join(filter(None, (str(self.library), os.environ.get("LD_PRELOAD", "")))),
            CUDA_DEVICE_MEMORY_SHARED_CACHE=str(self.directory / f"{name}.cache"),
            CUDA_DEVICE_SM_LIMIT=str(limit),
            GPU_CORE_UTILIZATION_POLICY="force",
            LIBCUDA_LOG_LEVEL="0",
        )
        if memory:
            env["CUDA_DEVICE_MEMORY_LIMIT"] = memory
        return env

    def start(self, program: str, *words: object, env: dict[str, str] | None = None) -> subprocess.Popen[str]:
        command = [str(self.programs / program), *map(str, words)]
        return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str], timeout: float = 150) -> list[Row]:
    """The lines of JSON that a program printed."""
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise RuntimeError(f"not done after {timeout} s: {err[-300:]}") from None
    if process.returncode:
        raise RuntimeError(f"ended with {process.returncode}: {err[-300:]}")
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")]


def seconds_of(microseconds: float, limit: int) -> float:
    """How long a cell lasts: 20 kernels at least."""
    return min(max(20 * microseconds * 1e-6 / (limit / 100), 4), 40)


def core_state(region: Path) -> Row:
    """What the library says of itself in <region>.core."""
    data = region.with_name(region.name + ".core").read_bytes()
    number = lambda offset: int.from_bytes(data[4096 + offset : 4104 + offset], "little")  # noqa: E731
    names = {
        "core_limit": 112,
        "busy_ns": 264,
        "throttled_ns": 272,
        "waits": 280,
        "launches": 288,
        "share_1s": 320,
        "share_60s": 328,
    }
    return {name: number(offset) for name, offset in names.items()}


def one(bench: Bench, kind: str, microseconds: float, limit: int, memory: str | None = None) -> Row:
    """One process, one cell."""
    cell = f"{kind},{microseconds:g},{limit},{seconds_of(microseconds, limit):g}"
    (row,) = finish(bench.start("share", cell, env=bench.environment("one", limit, memory)))
    return {**row, "error": round(row["share"] - limit, 3), "core": core_state(bench.directory / "one.cache")}


def live(bench: Bench, microseconds: float) -> Row:
    """80, then 20, then 80 in one process: what each second got."""
    words = [f"dense,{microseconds:g},{limit},4" for limit in (80, 20, 80)]
    rows = finish(bench.start("share", *words, env=bench.environment("live", 80)))
    return {"shares": [row["share"] for row in rows], "error": max((r["share"] - r["limit"] for r in rows), key=abs)}


def unhindered(bench: Bench, kind: str, microseconds: float, limit: int) -> Row:
    """A host-bound program: its speed with a limit that it does not reach over its speed without one."""
    ratios, rows = [], []
    for _ in range(3):
        words = [f"{kind},{microseconds:g},{percent},1.5" for percent in (100, limit)]
        free, held = finish(bench.start("share", *words, env=bench.environment("unhindered", limit)))
        rows += [free, held]
        ratios.append((held["kernels"] / held["span_s"]) / (free["kernels"] / free["span_s"]))
    return {
        "slowed_percent": round((1 - statistics.median(ratios)) * 100, 2),
        "ratios": ratios,
        "share": rows[-1]["share"],
    }


def together(bench: Bench, microseconds: float, limits: list[int], kinds: list[str], containers: bool) -> Row:
    """Several processes at once, in a container each or all in one. Limits are those of the containers."""
    solo_us = microseconds
    (solo,) = finish(bench.start("share", f"dense,{solo_us:g},100,1", env=bench.environment("solo", 100)))
    count = max(len(limits), len(kinds))
    seconds = max(seconds_of(microseconds, min(limits)), 5)
    start = time.clock_gettime_ns(time.CLOCK_MONOTONIC) + int(START_SECONDS * 1e9)
    given = ("--iterations", solo["iterations"], "--period", solo["solo_us"] * 1000, "--at", start)
    running = []
    for i in range(count):
        limit, kind = limits[i % len(limits)], kinds[i % len(kinds)]
        env = bench.environment(f"tenant{i if containers else ''}", limit)
        running.append(bench.start("share", *given, f"{kind},{microseconds:g},{limit},{seconds:g}", env=env))
    rows = [finish(process)[0] for process in running]
    shares = [row["share"] for row in rows]
    return {"limits": limits, "shares": shares, "sum": round(sum(shares), 3), "solo_us": solo["solo_us"], "rows": rows}


def launch_cost(bench: Bench, pairs: int) -> Row:
    """ns of a launch: plain, under the shim without a limit, with a limit that is not reached; ratios pair by pair."""
    modes = {"plain": None, "no_limit": bench.environment("cost100", 100), "limit_90": bench.environment("cost90", 90)}
    found: dict[str, list[float]] = {mode: [] for mode in modes}
    for pair in range(pairs):
        order = list(modes)
        random.Random(pair).shuffle(order)
        for mode in order:
            found[mode].append(finish(bench.start("overhead", 0.4, "launch", env=modes[mode]))[0]["launch"])
    row: Row = {"ns": {mode: round(statistics.median(values), 1) for mode, values in found.items()}}
    draw = random.Random(1)
    for mode in ("no_limit", "limit_90"):
        extra = [a - b for a, b in zip(found[mode], found["plain"], strict=True)]
        medians = sorted(statistics.median(draw.choices(extra, k=pairs)) for _ in range(2000))
        row[f"{mode}_extra_ns"] = [round(x, 1) for x in (statistics.median(extra), medians[50], medians[1949])]
    return row


TORCH = ("train", "train-graph", "infer", "infer-graph", "gemm", "copy")


def torch_share(bench: Bench, limit: int | None) -> Row:
    """PyTorch under a limit, or without the shim: steps per second, their times, the share of time by the profiler."""
    env = bench.environment("torch", limit) if limit else None
    command = [sys.executable, str(HERE / "torch_share.py"), "--seconds", "3" if limit else "1.5", *TORCH]
    started = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return {"limit": limit, "workloads": {row["workload"]: row for row in finish(started, 240)}}


KINDS = (
    ("graph:10", 20, 50),
    ("graph:1000", 20, 50),
    ("streams:4", 20, 50),
    ("streams:4", 1000, 50),
    ("streams:4:33", 1000, 50),
    ("coop", 20, 50),
    ("pdl", 20, 50),
    ("sync", 100, 25),
)


def plan() -> dict[str, Callable[[Bench], Row]]:
    """Every cell by name, the first subset before the rest."""
    cells: dict[str, Callable[[Bench], Row]] = {}

    def add(name: str, work: Callable[..., Row], *words: Any) -> None:
        cells[name] = lambda bench: work(bench, *words)

    for us, limits in ((20, (50, 20, 80)), (1000, (50, 20, 80)), (10000, (50, 20, 80)), (100, (50,))):
        for limit in limits:
            add(f"one/dense/{us}/{limit}", one, "dense", us, limit)
    add("cost", launch_cost, 8)
    for kind, us, limit in KINDS:
        add(f"one/{kind}/{us}/{limit}", one, kind, us, limit)
    for us in (20, 1000):
        add(f"processes/2/{us}/50", together, us, [50], ["dense", "dense"], False)
    add("unhindered/host:20/5/50", unhindered, "host:20", 5, 50)
    add("unhindered/sync/100/95", unhindered, "sync", 100, 95)
    add("live/20", live, 20)
    add("containers/50-50/1000", together, 1000, [50, 50], ["dense"], True)
    add("containers/10-20-30-40/1000", together, 1000, [10, 20, 30, 40], ["dense"], True)
    add("one/dense/100000/50", one, "dense", 100000, 50)
    for limit in (None, 50, 20, 80):
        add(f"torch/{limit or 'unlimited'}", torch_share, limit)
    for us in (5, 20, 100, 1000, 10000, 100000):
        for limit in (5, 10, 20, 50, 80, 95):
            if f"one/dense/{us}/{limit}" not in cells:
                add(f"one/dense/{us}/{limit}", one, "dense", us, limit)
    for repeat in (2, 3):
        for us in (20, 1000, 10000):
            for limit in (20, 50, 80):
                add(f"one/dense/{us}/{limit}/{repeat}", one, "dense", us, limit)
    for kind in ("graph:10", "graph:1000", "streams:4", "coop", "pdl"):
        for limit in (20, 80):
            add(f"one/{kind}/20/{limit}", one, kind, 20, limit)
    add("one/memory-20-percent/20/10", one, "dense", 20, 10, "28g")
    add("live/1000", live, 1000)
    for us in (20, 1000, 20000):
        for limits in ([50, 50], [30, 70], [10, 20, 30, 40]):
            add(f"containers/{'-'.join(map(str, limits))}/{us}", together, us, limits, ["dense"], True)
    return cells


def known(path: Path) -> dict[str, Row]:
    found: dict[str, Row] = {}
    with contextlib.suppress(OSError):
        for line in path.read_text().splitlines():
            with contextlib.suppress(json.JSONDecodeError):  # a run that was cut off
                row = json.loads(line)
                found[row["cell"]] = row
    return found


def chosen(only: list[str]) -> Iterator[tuple[str, Callable[[Bench], Row]]]:
    for name, work in plan().items():
        if not only or any(name.startswith(prefix) for prefix in only):
            yield name, work


def short(row: Row) -> str:
    """One line for a person."""
    if "failed" in row:
        return f"FAILED {row['failed']}"
    if "shares" in row and "sum" in row:
        return f"shares {row['shares']} sum {row['sum']}"
    if "workloads" in row:
        text = "{time_share} % of time, {steps_per_second}/s, median {median_ms} p99 {p99_ms} ms"
        return "".join(f"\n    {name:12} {text.format(**each)}" for name, each in row["workloads"].items())
    if "kind" in row:
        text = "share {share} error {error:+} time {time} cv {cv} solo {solo_us} us, {kernels} kernels"
        return text.format(**row)
    return json.dumps({key: value for key, value in row.items() if key not in ("cell", "at", "took")})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[], help="cells whose names begin so")
    parser.add_argument("--list", action="store_true", help="name the cells and end")
    parser.add_argument("--budget", type=float, default=520, help="begin no cell after so many seconds")
    parser.add_argument("--library", type=Path, default=HERE.parent / "build" / ARCH / "libvgpu.so")
    parser.add_argument("--programs", type=Path, default=HERE.parent / "build" / ARCH / "bench")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "core.jsonl")
    options = parser.parse_args()
    if options.list:
        print("\n".join(name for name, _ in chosen(options.only)))
        return 0
    options.out.parent.mkdir(parents=True, exist_ok=True)
    done = {name for name, row in known(options.out).items() if "failed" not in row}
    began, failed = time.monotonic(), 0
    for name, work in chosen(options.only):
        if name in done:
            continue
        if time.monotonic() - began > options.budget:
            print("the budget is used up; run again for the rest")
            break
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as directory:
            bench = Bench(options.library.resolve(), options.programs.resolve(), Path(directory))
            try:
                row = work(bench)
            except (RuntimeError, OSError, ValueError, ZeroDivisionError) as error:
                row = {"failed": str(error)[:500]}
                failed += 1
        row = {
            "cell": name,
            "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "took": round(time.monotonic() - start, 1),
            **row,
        }
        with options.out.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(f"{name:32} {short(row)}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
