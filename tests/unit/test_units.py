"""The pool's units, as its device configuration has them."""

from __future__ import annotations

import pytest

from vgpuctl.model.pool import Units, units_in
from vgpuctl.model.resource import ResourceNames


@pytest.mark.parametrize(
    ("factor", "wanted"),
    [
        ("10", 10),
        ("010", 8),
        ("10.0", 10),
        ("1_000", 1000),
        ("0", None),
        ("-3", None),
        ("true", None),
        ('"10"', None),
        ("[10]", None),
        (".inf", None),
        (".nan", None),
        ("99999999999999999999999", None),
        ("", None),
    ],
)
def test_only_a_number_that_a_loader_holds_is_a_factor(factor: str, wanted: int | None) -> None:
    assert units_in(f"nvidia:\n  gpuMemoryFactor: {factor}\n") == Units(wanted)


@pytest.mark.parametrize("text", ["", "nvidia:\n", "nvidia: []\n", "- 1\n", "\tx", "other: {gpuMemoryFactor: 3}\n"])
def test_a_text_without_units_leaves_the_usual_names(text: str) -> None:
    assert units_in(text) == Units()


def test_names_that_are_given_count() -> None:
    text = "nvidia:\n  resourceCountName: volcano.sh/gpu-slices\n  resourceCoreName: 7\n"
    assert units_in(text).names == ResourceNames(number="volcano.sh/gpu-slices")
