"""What the library adds to a call: in one process against the driver's own function; between processes as a check."""

from __future__ import annotations

import random
import statistics

from bench import Bench, Row, verdict

# Measure, the environment, and the most that may be added, in percent.
GOALS = (
    ("launch", "no_limit", 1.0),
    ("launch_20us_queue_full", "no_limit", 1.0),
    ("alloc_pair", "memory_limit", 2.0),
    ("alloc_pair_2000_live", "memory_limit", 2.0),
    ("async_pair", "memory_limit", 10.0),
)


def modes(bench: Bench) -> dict[str, dict[str, str]]:
    no_region = bench.environment("none")
    del no_region["CUDA_DEVICE_MEMORY_SHARED_CACHE"]
    return {
        "no_region": no_region,
        "no_limit": bench.environment("free"),
        "memory_limit": bench.environment("limited", bench.limit),
    }


def interval(values: list[float], digits: int = 2) -> list[float]:
    """The median and its 95 % interval by bootstrap."""
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(values, k=len(values))) for _ in range(1000))
    return [round(value, digits) for value in (statistics.median(values), medians[25], medians[974])]


def between_processes(bench: Bench, pairs: int, seconds: float) -> Row:
    """Plain and limited processes in turn. What differs from process to process is not the library's: a check only."""
    found: dict[str, list[Row]] = {"plain": [], "memory_limit": []}
    for pair in range(pairs):
        for mode in list(found)[:: 1 if pair % 2 else -1]:
            env = modes(bench)[mode] if mode != "plain" else None
            rows, wrong = bench.run("overhead", seconds, env=env)
            found[mode].append({**(rows[0] if rows else {}), **wrong})
    summary: Row = {}
    for measure in ("launch", "alloc_pair", "alloc_pair_2000_live", "async_pair"):
        both = [(a[measure], b[measure]) for a, b in zip(*found.values(), strict=True) if measure in a and measure in b]
        if both:
            plain = statistics.median(a for a, _ in both)
            summary[measure] = {"plain_ns": plain, "percent": interval([(b / a - 1) * 100 for a, b in both])}
    return {"pairs": pairs, "seconds": seconds, "summary": summary, "runs": found}


def overhead(bench: Bench, seconds: float, pairs: int) -> Row:
    """cost.c in each environment (shorter where both pointers are the driver's), then the check between processes.

    A goal is reached where even the upper end of the interval is below it."""
    measured: dict[str, list[Row]] = {}
    faults: Row = {}
    for mode, env in modes(bench).items():
        measured[mode], wrong = bench.run("cost", seconds / 4 if mode == "no_region" else seconds, env=env)
        if wrong:
            faults[mode] = wrong
    pointers = [row["same_pointers"] for row in measured["no_region"]]
    verdicts = [
        verdict(
            "no region: programs get the driver's own pointers, nothing is added",
            bool(pointers) and all(pointers),
            f"{sum(pointers)} of {len(pointers)} measures with the same pointers",
        )
    ]
    for measure, mode, goal in GOALS:
        row = next((row for row in measured[mode] if row["measure"] == measure), None)
        if row is None:
            verdicts.append(verdict(f"{measure}, {mode}: at most {goal:g} % more", False, "not measured"))
            continue
        # A full queue gives room in bursts, so that only the sums say what a launch costs there.
        middle, low, high = row["percent_of_sums" if "queue" in measure else "percent"]
        figures = f"{middle:+.2f} % [{low:+.2f}, {high:+.2f}], {row['real_ns']} -> {row['hooked_ns']} ns"
        verdicts.append(verdict(f"{measure}, {mode}: at most {goal:g} % more", high <= goal, figures))
    check = between_processes(bench, pairs, seconds / 10) if pairs else {}
    return {"seconds": seconds, "verdicts": verdicts, "cost": measured, "faults": faults, "between_processes": check}
