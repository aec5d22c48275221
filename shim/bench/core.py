#!/usr/bin/env python3
"""Measure the core limit on a real GPU; only the standard library is needed.

    python3 shim/bench/core.py [--only NAME...] [--budget SECONDS] [--out FILE] [--library PATH]

Every cell of the plan is one line in the results file. Cells that are there already are not measured again, so a long
plan can be measured in several runs. A cell whose program failed is noted with its error and measured again next time.
All cells run under policy force but where `default` is in the name. summary.py holds the figures against the promises.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cells
from tenant import NO_LIMIT, Bench, Row

HERE = Path(__file__).resolve().parent
ARCH = platform.machine()
LOCKS = Path("/tmp/vgpulock")
KERNELS = (5, 20, 100, 1000, 10000, 100000)
LIMITS = (5, 10, 20, 50, 80, 95)
SPLITS = ((50, 50), (30, 70), (10, 20, 30, 40))
LAUNCHES = ("launch", "launch_20us_queue_full")

Cell = Callable[[Bench], Row]


def plan() -> dict[str, Cell]:
    """Every cell by name, in order of importance."""
    found: dict[str, Cell] = {}

    def add(name: str, work: Callable[..., Row], *words: Any, **named: Any) -> None:
        found.setdefault(name, lambda bench: work(bench, *words, **named))

    def dense(us: int, limit: int) -> None:
        add(f"one/dense/{us}/{limit}", cells.one, "dense", us, limit)

    def split(group: str, limits: tuple[int, ...], us: int, **named: Any) -> None:
        add(f"{group}/{'-'.join(map(str, limits))}/{us}", cells.containers, us, limits, **named)

    for us in (20, 1000, 10000):
        dense(us, 50)
    for us in (1000, 20, 20000):
        for limits in SPLITS:
            split("containers", limits, us)
    for limit in (None, 50, 20, 80):
        add(f"torch/{limit or 'unlimited'}", cells.torch, limit)
    for count, us in ((1, 20), (3, 20), (1, 20000)):
        add(f"light/{count}x{us}", cells.light, us, count)
    split("overload", (50, 50), 20, overload=True)
    split("overload", (10, 20, 30, 40), 1000, overload=True)
    split("idle-force", (10, 20), 1000)
    split("idle-default", (10, 20), 1000, policy="default")
    for us in (20, 1000):
        add(f"foreign/dense/{us}/50", cells.foreign, us, 50)
        add(f"live/{us}", cells.live, us)
        add(f"processes/dense/{us}/50", cells.processes, us, 50, 2)
    for kind, us in (
        ("streams:4", 1000),
        ("streams:4", 20),
        ("streams:4:33", 1000),
        ("graph:10", 20),
        ("graph:1000", 20),
    ):
        add(f"one/{kind}/{us}/50", cells.one, kind, us, 50)
    for kind, us, limit in (("coop", 20, 50), ("pdl", 20, 50), ("sync", 100, 25)):
        add(f"one/{kind}/{us}/{limit}", cells.one, kind, us, limit)
    add("unhindered/host:20/5/50", cells.unhindered, "host:20", 5, 50)
    add("unhindered/sync/5/80", cells.unhindered, "sync", 5, 80)
    add("unhindered/sync/100/95", cells.unhindered, "sync", 100, 95)
    add("cost/no-limit", cells.cost, NO_LIMIT, LAUNCHES)
    add("cost/limit", cells.cost, 90, LAUNCHES[:1], cpu=True)
    add("cost/two-containers", cells.cost, 90, LAUNCHES[:1], cpu=True, second=True)
    add("sharing/4", cells.sharing, 4, 5)
    add("memory-too/dense/20/10", cells.memory_too, 20, 10)
    for us in KERNELS:
        for limit in (20, 80, 50, 5, 95, 10):
            dense(us, limit)
    add("live/100000", cells.live, 100000)
    for us in (20, 1000):
        split("overload", (10, 20, 30, 40) if us == 20 else (50, 50), us, overload=True)
    add("light/3x20000", cells.light, 20000, 3)
    for kind in ("graph:10", "graph:1000", "streams:4", "coop"):
        for limit in (20, 80):
            add(f"one/{kind}/20/{limit}", cells.one, kind, 20, limit)
    for repeat in (2, 3):
        for us in (20, 1000, 10000):
            for limit in (20, 50, 80):
                add(f"one/dense/{us}/{limit}/{repeat}", cells.one, "dense", us, limit)
    return found


def known(path: Path) -> dict[str, Row]:
    """The last line of each cell."""
    found: dict[str, Row] = {}
    with contextlib.suppress(OSError):
        for line in path.read_text().splitlines():
            with contextlib.suppress(json.JSONDecodeError):  # a run that was cut off
                row = json.loads(line)
                found[row["cell"]] = row
    return found


def chosen(only: list[str]) -> Iterator[tuple[str, Cell]]:
    for name, work in plan().items():
        if not only or any(name.startswith(prefix) for prefix in only):
            yield name, work


def short(row: Row) -> str:
    """One line for a person."""
    if "failed" in row:
        return f"FAILED {row['failed']}"
    if "workloads" in row:
        text = "{time_share} % of time, {steps_per_second}/s, median {median_ms} p99 {p99_ms} ms"
        return "".join(f"\n    {name:12} {text.format(**each)}" for name, each in row["workloads"].items())
    left_out = (
        "cell",
        "at",
        "took",
        "library",
        "rows",
        "core",
        "began_s",
        "ended_s",
        "shares" if "to_20" in row else "",
    )
    return " ".join(f"{key}={json.dumps(value)}" for key, value in row.items() if key not in left_out)


def make_locks() -> None:
    """Where the containers of one card meet."""
    with contextlib.suppress(OSError):
        LOCKS.mkdir()
        LOCKS.chmod(0o1777)


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
    make_locks()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    done = {name for name, row in known(options.out).items() if "failed" not in row}
    began, failed = time.monotonic(), 0
    library = hashlib.sha256(options.library.read_bytes()).hexdigest()[:12]
    bench = Bench(options.library.resolve(), options.programs.resolve(), Path(os.devnull))
    for name, work in chosen(options.only):
        if name in done:
            continue
        if time.monotonic() - began > options.budget:
            print("the budget is used up; run again for the rest")
            break
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as directory:
            bench.directory = Path(directory)
            try:
                row = work(bench)
            except Exception as error:  # one cell is no reason to lose the others
                row = {"failed": f"{type(error).__name__}: {error}"[:500]}
                failed += 1
        row = {
            "cell": name,
            "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "took": round(time.monotonic() - start, 1),
            "library": library,
            **row,
        }
        with options.out.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(f"{name:32} {short(row)}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
