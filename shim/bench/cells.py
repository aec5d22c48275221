"""How each kind of cell is measured. Shares are percent of what the same kernels reach alone, without a limit."""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tenant import NO_LIMIT, Alone, Bench, Load, Row, spinners, tenants

FORGOTTEN = 3  # seconds until the program of the cell before is not taken for a tenant of the card any more
TORCH = ("train", "train-graph", "infer", "infer-graph", "gemm", "copy")


def seconds_of(microseconds: float, limit: int) -> float:
    """How long a cell lasts: 20 kernels at least."""
    return min(max(20 * microseconds * 1e-6 / (limit / 100), 4), 40)


def unit_us(load: Load) -> float:
    """What the card takes as one: a kernel, or a whole graph."""
    return load.us * int(load.kind.split(":")[1]) if load.kind.startswith("graph") else load.us


def figures(row: Row, before: Alone, after: Alone) -> Row:
    """A run's answer with its share, and its share of time where the card stamps its kernels."""
    period, busy = (before.period + after.period) / 2, (before.busy + after.busy) / 2
    share = row["kernels"] * period / row["span_s"] * 100
    timed = row["busy_s"] / row["span_s"] / busy * 100 if row["busy_s"] and busy else None
    return {
        "share": round(share, 3),
        "time": timed and round(timed, 3),
        "alone_us": [round(alone.period * 1e6, 3) for alone in (before, after)],
        **row,
    }


def one(bench: Bench, kind: str, us: float, limit: int) -> Row:
    """One process under a limit."""
    load = Load(kind, us, limit, "one")
    with tenants(bench, [load]) as (tenant,):
        before = tenant.alone()
        tenant.begin(seconds_of(unit_us(load), limit))
        row = tenant.finish()
        after = tenant.alone()
        return {"limit": limit, **figures(row, before, after), "core": tenant.published()}


def memory_too(bench: Bench, us: float, limit: int) -> Row:
    """A fifth of the card's memory, filled, with the limit of cores."""
    query = ["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits", "--id=0"]
    mib = int(subprocess.run(query, capture_output=True, text=True, timeout=60, check=True).stdout) // 5
    with tenants(bench, [Load("dense", us, limit, "one")], memory=f"{mib}m", fill_mib=2 * mib) as (tenant,):
        before = tenant.alone()
        tenant.begin(seconds_of(us, limit))
        found = figures(tenant.finish(), before, tenant.alone())
        return {"limit": limit, "memory_mib": mib, "filled_mib": tenant.ready()["filled_mib"], **found}


def together(
    bench: Bench, loads: Sequence[Load], policy: str = "force", seconds: float = 0, overload: bool = False
) -> Row:
    """Several programs at once. What each reaches alone is taken one after another, before and after."""
    seconds = seconds or max(seconds_of(unit_us(load), load.limit) for load in loads)
    with tenants(bench, loads, policy) as all_:
        counted = [tenant for tenant in all_ if tenant.load.kind != "light"]
        for tenant in all_:
            tenant.iterations()
        before = [tenant.alone() for tenant in counted]
        cpus = len(os.sched_getaffinity(0))
        with spinners(2 * cpus if overload else 0, seconds + 30):
            at = time.monotonic() + 0.3
            for tenant in all_:
                tenant.begin(seconds, at)
            rows = {tenant: tenant.finish() for tenant in all_}
        after = [tenant.alone() for tenant in counted]
        found = [figures(rows[tenant], a, b) for tenant, a, b in zip(counted, before, after, strict=True)]
        lights = [rows[tenant] for tenant in all_ if tenant not in counted]
        shares = [row["share"] for row in found]
        row: Row = {"limits": [tenant.load.limit for tenant in counted], "shares": shares, "sum": round(sum(shares), 3)}
        if lights:
            row |= {name: lights[0][name] for name in ("p50_ms", "p99_ms", "latencies")}
        return {**row, "rows": found}


def containers(bench: Bench, us: float, limits: Sequence[int], policy: str = "force", overload: bool = False) -> Row:
    """A dense program in each of some containers."""
    loads = [Load("dense", us, limit, f"container{i}") for i, limit in enumerate(limits)]
    seconds = max(5.0 if us <= 1000 else 8.0, seconds_of(us, min(limits)))
    return together(bench, loads, policy, seconds, overload)


def processes(bench: Bench, us: float, limit: int, count: int) -> Row:
    """Dense programs in one container."""
    return together(bench, [Load("dense", us, limit, "one")] * count, seconds=5)


def foreign(bench: Bench, us: float, limit: int) -> Row:
    """A container beside a program without the library."""
    return together(bench, [Load("dense", us, limit, "one"), Load("dense", us, NO_LIMIT, "")], seconds=5)


