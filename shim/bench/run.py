#!/usr/bin/env python3
"""Measure the shim on a real GPU; only the standard library is needed.

    python3 shim/bench/run.py exact --limit 4g [--library PATH] [--programs DIR] [--out FILE]
    python3 shim/bench/run.py overhead [--pairs 12] [--seconds 0.4] ...

Each run writes one JSON file, shim/bench/results/<date>-<name>.json unless --out says otherwise: the command, the
machine, the figures. Overheads come from one interleaved run: plain, under the shim without a limit, under the shim
with a memory limit, again and again; the ratio to plain is taken pair by pair, so that slow drifts fall out,
and its 95 % confidence interval by bootstrap over the pairs.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ARCH = platform.machine()
MIB = 1 << 20
APIS = ("alloc", "managed", "pitch", "array", "vmm", "async")
STEPS = (MIB, 2 * MIB + 1, 64 * MIB)


def environment(library: Path, region: Path, limit: str | None) -> dict[str, str]:
    """The environment of a vGPU container with that memory limit, without one if None."""
    env = dict(os.environ, LD_PRELOAD=str(library), CUDA_DEVICE_MEMORY_SHARED_CACHE=str(region), LIBCUDA_LOG_LEVEL="0")
    if limit:
        env["CUDA_DEVICE_MEMORY_LIMIT"] = limit
    return env


def run_json(command: list[str], env: dict[str, str] | None = None) -> dict[str, Any]:
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=False)
    try:
        result: dict[str, Any] = json.loads(done.stdout)
    except json.JSONDecodeError:
        result = {"failed": done.returncode, "stderr": done.stderr[-500:], "command": command}
    return result


def exact(options: argparse.Namespace) -> dict[str, Any]:
    """Fill the card through each allocation call up to the limit, by one process, then by two at once."""
    program = str(options.programs / "exact")
    with tempfile.TemporaryDirectory() as directory:
        env = environment(options.library, Path(directory) / "exact.cache", options.limit)
        rows = [run_json([program, api, str(step)], env) for api in APIS for step in STEPS]
        both = [
            subprocess.Popen([program, "alloc", str(8 * MIB)], env=env, stdout=subprocess.PIPE, text=True)
            for _ in range(2)
        ]
        together = [json.loads(p.communicate(timeout=300)[0] or "{}") for p in both]
    for row in rows:
        if "taken" in row:
            row["taken_mib"] = round(row["taken"] * row["step"] / MIB, 2)
            row["context_mib"] = round((row["total"] - row["free_before"]) / MIB, 2)
            row["missing_mib"] = round(row["free_before"] / MIB - row["taken_mib"], 2)
    return {"limit": options.limit, "rows": rows, "two_at_once": together}


def interval(ratios: list[float]) -> list[float]:
    """Median and 95 % confidence interval of the overhead in percent."""
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(2000))
    points = (statistics.median(ratios), medians[50], medians[1949])
    return [round((point - 1) * 100, 2) for point in points]


def overhead(options: argparse.Namespace) -> dict[str, Any]:
    program = [str(options.programs / "overhead"), str(options.seconds)]
    runs: dict[str, list[dict[str, Any]]] = {"plain": [], "shim_no_limit": [], "shim_memory_limit": []}
    with tempfile.TemporaryDirectory() as directory:
        modes = {
            "plain": None,
            "shim_no_limit": environment(options.library, Path(directory) / "free.cache", None),
            "shim_memory_limit": environment(options.library, Path(directory) / "limited.cache", options.limit),
        }
        for pair in range(options.pairs):
            order = list(modes)
            random.Random(pair).shuffle(order)
            for mode in order:
                runs[mode].append(run_json(program, modes[mode]))
    summary = {}
    for measure in runs["plain"][0]:
        plain = [run.get(measure) for run in runs["plain"]]
        row: dict[str, Any] = {"plain_ns": round(statistics.median(x for x in plain if x), 1)}
        for mode in ("shim_no_limit", "shim_memory_limit"):
            with_shim = [run.get(measure) for run in runs[mode]]
            ratios = [b / a for a, b in zip(plain, with_shim, strict=True) if a and b]
            row[f"{mode}_ns"] = round(statistics.median(x for x in with_shim if x), 1)
            row[f"{mode}_percent"] = interval(ratios)
        summary[measure] = row
    return {
        "limit": options.limit,
        "pairs": options.pairs,
        "seconds": options.seconds,
        "summary": summary,
        "runs": runs,
    }


def machine() -> dict[str, str]:
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    try:
        gpu = subprocess.run(query, capture_output=True, text=True, timeout=60, check=False).stdout.strip()
    except OSError as error:
        gpu = str(error)
    return {"gpu": gpu, "machine": ARCH, "kernel": platform.release(), "python": platform.python_version()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("exact", "overhead"))
    parser.add_argument("--limit", default="8g", help="memory limit (default 8g)")
    parser.add_argument("--pairs", type=int, default=12, help="interleaved repetitions of overhead")
    parser.add_argument("--seconds", type=float, default=0.4, help="seconds per measure and repetition")
    parser.add_argument("--library", type=Path, default=HERE.parent / "build" / ARCH / "libvgpu.so")
    parser.add_argument("--programs", type=Path, default=HERE.parent / "build" / ARCH / "bench")
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    options.library, options.programs = options.library.resolve(), options.programs.resolve()
    started = time.time()
    result = exact(options) if options.what == "exact" else overhead(options)
    stamp = time.strftime("%Y-%m-%d", time.gmtime(started))
    name = f"{options.what}-{options.limit}"
    out = options.out or HERE / "results" / f"{stamp}-{name}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    head = {"command": sys.argv, "date": stamp, "took_seconds": round(time.time() - started, 1), "machine": machine()}
    out.write_text(json.dumps({**head, **result}, indent=1) + "\n")
    print(out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
