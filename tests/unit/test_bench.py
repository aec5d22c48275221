"""The bench: what is asked of it, what a share is, what people and machines see."""

from __future__ import annotations

import json
from collections.abc import Callable

import jsonschema
import pytest
import yaml

from vgpuctl import resources
from vgpuctl.model.bench import (
    LimitBench,
    SharingBench,
    arrangement,
    cell_seconds,
    kernel_list,
    limit_list,
    share_cell,
)
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.render.forms import render
from vgpuctl.render.terminal import Terminal
from vgpuctl.tasks import run

PLAIN = Terminal(width=100)
ABOUT = {"source": "node-1", "card": "NVIDIA H200", "uuid": "GPU-1"}


@pytest.mark.parametrize(
    ("text", "found"), [("20us,1ms", (20e-6, 1e-3)), ("5µs", (5e-6,)), ("0.5ms, 1s", (0.5e-3, 1.0)), ("100us", (1e-4,))]
)
def test_lengths_of_kernels_have_units(text: str, found: tuple[float, ...]) -> None:
    assert kernel_list(text) == pytest.approx(found)


@pytest.mark.parametrize("text", ["", "20", "us", "1 h", "2s", "0us", "-1ms", "1ms,,2ms", "1msms", "nan ms", "1e9us"])
def test_what_is_no_length_is_named(text: str) -> None:
    with pytest.raises(ValueError, match=r"kernel|empty place"):
        kernel_list(text)


@pytest.mark.parametrize("text", ["", "0", "100", "x", "20,", "-5", "5.5", "²"])
def test_what_is_no_limit_is_named(text: str) -> None:
    with pytest.raises(ValueError, match=r"limit|empty place"):
        limit_list(text)


def test_limits_are_percents() -> None:
    assert limit_list("5, 95") == (5, 95)


@pytest.mark.parametrize(
    ("least", "kernel", "limit", "lasts"), [(4, 20e-6, 50, 4), (4, 0.1, 20, 10), (4, 0.1, 1, 40), (60, 0.1, 1, 60)]
)
def test_a_cell_has_room_for_twenty_kernels_but_does_not_last_for_ever(
    least: float, kernel: float, limit: int, lasts: float
) -> None:
    assert cell_seconds(least, kernel, limit) == pytest.approx(lasts)


@pytest.mark.parametrize(
    ("periods", "kernels", "share", "held"),
    [
        ((1e-3,), 2000, 0.5, True),
        ((1e-3,), 2012, 0.503, True),
        ((1e-3,), 1986, 0.4965, False),
        ((9e-4, 1.1e-3), 2000, 0.5, True),
    ],
)
def test_a_share_is_of_the_speed_without_a_limit(
    periods: tuple[float, ...], kernels: int, share: float, held: bool
) -> None:
    cell = share_cell(1e-3, 50, periods, kernels, 4.0, 0.003)
    assert (cell.share, cell.held) == (pytest.approx(share), held)


def test_utilisation_is_work_over_makespan() -> None:
    found = arrangement("at once", [(10, 14), (11, 15), (10.5, 12)], 4.0)
    assert (found.makespan, found.utilisation, found.jobs) == (5, 0.8, (4, 4, 1.5))


def limit_bench(simulated: bool = False) -> LimitBench:
    cells = (
        share_cell(20e-6, 50, (21.5e-6, 21.5e-6), 93069, 3.999, 0.003),
        share_cell(1e-3, 20, (1.0015e-3,), 799, 4.004, 0.003),
        share_cell(0.5, 5, (0.5,), 20, 250.0, 0.003),
    )
    return LimitBench(**ABOUT, simulated=simulated, cells=cells)


def sharing_bench() -> SharingBench:
    return SharingBench(
        **ABOUT,
        simulated=False,
        busy=0.25,
        arrangements=(
            arrangement("one after another", [(0, 4), (4, 8), (8, 12), (12, 16)], 4.0),
            arrangement("4 vGPUs with 25 cores each, at once", [(0, 4.4), (0, 4.6), (0, 4.8), (0, 5)], 4.0),
        ),
    )


@pytest.mark.parametrize(
    ("name", "form", "output"),
    [
        ("limits.txt", "table", limit_bench()),
        ("limits-simulated.txt", "table", limit_bench(simulated=True)),
        ("limits.json", "json", limit_bench()),
        ("limits.csv", "csv", limit_bench()),
        ("sharing.txt", "table", sharing_bench()),
        ("sharing.json", "json", sharing_bench()),
        ("sharing.csv", "csv", sharing_bench()),
    ],
)
def test_what_is_shown(
    golden: Callable[[str, str], None], name: str, form: str, output: LimitBench | SharingBench
) -> None:
    golden(f"bench/{name}", render(output, form, PLAIN))


@pytest.mark.parametrize("output", [limit_bench(), sharing_bench()])
def test_json_and_yaml_keep_to_the_schema(output: LimitBench | SharingBench) -> None:
    schema = json.loads(resources.text(f"schemas/{type(output).__name__}.schema.json"))
    jsonschema.validate(json.loads(render(output, "json", PLAIN)), schema)
    jsonschema.validate(yaml.safe_load(render(output, "yaml", PLAIN)), schema)


def test_an_installation_without_the_load_program_says_how_to_get_it() -> None:
    with pytest.raises(Problem) as told:
        run.part("shim/build/none/bench/share", "the load program")
    assert told.value.exit_code is Exit.UNKNOWN
    assert "make shim" in told.value.remedy