def light(bench: Bench, us: float, count: int) -> Row:
    """One small kernel every 10 ms under limit 10, beside dense containers that have the rest."""
    dense = [Load("dense", us, 90 // count, f"container{i}") for i in range(count)]
    return together(bench, [*dense, Load("light", 20, 10, "light")], seconds=8)


def live(bench: Bench, us: float) -> Row:
    """80, then 20, then 80: how long after each change the share is within 3 points of the new one, twice in a row.

    In windows of 50 ms, or of one kernel at the new limit where that is longer. off_later: windows after that that are
    further off."""
    every = max(3.0, 12 * us * 1e-6 / 0.2)
    load = Load("dense", us, 80, "live")
    with tenants(bench, [load]) as (tenant,):
        alone = tenant.alone()
        tenant.begin(3 * every)
        changes = []
        time.sleep(every)
        for limit in (20, 80):
            tenant.set_limit(limit)
            changes.append((limit, time.monotonic()))
            time.sleep(every)
        tenant.finish()
        row: Row = {}
        for limit, at in changes:
            window = max(50.0, us / 1e3 / (limit / 100))
            count = int((every - 0.2) * 1e3 / window)
            got = tenant.windows(at, window / 1e3, count)
            shares = [round(share / (alone.busy or 1), 2) for share in got]
            off = [abs(share - limit) > 3 for share in shares]
            settled = next((i for i in range(len(off) - 1) if not (off[i] or off[i + 1])), len(off))
            row[f"to_{limit}"] = {
                "settled_ms": window * settled,
                "window_ms": window,
                "off_later": sum(off[settled:]),
                "shares": shares[:20],
            }
        return row


def sharing(bench: Bench, count: int, seconds: float) -> Row:
    """Jobs that are each busy a quarter of the time: one after another, then at once in a vGPU each, policy default."""
    loads = [Load("job:25:75", 1000, NO_LIMIT // count, f"container{i}") for i in range(count)]
    with tenants(bench, loads, "default") as jobs:
        period = jobs[0].alone().period
        alone = []
        for job in jobs:
            job.begin(seconds, limit=NO_LIMIT)
            alone.append(job.finish())
        at = time.monotonic() + 0.3
        for job in jobs:
            job.begin(seconds, at)
        together = [job.finish() for job in jobs]
    row: Row = {}
    for name, runs in (("one_after_another", alone), ("together", together)):
        makespan = max(run["ended_s"] for run in runs) - min(run["began_s"] for run in runs)
        busy = sum(run["kernels"] for run in runs) * period / makespan
        row[name] = {
            "makespan_s": round(makespan, 3),
            "utilisation": round(busy, 4),
            "jobs_s": [run["span_s"] for run in runs],
        }
    return row


def interval(values: list[float], digits: int = 2) -> list[float]:
    """The median and its 95 % interval by bootstrap."""
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(values, k=len(values))) for _ in range(2000))
    return [round(value, digits) for value in (statistics.median(values), medians[50], medians[1949])]


def unhindered(bench: Bench, kind: str, us: float, limit: int, pairs: int = 8) -> Row:
    """A program bound by the host: its speed under a limit that it does not reach over that without, pair by pair."""
    with tenants(bench, [Load(kind, us, limit, "one")]) as (tenant,):
        slowed = []
        for pair in range(pairs):
            speed = {}
            for percent in (NO_LIMIT, limit)[:: 1 if pair % 2 else -1]:
                tenant.begin(0.7, limit=percent)
                row = tenant.finish()
                speed[percent] = row["kernels"] / row["span_s"]
            slowed.append((1 - speed[limit] / speed[NO_LIMIT]) * 100)
        return {"limit": limit, "slowed_percent": interval(slowed), "pairs": pairs}


def cost(bench: Bench, limit: int, measures: Sequence[str], cpu: bool = False, second: bool = False) -> Row:
    """What a launch costs more than the driver's own, in one process; second: beside another container's program."""
    time.sleep(FORGOTTEN)
    env = bench.environment("cost", limit)
    if limit == NO_LIMIT:
        del env["CUDA_DEVICE_SM_LIMIT"]
    words = [*(["--cpu"] if cpu else []), *measures]
    with tenants(bench, [Load("light", 20, 10, "second")] if second else []) as others:
        for other in others:
            other.begin(20)
        rows = bench.run("cost", 3, *words, env=env)
    return {row.pop("measure"): row for row in rows}


def torch(bench: Bench, limit: int | None) -> Row:
    """PyTorch under a limit, or without the shim: steps per second, their times, the share of time by the profiler."""
    env = bench.environment("torch", limit) if limit else None
    seconds = 3 if limit else 1.5
    words = (Path(__file__).with_name("torch_share.py"), "--seconds", seconds, *TORCH)
    rows = bench.run(sys.executable, *words, env=env, timeout=240)
    return {"limit": limit, "workloads": {row.pop("workload"): row for row in rows}}
