#!/usr/bin/env python3
"""Hold the figures of core.py against the promises of the core limit; a table in Markdown.

    python3 shim/bench/summary.py FILE...                     the table, then every cell of the grid
    python3 shim/bench/summary.py FILE... --readme README.md  the table in place of the one between README's markers

FILE is a core.jsonl; of a cell that is in several, the last counts. Why a promise is missed says reasons.json beside
the last file, `{"promise": "reason"}`, with the names that --reasons lists. Ends with 1 when a file is not there.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core import KERNELS, LIMITS, known, plan

Row = dict[str, Any]
BEGIN, END = "<!-- core limit: begin -->", "<!-- core limit: end -->"


@dataclass(frozen=True)
class Figure:
    """One thing that was measured. off: the greater, the worse. what: tells it from the others of its promise."""

    what: str
    off: float
    text: str
    held: bool


Judge = Callable[[str, Row, dict[str, Row]], Iterator[Figure]]


@dataclass(frozen=True)
class Promise:
    """cells: how their names begin. judge: the figures of one of them, from its name, its row and all rows."""

    name: str
    about: str
    goal: str
    cells: tuple[str, ...]
    judge: Judge


def length(us: float) -> str:
    return f"{us / 1000:g} ms" if us >= 1000 else f"{us:g} µs"


def place(cell: str) -> str:
    """What a cell's name says of its kernels and limits."""
    kind, us, *limit = cell.split("/")[1:]
    kind = f"[{kind.replace('-', ' ')}] of" if kind[0].isdigit() else kind
    words = [*([kind] if kind != "dense" else []), length(float(us)), *(f"at {limit[0]}" for _ in limit[:1])]
    return " ".join(words)


def signed(value: float) -> str:
    text = f"{value:+.2f}".replace("-", "−")
    return "0.00" if text in ("+0.00", "−0.00") else text


def share_within(points: float, key: str = "share") -> Judge:
    def judge(cell: str, row: Row, rows: dict[str, Row]) -> Iterator[Figure]:
        if row.get(key) is not None:
            off = row[key] - row["limit"]
            yield Figure(place(cell), abs(off), signed(off), abs(off) <= points)

    return judge


def steady(cell: str, row: Row, rows: dict[str, Row]) -> Iterator[Figure]:
    if int(cell.split("/")[2]) <= 1000:
        yield Figure(place(cell), row["cv"], f"{row['cv']:.3f}", 0 <= row["cv"] <= 0.02)


def halves(cell: str, row: Row, rows: dict[str, Row]) -> Iterator[Figure]:
    limit = row["limits"][0]
    off = row["sum"] - limit
    of_half = [share / (limit / len(row["shares"])) for share in row["shares"]]
    parts = ", ".join(f"{part:.2f}" for part in of_half)
    held = abs(off) <= 0.5 and all(0.8 <= part <= 1.25 for part in of_half)
    yield Figure(place(cell), abs(off), f"{signed(off)}, {parts} of its half", held)


def each_within(points: float) -> Judge:
    def judge(cell: str, row: Row, rows: dict[str, Row]) -> Iterator[Figure]:
        off = max((share - limit for share, limit in zip(row["shares"], row["limits"], strict=True)), key=abs)
        yield Figure(place(cell), abs(off), signed(off), abs(off) <= points)

    return judge


def sum_of(percent: float) -> Judge:
    def judge(cell: str, row: Row, rows: dict[str, Row]) -> Iterator[Figure]:
        yield Figure(place(cell), -row["sum"], f"{row['sum']:.1f} %", row["sum"] >= percent)

    return judge


def cap_beside_foreign(cell: str, row: Row, rows: dict[str, Row]) -> Iterator[Figure]:
    ours, theirs = row["shares"]
    yield Figure(place(cell), ours, f"{ours:.1f}, the other {theirs:.1f}", ours <= row["limits"][0] + 0.5)


def rest_given(cell: str, row: Row, rows: dict[str, Row]) -> Iterator[Figure]:
    held = row["sum"] >= 97.5 and all(s >= limit - 2 for s, limit in zip(row["shares"], row["limits"], strict=True))
    shares = " and ".join(f"{share:.1f}" for share in row["shares"])
    yield Figure(place(cell), -row["sum"], f"{shares}, sum {row['sum']:.1f} %", held)


