"""The demo pool: the same for the same clock, believable, and broken in exactly the two ways that it says."""

from __future__ import annotations

import itertools

import pytest

from vgpuctl.checks.check import Options, Status
from vgpuctl.model.facts import Part
from vgpuctl.model.usage.arrange import arrange
from vgpuctl.model.usage.row import Usage
from vgpuctl.sources.demo import Demo
from vgpuctl.sources.demo.behaviour import BEHAVIOURS, noise
from vgpuctl.tasks.doctor import choose, diagnose
from vgpuctl.tasks.top import Wanted, read

CLOCK = 1_789_464_000.0


def usage(at: float) -> Usage:
    picture = read((Demo(lambda: at),), Wanted())
    return arrange(picture.holdings)


@pytest.mark.parametrize("part", sorted(Demo().parts))
def test_the_same_clock_gives_the_same_answer(part: Part) -> None:
    first, second = (Demo(lambda: CLOCK).read(part) for _ in range(2))
    assert first == second
    assert first.known


def test_usage_moves() -> None:
    first, second = (usage(CLOCK + step).totals for step in (0, 10))
    assert first.memory_used != second.memory_used


def test_it_is_the_company_that_was_ordered() -> None:
    shown = usage(CLOCK)
    models = {row.model for row in shown.rows if row.level == "card"}
    assert shown.totals.nodes == 6
    assert all(any(name in str(model) for model in models) for name in ("H100", "A100", "V100", "T4"))
    assert len({row.namespace for row in shown.rows if row.level == "vgpu"}) == 4
    assert shown.totals.pending


@pytest.mark.parametrize("hour", range(24))
def test_at_every_hour_the_figures_are_possible(hour: int) -> None:
    shown = usage(CLOCK + hour * 3600)
    for row in shown.rows:
        if row.level == "card":
            assert 0 < (row.memory_used or 0) <= (row.memory_total or 0)
            assert (row.memory_allocated or 0) <= (row.memory_total or 0), "nothing is booked twice"
        if row.level == "vgpu" and row.state != "waiting":
            assert 0 <= (row.cores_used or 0) <= 1
            assert (row.last_kernel or 0) <= shown.at
    over = [row.pod for row in shown.rows if row.level == "vgpu" and row.state == "over"]
    assert over == ["ocr-batch-0"]
    assert shown.totals.idle >= 1
    assert all(shown.at - (pod.since or 0) < 600 for pod in shown.pending), "nothing waits suspiciously long"


def test_doctor_finds_exactly_the_two_broken_things() -> None:
    choice = choose((), ())
    diagnosis = diagnose((Demo(lambda: CLOCK),), choice.checks, Options())
    found = {(o.check.id, o.result.status) for o in diagnosis.outcomes if o.result.status in (Status.FAIL, Status.WARN)}
    assert found == {("quota-prefix", Status.FAIL), ("bypass", Status.WARN)}
    assert not [outcome for outcome in diagnosis.outcomes if outcome.result.status is Status.UNKNOWN]


@pytest.mark.parametrize("name", BEHAVIOURS)
def test_behaviours_are_functions_of_time(name: str) -> None:
    uses = [BEHAVIOURS[name]("seed", CLOCK + step, 0.5) for step in range(0, 600, 7)]
    assert uses == [BEHAVIOURS[name]("seed", CLOCK + step, 0.5) for step in range(0, 600, 7)]
    assert all(0 <= use.cores <= 1 and use.memory > 0 and 0 <= use.throttled < 1 for use in uses)


def test_noise_is_smooth_and_bounded() -> None:
    walk = [noise("x", CLOCK + step / 10, 5.0) for step in range(1000)]
    assert all(0 <= value <= 1 for value in walk)
    assert max(abs(a - b) for a, b in itertools.pairwise(walk)) < 0.1
