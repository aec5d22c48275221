"""Many processes: killed at random points, fifty at once, the region as a monitor reads it, programs without CUDA."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

from bench import HERE, MIB, Bench, Card, Row, fault, parse, size, verdict
from overhead import interval

sys.path.insert(0, str(HERE.parent / "tests"))
import region  # the tests' reader: the fixed offsets, nothing of the library

NEAR = 4 * MIB


def churn(env: dict[str, str], *words: object) -> subprocess.Popen[str]:
    command = [sys.executable, str(HERE / "churn.py"), *map(str, words)]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def room(bench: Bench, env: dict[str, str]) -> Row:
    """What a fresh process can take."""
    rows, wrong = bench.run("exact", "alloc", 16 * MIB, env=env)
    return {**(rows[0] if rows else {}), **wrong}


def monitored(bench: Bench, card: Card) -> tuple[Row, list[Row]]:
    """Two processes hold known amounts; the region is read beside them, and after one of them is killed."""
    env, path = bench.environment("monitored", bench.limit), bench.region("monitored")
    holders = [churn(env, 60, "hold", count * MIB) for count in (512, 1024)]
    states = [process.stdout.readline().strip() if process.stdout else "" for process in holders]
    time.sleep(1.5)
    real, read = card.used(), region.read(path)
    shown = {process.pid: process.total[0] for process in read.processes if process.total[0]}
    holders[0].kill()
    holders[0].wait()
    room(bench, env)
    after = {process.pid: process.total[0] for process in region.read(path).processes if process.total[0]}
    after_real = card.used()
    holders[1].kill()
    holders[1].wait()
    pids = [process.pid for process in holders]
    row: Row = {
        "states": states,
        "limit": read.limit[0],
        "pids": pids,
        "region": shown,
        "card": {p: real.get(p) for p in pids},
    }
    row |= {"region_after_kill": after, "card_after_kill": {p: after_real.get(p) for p in pids}}
    running = set(shown) == set(pids) and all(abs(shown[p] - real.get(p, 0)) <= NEAR for p in pids)
    killed = set(after) == {pids[1]} and abs(after[pids[1]] - after_real.get(pids[1], 0)) <= NEAR
    figures = " and ".join(f"{shown.get(p, 0) >> 20}/{real.get(p, 0) >> 20}" for p in pids)
    return row, [
        verdict(
            "upstream's reader at the fixed offsets: limit and use are right while running (region/card)",
            running and read.magic == region.MAGIC and read.limit[0] == size(bench.limit),
            f"{figures} MiB",
        ),
        verdict("the same after SIGKILL: the dead process is gone, the other as before", killed, f"{len(after)} left"),
    ]


def kills(bench: Bench, count: int) -> tuple[Row, list[Row]]:
    """Allocators killed at random points, four at once; then a fresh process must have the whole room again."""
    env, draw = bench.environment("kills", "4g"), random.Random(4)
    before, rounds, hung = room(bench, env), [], 0
    for _ in range(0, count, 4):
        running = [churn(env, 30) for _ in range(4)]
        ends = sorted((time.monotonic() + draw.uniform(0.2, 2.0), process) for process in running)
        for at, process in ends:
            time.sleep(max(0.0, at - time.monotonic()))
            process.kill()
            process.wait()
        rounds.append(room(bench, env))
    same = [row.get("taken") == before.get("taken") and row.get("refused_with") == 2 for row in rounds]
    # Between the kills a process must neither hang nor be refused wrongly.
    last = churn(env, 1)
    try:
        out, err = last.communicate(timeout=30)
        survivor = {**(parse(out) or [{}])[-1], **fault(last.returncode, err)}
    except subprocess.TimeoutExpired:
        last.kill()
        hung, survivor = 1, {}
    figures = f"{sum(same)} of {len(same)} rounds of 4 kills with {before.get('taken')} x 16 MiB free again"
    row = {"before": before, "rounds": rounds, "afterwards": survivor}
    holds = all(same) and before.get("refused_with") == 2 and not hung and not survivor.get("rc")
    return row, [verdict(f"{4 * len(same)} SIGKILLs at random points: nothing is left, nothing hangs", holds, figures)]


def crowd(bench: Bench, card: Card, count: int, limit: str, seconds: float) -> tuple[Row, list[Row]]:
    """Many processes started at once under one limit; the card is watched from outside meanwhile."""
    env = bench.environment("crowd", limit)
    before, start = room(bench, env), time.monotonic()
    running = [churn(env, seconds) for _ in range(count)]
    samples: list[dict[int, int]] = []
    while any(process.poll() is None for process in running) and time.monotonic() < start + seconds + 45:
        samples.append(card.used())
        time.sleep(0.1)
    ended = []
    for process in running:
        hung = process.poll() is None
        if hung:
            process.kill()
        out, err = process.communicate()
        ended.append({**(parse(out) or [{}])[-1], **fault(process.returncode, err), **({"hung": True} if hung else {})})
    after = room(bench, env)
    bad = [row for row in ended if row.get("rc") or row.get("hung")]
    # A context that does not fit exists until it is undone: its size is known only then.
    within = {process.pid for process, row in zip(running, ended, strict=True) if not row.get("context")}
    most = max(sum(used for pid, used in sample.items() if pid in within) for sample in samples)
    most_together = max(sum(pid in within for pid in sample) for sample in samples)
    row: Row = {"processes": count, "limit": limit, "most_used_mib": most >> 20, "most_together": most_together}
    row |= {"bad": bad, "samples": len(samples)}
    row |= {"seconds": round(time.monotonic() - start, 1), "before": before, "after": after}
    row |= {name: sum(r.get(name, 0) for r in ended) for name in ("taken", "refused")}
    row["no_context"] = sum(bool(r.get("context")) for r in ended)
    holds = (
        not bad and most <= size(limit) and before.get("taken") == after.get("taken") and after.get("refused_with") == 2
    )
    figures = (
        f"{most_together} with contexts at once, {row['taken']} allocations, {row['refused']} refused, most on the card"
    )
    figures += f" {row['most_used_mib']} MiB, {len(bad)} ended badly, {row['no_context']} had no room for a context"
    return row, [
        verdict(f"{count} processes at once under {limit}: no hang, all that ran within the limit", holds, figures)
    ]


def idle(bench: Bench, runs: int) -> tuple[Row, list[Row]]:
    """How much longer a program without CUDA takes, in pairs, and whether it makes the region."""
    plain = dict(os.environ)
    envs = {"plain": plain, "shim": bench.environment("idle", bench.limit, CUDA_DEVICE_SM_LIMIT="50")}
    took: dict[str, list[float]] = {"plain": [], "shim": []}
    true = next(p for p in ("/bin/true", "/usr/bin/true") if Path(p).exists())
    for run in range(runs):
        for mode in list(envs)[:: 1 if run % 2 else -1]:
            start = time.perf_counter()
            os.waitpid(os.posix_spawn(true, [true], envs[mode]), 0)
            took[mode].append((time.perf_counter() - start) * 1000)
    middle, low, high = interval_ms = interval([b - a for a, b in zip(took["plain"], took["shim"], strict=True)], 4)
    made = bench.region("idle").exists()
    row: Row = {
        "runs": runs,
        "added_ms": interval_ms,
        "plain_ms": round(sorted(took["plain"])[runs // 2], 4),
        "region_made": made,
    }
    figures = f"{middle} ms [{low}, {high}] more than {row['plain_ms']} ms, {runs} pairs"
    return row, [verdict("a program without CUDA: less than 1 ms, no region made", high < 1 and not made, figures)]


def processes(bench: Bench, count: int, crowd_limit: str, runs: int) -> Row:
    card = Card()
    parts = {
        "idle": lambda: idle(bench, runs),
        "monitored": lambda: monitored(bench, card),
        "kills": lambda: kills(bench, 20),
        "crowd": lambda: crowd(bench, card, count, crowd_limit, 5),
    }
    result: Row = {"verdicts": []}
    for name, part in parts.items():
        result[name], verdicts = part()
        result["verdicts"] += verdicts
    return result
