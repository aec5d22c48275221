"""`vgpuctl top` against a real API server: a small company, users with few rights, clusters that do not answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from . import pool
from .access import Access
from .bench import Bench

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def company(bench: Bench) -> Iterator[Bench]:
    with pool.loaded(bench, "company.yaml"):
        yield bench


def top(kubeconfig: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "vgpuctl", "top", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "KUBECONFIG": str(kubeconfig)},
    )


def rows(done: subprocess.CompletedProcess[str], level: str) -> list[dict[str, Any]]:
    return [row for row in json.loads(done.stdout)["rows"] if row["level"] == level]


def test_the_company_is_shown(company: Bench) -> None:
    done = top(company.kubeconfig, "-o", "json")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(rows(done, "card")) == 32
    vgpus = {(row["namespace"], row["pod"], row["uuid"]): row for row in rows(done, "vgpu")}
    first = vgpus["ai-research", "ablation-0", "GPU-b7c46803-ab2d-0d35-899c-27aef2ab6201"]
    assert (first["queue"], first["memoryAllocated"], first["coresAllocated"]) == ("ai-research", 3707 * 11 << 20, 0.5)
    assert first["memoryUsed"] is None
    assert "no monitor" in first["reason"]
    assert not [key for key in vgpus if key[1] == "eval-nightly"], "it has finished"
    document = json.loads(done.stdout)
    assert document["pending"]
    assert any("no monitor runs" in note for note in document["notes"])


def test_the_table_says_what_is_missing(company: Bench) -> None:
    done = top(company.kubeconfig, "--once")
    assert done.returncode == 0
    assert "32 cards" in done.stdout
    assert "note: use unknown: no monitor runs" in done.stdout


def test_labels_are_selected(company: Bench) -> None:
    done = top(company.kubeconfig, "-l", "app=ablation", "--group", "pod", "-o", "name")
    assert done.stdout.split() == [f"ai-research/ablation-{n}" for n in range(4)]


def test_a_team_user_sees_his_namespace(company: Bench, access: Access) -> None:
    user = access.namespaced("top-team", "ai-research")
    done = top(user, "-n", "ai-research", "-o", "json")
    assert done.returncode == 0
    assert {row["namespace"] for row in rows(done, "vgpu")} == {"ai-research"}
    assert {row["memoryAllocated"] for row in rows(done, "vgpu")} == {None}
    assert all(row["memoryUnits"] for row in rows(done, "vgpu"))
    notes = json.loads(done.stdout)["notes"]
    assert any(note.startswith("nodes unknown: no permission") for note in notes)
    assert any(note.startswith("memory is in raw units") for note in notes)


def test_a_team_user_who_asks_for_all_is_told_what_he_may_ask(company: Bench, access: Access) -> None:
    done = top(access.namespaced("top-all", "ai-research"))
    assert (done.returncode, done.stdout) == (3, "")
    assert "no permission to list pods" in done.stderr
    assert "-n" in done.stderr


@pytest.mark.parametrize("form", ["table", "json", "yaml", "csv", "name"])
def test_a_closed_port_is_a_clear_line_in_every_form(access: Access, form: str) -> None:
    done = top(access.closed(f"top-closed-{form}"), "-o", form)
    assert (done.returncode, done.stdout) == (3, "")
    assert "cannot reach" in done.stderr


def test_a_cluster_that_hangs_costs_the_time_limit(access: Access) -> None:
    with access.hanging("top-hanging") as kubeconfig:
        began = time.monotonic()
        done = top(kubeconfig, "--request-timeout", "2s")
        took = time.monotonic() - began
    assert (done.returncode, done.stdout) == (3, "")
    assert took < 20
