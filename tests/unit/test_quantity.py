"""Quantities, sizes and memory units, as the API server, people and Volcano read them."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vgpuctl.model.quantity import (
    Size,
    int32,
    integer,
    quantity,
    show_mib,
    size,
    units_for,
    units_of,
)
from vgpuctl.model.version_number import VersionNumber


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0), ("50", 50), (50, 50), ("4k", 4000), ("4Ki", 4096), ("8Gi", 8 << 30), ("8G", 8 * 10**9),
        ("2000m", 2), ("1500m", Fraction(3, 2)), (2.5, Fraction(5, 2)), (".5", Fraction(1, 2)), ("5.", 5),
        ("1e3", 1000), ("1E3", 1000), ("1e+3", 1000), ("1e-1", Fraction(1, 10)), ("1E", 10**18), ("1Ei", 1 << 60),
        ("-3", -3), ("+3", 3), ("100n", Fraction(1, 10**7)),
        ("16Ei", (1 << 63) - 1), ("-1e999", 1 - (1 << 63)), (1e22, (1 << 63) - 1),
    ],
)  # fmt: skip
def test_a_quantity_is_exact(text: object, value: Fraction | int) -> None:
    assert quantity(text).value == value


@pytest.mark.parametrize(
    "text", ["", " 1", "1 ", "8GiB", "8K", "20%", "one", "1_000", "--1", "1e", "Gi", ".", True, None]
)
def test_what_the_api_server_refuses_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="is not a Kubernetes quantity"):
        quantity(text)


@pytest.mark.parametrize(("text", "number"), [("4k", 4000), ("1500m", None), ("x", None), (None, None), ("2000m", 2)])
def test_an_extended_resource_is_a_whole_number(text: object, number: int | None) -> None:
    assert integer(text) == number


@pytest.mark.parametrize(
    ("number", "cut"),
    [
        (4 << 30, 0),
        (8 << 30, 0),
        (2 << 30, -(2**31)),
        (8 * 10**9, -589934592),
        (1 << 30, 1 << 30),
        (-1, -1),
        (3000, 3000),
    ],
)
def test_volcano_cuts_to_32_bits(number: int, cut: int) -> None:
    assert int32(number) == cut


@given(st.integers())
def test_the_cut_stays_in_range_and_keeps_what_fits(number: int) -> None:
    cut = int32(number)
    assert -(1 << 31) <= cut < 1 << 31
    assert (cut - number) % (1 << 32) == 0


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("8Gi", Size(mib=8192)), ("8GiB", Size(mib=8192)), ("8192Mi", Size(mib=8192)), ("8192 MiB", Size(mib=8192)),
        ("8gib", Size(mib=8192)), ("1.5Gi", Size(mib=1536)), ("8GB", Size(mib=7630)), ("1Ti", Size(mib=1 << 20)),
        ("20%", Size(percent=Fraction(20))), ("12.5 %", Size(percent=Fraction(25, 2))), ("2000", Size(units=2000)),
        (" 2000 ", Size(units=2000)), ("0", Size(units=0)), ("1Ki", Size(mib=1)),
    ],
)  # fmt: skip
def test_a_size_as_people_write_it(text: str, wanted: Size) -> None:
    assert size(text) == wanted


@pytest.mark.parametrize("text", ["", "Gi", "8Xi", "8.5", "-8Gi", "120%", "8 Gi Gi"])
def test_a_size_that_is_not_understood(text: str) -> None:
    with pytest.raises(ValueError, match="write 8Gi"):
        size(text)


def test_a_card_has_whole_units_only() -> None:
    assert units_of(24564, 1024) == 23
    assert units_for(24564, 1024) == 24


@given(st.integers(1, 10**7), st.integers(1, 10**4))
def test_units_hold_what_was_asked_and_no_unit_more(mib: int, factor: int) -> None:
    units = units_for(mib, factor)
    assert (units - 1) * factor < mib <= units * factor
    assert units_of(mib, factor) * factor <= mib


@pytest.mark.parametrize(("mib", "text"), [(512, "512 MiB"), (1024, "1 GiB"), (20480, "20 GiB"), (19999, "19.5 GiB")])
def test_people_read_gib(mib: int, text: str) -> None:
    assert show_mib(mib) == text


class TestVersions:
    def test_pre_releases_come_before_their_release(self) -> None:
        texts = [
            "1.9.0",
            "v1.12.4",
            "1.13.0-alpha.1",
            "1.13.0-rc.0",
            "1.13",
            "1.14.3",
            "1.15.0",
            "1.15.1",
            "1.16.0-alpha.0",
        ]
        versions = [VersionNumber(text) for text in texts]
        assert versions == sorted(versions)
        assert VersionNumber("1.13") == VersionNumber("v1.13.0+build.1")

    @pytest.mark.parametrize("text", ["", "latest", "1", "master-ed72c7c"])
    def test_other_words_are_no_versions(self, text: str) -> None:
        with pytest.raises(ValueError, match="is not a version"):
            VersionNumber(text)
