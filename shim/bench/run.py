#!/usr/bin/env python3
"""Measure the shim on a real GPU; only the standard library is needed.

    python3 shim/bench/run.py exact      [--limit 4g] [--together 4]     every way to allocate, filled up to the limit
    python3 shim/bench/run.py overhead   [--seconds 3] [--pairs 3]       what a call costs more
    python3 shim/bench/run.py processes  [--count 50] [--crowd 40g]      kills, crowds, the monitor's view
    python3 shim/bench/run.py view                                       nvidia-smi inside a container
    python3 shim/bench/run.py summary FILE...                            the verdicts of such files

Each run writes one JSON file, shim/bench/results/<date>-<name>.json unless --out says otherwise: the command, the
machine, the verdicts, the figures.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench import ARCH, HERE, Bench, Row, verdict
from exact import exact
from overhead import overhead
from processes import processes
from view import view

RUNS: dict[str, Callable[[Bench, argparse.Namespace], Row]] = {
    "exact": lambda bench, options: exact(bench, options.together),
    "overhead": lambda bench, options: overhead(bench, options.seconds, options.pairs),
    "processes": lambda bench, options: processes(bench, options.count, options.crowd, options.idle_runs),
    "view": lambda bench, _: view(bench),
}


def machine() -> dict[str, str]:
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    try:
        gpu = subprocess.run(query, capture_output=True, text=True, timeout=60, check=False).stdout.strip()
    except OSError as error:
        gpu = str(error)
    return {"gpu": gpu, "machine": ARCH, "kernel": platform.release(), "python": platform.python_version()}


def summary(files: list[Path]) -> int:
    """Print each verdict and what was skipped; 1 if any does not hold or a file cannot be read."""
    bad = 0
    for file in files:
        try:
            result = json.loads(file.read_text())
            verdicts = result["verdicts"]
        except (OSError, ValueError, KeyError) as error:
            result, verdicts = {}, [verdict(file.name, False, f"{type(error).__name__}: {error}")]
        for entry in verdicts:
            bad += not entry["holds"]
            print("ok  " if entry["holds"] else "FAIL", entry["shows"] + ":", entry["figures"][:200])
        for name, reason in result.get("skipped", {}).items():
            print("skip", name + ":", " ".join(reason.split())[-100:])
    return 1 if bad else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=(*RUNS, "summary"))
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--limit", default="8g", help="memory limit (default 8g)")
    parser.add_argument("--together", type=int, default=4, help="processes that fill one limit at once; 0: none")
    parser.add_argument("--pairs", type=int, default=3, help="plain and limited processes in turn, as a check")
    parser.add_argument("--seconds", type=float, default=3, help="of each measure and environment")
    parser.add_argument("--count", type=int, default=50, help="processes in the crowd")
    parser.add_argument("--crowd", default="40g", help="their common limit")
    parser.add_argument("--idle-runs", type=int, default=1000, help="pairs of a program without CUDA")
    parser.add_argument("--library", type=Path, default=HERE.parent / "build" / ARCH / "libvgpu.so")
    parser.add_argument("--programs", type=Path, default=HERE.parent / "build" / ARCH / "bench")
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    if options.what == "summary":
        return summary(options.files)
    started = time.time()
    with tempfile.TemporaryDirectory() as directory:
        bench = Bench(options.library.resolve(), options.programs.resolve(), Path(directory), options.limit)
        result = RUNS[options.what](bench, options)
    stamp = time.strftime("%Y-%m-%d", time.gmtime(started))
    out = options.out or HERE / "results" / f"{stamp}-{options.what}-{options.limit}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    head = {"command": sys.argv, "date": stamp, "took_seconds": round(time.time() - started, 1), "machine": machine()}
    out.write_text(json.dumps({**head, "limit": options.limit, **result}, indent=1) + "\n")
    print(out, f"{head['took_seconds']} s")
    return summary([out])


if __name__ == "__main__":
    sys.exit(main())
