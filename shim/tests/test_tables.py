"""Every entry point of the driver is hooked or on the list of those passed on with a reason."""

from __future__ import annotations

import re

import pytest
from machine import SHIM, library
from tables import DATA, entry_points, rows

HOOKS = SHIM / "hooks" / "hooks.def"


def hooked() -> dict[str, str]:
    """Symbol to what is done to it."""
    text = HOOKS.read_text()
    return dict(re.findall(r'^HOOK\(\w+, (\w+), .*, "([^"]+)"\)$', text, re.MULTILINE))


def passed_on() -> dict[str, str]:
    return {row[0]: row[1] for row in rows(SHIM / "hooks" / "pass.tsv")}


@pytest.mark.parametrize("table", ["cuda", "nvml"])
def test_every_entry_point_is_decided(table: str) -> None:
    decided = hooked().keys() | passed_on().keys()
    assert sorted(set(entry_points(table)) - decided) == []


def test_every_decision_is_about_an_entry_point() -> None:
    known = set(entry_points("cuda")) | set(entry_points("nvml"))
    own = {"dlsym", "dlvsym", "dlopen", "vgpu_task_done"}
    assert sorted((hooked().keys() | passed_on().keys()) - known - own) == []


def test_nothing_is_both_hooked_and_passed_on() -> None:
    assert sorted(hooked().keys() & passed_on().keys()) == []


def test_every_decision_has_a_reason() -> None:
    for symbol, reason in {**hooked(), **passed_on()}.items():
        assert len(reason) >= 4, symbol


MUST = ("ACCOUNT", "RELEASE", "CLAMP", "FILTER", "CHARGE", "REWRITE", "HOOK:")


@pytest.mark.parametrize("table", ["cuda", "nvml"])
def test_what_takes_gives_shows_or_runs_is_hooked(table: str) -> None:
    """The tables say of each entry point what an interposer has to do; those that must act are not passed on."""
    missing = []
    for row in rows(DATA / f"{table}.tsv"):
        symbol, note = row[1], re.sub(r"^\[[^]]*\] ", "", row[5])
        if note.startswith(MUST) and symbol not in hooked():
            missing.append(f"{symbol}: {passed_on().get(symbol, '-')}: {note[:70]}")
    assert missing == []


def test_hooks_of_a_twin_come_in_pairs() -> None:
    """A hooked call whose _ptsz or _ptds twin exists is hooked in both forms."""
    known = set(entry_points("cuda"))
    for symbol in hooked():
        for suffix in ("_ptsz", "_ptds"):
            if symbol + suffix in known:
                assert symbol + suffix in hooked(), symbol + suffix


def test_the_library_exports_exactly_the_hooks() -> None:
    import subprocess

    text = subprocess.run(["nm", "-D", "--defined-only", library()], capture_output=True, text=True, check=True).stdout
    exported = {line.split()[-1].split("@")[0] for line in text.splitlines()}
    cuda = {name for name in exported if name.startswith(("cu", "nvml"))}
    assert cuda == set(hooked()) - {"dlsym", "dlvsym", "dlopen", "vgpu_task_done"}