def latency(cell: str, row: Row, rows: dict[str, Row]) -> Iterator[Figure]:
    goal = 1.0 if cell.endswith("x20") else 3.5
    count, _, us = cell.split("/")[1].partition("x")
    yield Figure(
        f"{count} of {length(float(us))}", row["p99_ms"] / goal, f"{row['p99_ms']:.2f} ms", row["p99_ms"] <= goal
    )


def settling(cell: str, row: Row, rows: dict[str, Row]) -> Iterator[Figure]:
    us = float(cell.split("/")[1])
    for limit in (20, 80):
        goal = 200 if us <= 1000 else 2 * us / 1e3 / (limit / 100)
        took = row[f"to_{limit}"]["settled_ms"]
        yield Figure(f"{length(us)} to {limit}", took / goal, f"{took:g} ms of {goal:g}", took <= goal)


def slowed(cell: str, row: Row, rows: dict[str, Row]) -> Iterator[Figure]:
    middle, low, high = row["slowed_percent"]
    kind, us, limit = cell.split("/")[1:]
    text = f"{signed(middle)} % [{signed(low)}, {signed(high)}]"
    yield Figure(f"{kind} {length(float(us))} at {limit}", middle, text, middle < 3)


def added_percent(cell: str, row: Row, rows: dict[str, Row]) -> Iterator[Figure]:
    for name, key in (("launch", "percent"), ("launch_20us_queue_full", "percent_of_sums")):
        middle, low, high = row[name][key]
        what = "queue full of 20 µs kernels" if "queue" in name else "launch"
        yield Figure(what, high, f"{signed(middle)} % [{signed(low)}, {signed(high)}]", high <= 1)


def added_ns(most: float) -> Judge:
    def judge(cell: str, row: Row, rows: dict[str, Row]) -> Iterator[Figure]:
        middle, low, high = row["launch"]["difference_ns"]
        yield Figure("launch", middle, f"{middle / 1e3:.2f} µs [{low / 1e3:.2f}, {high / 1e3:.2f}]", middle <= most)

    return judge


def not_busy(cell: str, row: Row, rows: dict[str, Row]) -> Iterator[Figure]:
    yield Figure(place(cell), row["cpu"], f"{row['cpu'] * 100:.1f} % of a CPU", row["cpu"] <= 0.05)


def torch_time(cell: str, row: Row, rows: dict[str, Row]) -> Iterator[Figure]:
    free = rows.get("torch/unlimited", {}).get("workloads", {})
    for name, each in row["workloads"].items():
        if each.get("time_share") is None:
            yield Figure(f"{name} at {row['limit']}", 100, "not traced", False)
            continue
        off = each["time_share"] - row["limit"]
        alone = free.get(name, {})
        speed = each["steps_per_second"] / alone["steps_per_second"] * 100 if alone else None
        beside = f" (speed {speed:.1f} %)" if speed else ""
        wanted = (alone.get("time_share") or 100) >= row["limit"] + 2
        held = abs(off) <= 2 if wanted else off <= 2
        yield Figure(f"{name} at {row['limit']}", abs(off) if wanted else max(off, 0), f"{signed(off)}{beside}", held)


def torch_steps(cell: str, row: Row, rows: dict[str, Row]) -> Iterator[Figure]:
    for name, each in row["workloads"].items():
        ratio = each["p99_ms"] / each["median_ms"]
        yield Figure(f"{name} at {row['limit']}", ratio, f"{ratio:.2f}", ratio <= 3)


def makespan(cell: str, row: Row, rows: dict[str, Row]) -> Iterator[Figure]:
    one, together = row["one_after_another"], row["together"]
    spans = f"{one['makespan_s']:.1f} s → {together['makespan_s']:.1f} s"
    used = f"card in use {one['utilisation'] * 100:.0f} → {together['utilisation'] * 100:.0f} %"
    ratio = together["makespan_s"] / one["makespan_s"]
    yield Figure("jobs", ratio, f"{spans}, {used}", ratio < 1)


