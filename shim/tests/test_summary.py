"""The table of promises: what holds, what is missed, what is not measured, from the lines of a results file."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from machine import SHIM

sys.path.insert(0, str(SHIM / "bench"))
import core
import summary

Row = dict[str, Any]
PROMISES = {promise.name: promise for promise in summary.PROMISES}


def one(share: float, limit: int = 50, **more: object) -> Row:
    return {"limit": limit, "share": share, "time": share, "cv": 0.005, "cpu": 0.01, **more}


def several(shares: list[float], limits: list[int]) -> Row:
    return {"limits": limits, "shares": shares, "sum": round(sum(shares), 3)}


def torch(time_share: float, p99: float = 10.0, speed: float = 50.0) -> Row:
    each = {"time_share": time_share, "steps_per_second": speed, "median_ms": 5.0, "p99_ms": p99}
    return {"limit": 50, "workloads": {"train": each}}


def settled(*times: float) -> Row:
    return {f"to_{limit}": {"settled_ms": ms} for limit, ms in zip((20, 80), times, strict=True)}


def jobs(*makespans: float) -> Row:
    names = ("one_after_another", "together")
    return {name: {"makespan_s": s, "utilisation": 4 / s} for name, s in zip(names, makespans, strict=True)}


def added(percent: list[float]) -> Row:
    return {"percent": percent, "percent_of_sums": percent, "difference_ns": [value * 100 for value in percent]}


UNLIMITED = {"torch/unlimited": {**torch(97.0, speed=100.0), "limit": None}}
CASES: list[tuple[str, str, Row, bool]] = [
    ("share", "one/dense/20/50", one(50.29), True),
    ("share", "one/dense/20/50/2", one(49.6), False),
    ("cv", "one/dense/1000/50", one(50), True),
    ("cv", "one/dense/5/50", one(50, cv=0.03), False),
    ("cv", "one/dense/5/50", one(50, cv=-1.0), False),
    ("graphs", "one/graph:1000/20/50", one(50.5), True),
    ("graphs", "one/graph:10/20/50", one(50.6), False),
    ("streams-time", "one/streams:4/1000/50", one(45, time=49.6), True),
    ("streams-time", "one/streams:4/1000/50", one(50, time=48.1), False),
    ("streams", "one/streams:4/1000/50", one(47.9), False),
    ("processes", "processes/dense/20/50", several([24.8, 24.9], [50, 50]), True),
    ("processes", "processes/dense/20/50", several([40, 10], [50, 50]), False),
    ("processes", "processes/dense/20/50", several([26, 26], [50, 50]), False),
    ("memory-too", "memory-too/dense/20/10", one(10.1, 10, memory_mib=28000, filled_mib=27500), True),
    ("memory-too", "memory-too/dense/20/10", one(10.1, 10, memory_mib=28000, filled_mib=28100), False),
    ("live", "live/20", settled(150, 200), True),
    ("live", "live/1000", settled(150, 250), False),
    ("live", "live/100000", settled(1000, 250), True),
    ("live", "live/100000", settled(1000, 300), False),
    ("torch", "torch/50", torch(51.9), True),
    ("torch", "torch/50", torch(47.9), False),
    ("torch-steps", "torch/50", torch(50, p99=15.0), True),
    ("torch-steps", "torch/50", torch(50, p99=16.0), False),
    ("containers", "containers/30-70/20", several([28.5, 68.5], [30, 70]), True),
    ("containers", "containers/30-70/20", several([27.5, 69.5], [30, 70]), False),
    ("sum", "containers/30-70/20", several([28, 69.5], [30, 70]), True),
    ("sum", "containers/30-70/20", several([28, 69.4], [30, 70]), False),
    ("overload", "overload/50-50/20", several([46, 48], [50, 50]), True),
    ("foreign", "foreign/dense/20/50", several([50.4, 48], [50, 100]), True),
    ("foreign", "foreign/dense/20/50", several([50.6, 48], [50, 100]), False),
    ("idle-force", "idle-force/10-20/1000", several([10.1, 19.9], [10, 20]), True),
    ("idle-default", "idle-default/10-20/1000", several([33, 65.5], [10, 20]), True),
    ("idle-default", "idle-default/10-20/1000", several([10, 20], [10, 20]), False),
    ("light", "light/3x20", {"p99_ms": 0.99}, True),
    ("light", "light/1x20", {"p99_ms": 1.01}, False),
    ("light", "light/1x20000", {"p99_ms": 3.4}, True),
    ("sharing", "sharing/4", jobs(16, 4.6), True),
    ("sharing", "sharing/4", jobs(16, 16.5), False),
    ("unhindered", "unhindered/host:20/5/50", {"slowed_percent": [2.9, 2.5, 3.3]}, True),
    ("unhindered", "unhindered/sync/100/95", {"slowed_percent": [3.1, 2.8, 3.3]}, False),
    ("no-limit", "cost/no-limit", {name: added([0.5, 0.3, 0.9]) for name in core.LAUNCHES}, True),
    ("no-limit", "cost/no-limit", {name: added([0.5, 0.3, 1.1]) for name in core.LAUNCHES}, False),
    ("cpu", "cost/limit", {"launch": added([2.9, 2, 4])}, True),
    ("cpu-two", "cost/two-containers", {"launch": added([6.1, 5, 7])}, False),
    ("waiting", "one/dense/1000/20", one(20, 20, cpu=0.04), True),
    ("waiting", "one/dense/10000/20", one(20, 20, cpu=1.0), False),
]


@pytest.mark.parametrize(("promise", "cell", "row", "held"), CASES)
def test_a_figure_is_held_against_its_promise(promise: str, cell: str, row: Row, held: bool) -> None:
    rows = {**UNLIMITED, cell: {"cell": cell, **row}}
    figures, _ = summary.judged(PROMISES[promise], rows)
    assert figures
    assert all(figure.held for figure in figures) == held
    text = summary.line(PROMISES[promise], rows, {promise: "Because."})
    assert ("miss**" in text, "Because." in text) == (not held, not held)


def test_every_promise_has_cells_and_every_cell_a_promise() -> None:
    names = set(core.plan())
    prefixes = tuple(prefix for promise in summary.PROMISES for prefix in promise.cells)
    assert {name for name in names if not name.startswith(prefixes)} == {"torch/unlimited"}
    assert [prefix for prefix in prefixes if not any(name.startswith(prefix) for name in names)] == []
    assert {promise for promise, *_ in CASES} | {"coop", "pdl", "sync"} == set(PROMISES)


def test_what_failed_or_is_left_out_is_no_success() -> None:
    text = summary.line(PROMISES["sync"], {"one/sync/100/25": {"failed": "ended with 4"}}, {})
    assert text.endswith("| not measured |")
    text = summary.line(PROMISES["containers"], {"containers/50-50/20": several([50, 50], [50, 50])}, {})
    assert "8 of its cells not measured" in text


def test_a_program_that_does_not_want_its_share_is_not_blamed() -> None:
    rows = {"torch/50": torch(40), "torch/unlimited": {**torch(41), "limit": None}}
    figures, _ = summary.judged(PROMISES["torch"], rows)
    assert [figure.held for figure in figures] == [True]


def test_the_table_in_a_readme_is_replaced_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results, readme = tmp_path / "core.jsonl", tmp_path / "README.md"
    lines = [{"cell": "one/dense/20/50", **one(49)}, {"cell": "one/dense/20/50", **one(50.1)}]
    results.write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"cell": "cut o')
    readme.write_text(f"before\n\n{summary.BEGIN}\nold\n{summary.END}\n\nafter\n")
    monkeypatch.setattr(sys, "argv", ["summary.py", str(results), "--readme", str(readme)])
    assert summary.main() == 0
    once = readme.read_text()
    assert once.startswith(f"before\n\n{summary.BEGIN}\n| |")
    assert once.endswith(f"|\n{summary.END}\n\nafter\n")
    assert "+0.10" in once  # the last line of a cell counts
    assert summary.main() == 0
    assert readme.read_text() == once
    readme.write_text("no markers")
    with pytest.raises(SystemExit, match="has no lines"):
        summary.main()


def test_the_measurements_need_nothing_outside_their_folder(tmp_path: Path) -> None:
    """shim/ alone is carried to a machine with a card, which has Python and nothing else."""
    shutil.copytree(SHIM / "bench", tmp_path / "bench", ignore=shutil.ignore_patterns("results", "__pycache__"))
    command = [sys.executable, "-I", "-S", "-c"]
    for script in ("core", "summary"):
        program = f"import sys; sys.path.insert(0, {str(tmp_path / 'bench')!r}); import {script}"
        subprocess.run([*command, program], cwd=tmp_path, check=True, capture_output=True)


def test_the_offsets_are_those_of_the_layout() -> None:
    sys.path.insert(0, str(SHIM.parent))
    import tenant

    from vgpuctl.model import region_layout as layout

    assert layout.REGION_FILE_SM_LIMIT.offset == tenant.SM_LIMIT_OFFSET
    assert layout.CORE_CARDS_OFFSET == tenant.CORE_CARDS_OFFSET
    fields = (
        layout.CORE_CARD_BUSY_TIME,
        layout.CORE_CARD_THROTTLED_TIME,
        layout.CORE_CARD_WAITS,
        layout.CORE_CARD_LAUNCHES,
        layout.CORE_CARD_SHARE_1S,
    )
    assert tuple(tenant.CORE.values()) == tuple(field.offset for field in fields)
