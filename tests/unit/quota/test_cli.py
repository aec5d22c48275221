"""`vgpuctl quota` where no cluster is needed, or none is meant."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.called import called

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: str) -> tuple[int, str, str]:
        return called(monkeypatch, capfd, *arguments)

    return call


@pytest.mark.parametrize("source", [("--demo",), ("--from", "x"), ("--local",)])
@pytest.mark.parametrize("arguments", [("set", "team", "5"), ("delete", "team", "--yes"), ("apply", "-f", "/dev/null")])
def test_what_changes_a_cluster_takes_no_other_source(
    run: Run, source: tuple[str, ...], arguments: tuple[str, ...]
) -> None:
    code, out, err = run(*source, "quota", *arguments)
    if arguments[0] == "apply":  # an empty file is wrong before any cluster is asked
        assert code == 1
        return
    assert (code, out) == (2, "")
    assert "this changes a live cluster" in err


def test_no_cluster_at_all(run: Run) -> None:
    code, out, err = run("quota", "set", "team", "5")
    assert (code, out) == (3, "")
    assert "no cluster is configured" in err


@pytest.mark.parametrize("form", ["table", "wide", "json", "yaml", "csv", "name"])
def test_the_demo_has_quotas(run: Run, form: str) -> None:
    code, out, err = run("quota", "list", "--demo", "-o", form)
    assert (code, err) == (0, "")
    assert out


def test_the_demos_quotas_are_plain_numbers(run: Run) -> None:
    shares = json.loads(run("quota", "list", "--demo", "-o", "json")[1])["shares"]
    assert shares
    assert all(share["hard"]["number"] is None or share["hard"]["number"] > 0 for share in shares)