def filled(cell: str, row: Row, rows: dict[str, Row]) -> Iterator[Figure]:
    off = row["share"] - row["limit"]
    missing = row["memory_mib"] - row["filled_mib"]
    text = f"{signed(off)}; {row['filled_mib']:,} of {row['memory_mib']:,} MiB taken"
    yield Figure(place(cell), abs(off), text, abs(off) <= 0.3 and 0 <= missing <= 2048)


DENSE, DENSE_HELD = ("one/dense/",), ("one/dense/1000/20", "one/dense/10000/20")
TORCH = ("torch/20", "torch/50", "torch/80")
PROMISES = (
    Promise("share", "one process, dense kernels of 5 µs to 100 ms, limits 5 to 95", "± 0.3", DENSE, share_within(0.3)),
    Promise("cv", "the same up to 1 ms: variation of 100 ms windows", "≤ 0.02", DENSE, steady),
    Promise("graphs", "graphs of 10 and 1,000 nodes", "± 0.5", ("one/graph",), share_within(0.5)),
    Promise("coop", "cooperative launches", "± 0.5", ("one/coop",), share_within(0.5)),
    Promise("pdl", "launches with programmatic dependence", "± 0.5", ("one/pdl",), share_within(0.5)),
    Promise("sync", "a wait after each kernel", "± 0.5", ("one/sync",), share_within(0.5)),
    Promise("streams-time", "four streams: time", "± 0.5", ("one/streams",), share_within(0.5, "time")),
    Promise("streams", "four streams: throughput", "± 2", ("one/streams",), share_within(2)),
    Promise("processes", "two processes in one container", "± 0.5, 0.8 to 1.25 of half", ("processes/",), halves),
    Promise("memory-too", "10 % of the cores with 20 % of the memory, filled", "± 0.3", ("memory-too/",), filled),
    Promise("live", "80 → 20 → 80 while running: until within 3 points", "200 ms, or 2 kernels", ("live/",), settling),
    Promise("torch", "PyTorch, six programs, limits 20, 50, 80: time", "± 2", TORCH, torch_time),
    Promise("torch-steps", "the same: p99 step over the median", "≤ 3", TORCH, torch_steps),
    Promise("containers", "containers [50 50] [30 70] [10 20 30 40]: each", "± 2", ("containers/",), each_within(2)),
    Promise("sum", "the same: sum of a program alone", "≥ 97.5 %", ("containers/",), sum_of(97.5)),
    Promise("overload", "with twice as many busy processes as CPUs: sum", "≥ 94 %", ("overload/",), sum_of(94)),
    Promise("foreign", "limit 50 beside a program without the library", "≤ 50", ("foreign/",), cap_beside_foreign),
    Promise("idle-force", "[10 20] and nobody else, `force`: each", "± 2", ("idle-force/",), each_within(2)),
    Promise("idle-default", "[10 20] and nobody else, `default`: sum", "≥ 97.5 %", ("idle-default/",), rest_given),
    Promise(
        "light",
        "a 20 µs kernel every 10 ms beside dense ones: p99",
        "≤ 1 ms; 3.5 ms beside 20 ms",
        ("light/",),
        latency,
    ),
    Promise("sharing", "4 jobs busy a quarter of the time, one by one → in 4 vGPUs", "sooner", ("sharing/",), makespan),
    Promise("unhindered", "bound by the host, under its limit: slowed by", "< 3 %", ("unhindered/",), slowed),
    Promise("no-limit", "no limit: a launch", "≤ +1 %", ("cost/no-limit",), added_percent),
    Promise("cpu", "CPU that the limiter adds to a launch", "≤ 0.3 µs", ("cost/limit",), added_ns(300)),
    Promise(
        "cpu-two", "the same with another container on the card", "≤ 0.6 µs", ("cost/two-containers",), added_ns(600)
    ),
    Promise("waiting", "CPU used while held back, limit 20", "≤ 5 %", DENSE_HELD, not_busy),
)


def judged(promise: Promise, rows: dict[str, Row]) -> tuple[list[Figure], list[str]]:
    """Its figures, and the cells that failed or are not measured."""
    wanted = [name for name in plan() if name.startswith(promise.cells)]
    there = [name for name in wanted if name in rows and "failed" not in rows[name]]
    figures = [figure for name in there for figure in promise.judge(name, rows[name], rows)]
    return figures, [name for name in wanted if name not in there]


def line(promise: Promise, rows: dict[str, Row], reasons: dict[str, str]) -> str:
    """A row of the table: the worst figure if all hold, else each that does not."""
    figures, missing = judged(promise, rows)
    if not figures:
        return f"| {promise.about} | {promise.goal} | not measured |"
    broken = sorted((figure for figure in figures if not figure.held), key=lambda figure: -figure.off)
    worst = max(figures, key=lambda figure: figure.off)
    of_all = f"{len(figures)} figures" if len(figures) > 1 else worst.what
    if broken:
        each = "; ".join(f"{figure.what}: {figure.text}" for figure in broken[:6])
        more = f"; and {len(broken) - 6} more" if len(broken) > 6 else ""
        found = f"**{len(broken)} of {len(figures)} miss**: {each}{more}"
        found += f". {reasons[promise.name]}" if promise.name in reasons else ""
    else:
        found = f"{worst.text} ({worst.what}, the worst of {of_all})" if len(figures) > 1 else worst.text
    found += f"; {len(missing)} of its cells not measured" if missing else ""
    return f"| {promise.about} | {promise.goal} | {found} |"


def table(rows: dict[str, Row], reasons: dict[str, str]) -> str:
    return "\n".join(["| | goal | measured |", "|---|---|---|", *(line(each, rows, reasons) for each in PROMISES)])


def grid(rows: dict[str, Row]) -> str:
    """Error in points and variation of 100 ms windows of each dense cell."""
    lines = ["| kernel | " + " | ".join(f"limit {limit}" for limit in LIMITS) + " |", "|---" * (len(LIMITS) + 1) + "|"]
    for us in KERNELS:
        cells = [rows.get(f"one/dense/{us}/{limit}", {}) for limit in LIMITS]
        texts = [f"{signed(row['share'] - row['limit'])} / {row['cv']:.3f}" if "share" in row else "" for row in cells]
        lines.append(f"| {length(us)} | " + " | ".join(texts) + " |")
    return "\n".join(lines)


def all_figures(rows: dict[str, Row]) -> str:
    lines = []
    for promise in PROMISES:
        lines.append(f"\n**{promise.about}**: {promise.goal}\n")
        figures, missing = judged(promise, rows)
        lines += [f"* {figure.what}: {figure.text}{'' if figure.held else ', **a miss**'}" for figure in figures]
        lines += [f"* {name} failed: {rows[name]['failed']}" for name in missing if name in rows]
        lines += [f"* not measured: {', '.join(unknown)}"] if (unknown := [n for n in missing if n not in rows]) else []
    return "\n".join(lines)


def libraries(rows: dict[str, Row]) -> str:
    """Which builds were measured: a table of several has one line for each."""
    builds = Counter(row.get("library", "unknown") for row in rows.values())
    return "\n".join(f"library {build}: {count} cells" for build, count in builds.items())


def put(path: Path, text: str) -> None:
    """Replaces what lies between the markers."""
    before, found, rest = path.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not found or not end:
        raise SystemExit(f"{path} has no lines `{BEGIN}` and `{END}`")
    path.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--readme", type=Path, help="the file whose table is replaced")
    parser.add_argument("--reasons", action="store_true", help="name the promises and end")
    options = parser.parse_args()
    if options.reasons:
        print("\n".join(f"{promise.name:14} {promise.about}" for promise in PROMISES))
        return 0
    rows: dict[str, Row] = {}
    for file in options.files:
        if not file.exists():
            print(f"{file} does not exist", file=sys.stderr)
            return 1
        rows |= known(file)
    beside = options.files[-1].with_name("reasons.json") if options.files else Path("reasons.json")
    reasons = json.loads(beside.read_text()) if beside.exists() else {}
    if options.readme:
        put(options.readme, table(rows, reasons))
    else:
        print(table(rows, reasons), grid(rows), all_figures(rows), libraries(rows), sep="\n\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
