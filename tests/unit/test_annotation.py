"""Annotations of nodes and pods: round trips, and what garbage is read as."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vgpuctl.model import annotation as a

_word = st.text(st.characters(exclude_characters=",:;[]\x00", exclude_categories=("Cs",)), min_size=1, max_size=20)
_units = st.integers(0, 10**6)
_card = st.tuples(_word, _units, _units, _word, st.booleans(), st.sampled_from(["", "hami-core", "mig", "mps"]))
_allocation = st.builds(a.Allocation, uuid=_word, memory=_units, cores=st.integers(0, 100))


@given(st.lists(_card, min_size=1, max_size=8))
def test_a_register_comes_back_as_it_was_written(fields: list[tuple[str, int, int, str, bool, str]]) -> None:
    cards = tuple(a.RegisteredCard(index, *field) for index, field in enumerate(fields))
    assert a.decode_register(a.encode_register(cards)) == a.Register(cards)


@given(st.lists(st.lists(_allocation, min_size=1, max_size=4), max_size=4))
def test_allocations_come_back_as_they_were_written(containers: list[list[a.Allocation]]) -> None:
    wanted = tuple(tuple(container) for container in containers)
    assert a.decode_allocations(a.encode_allocations(containers)).containers == wanted


@given(st.text(max_size=200), st.floats(0, 4e9))
def test_no_text_makes_a_decoder_fail(text: str, now: float) -> None:
    a.decode_register(text)
    a.decode_allocations(text)
    a.decode_handshake(text)
    a.decode_time(text)
    a.lock_age(text, now)


@pytest.mark.parametrize(
    ("text", "cards", "error"),
    [
        ("", 0, "no `:`"),
        ("GPU-1,10,24576,NVIDIA-A30,true,hami-core", 0, "no `:`"),
        ("GPU-1,10,24576,NVIDIA-A30,true:", 0, "5 fields"),
        ("GPU-1,10,24576,NVIDIA-A30,true,hami-core:GPU-2,10:", 0, "2 fields"),
        (":::", 0, "no card"),
        ("GPU-1,10,24576,NVIDIA-A30,true,mig,more,and more:", 1, ""),
    ],
)
def test_a_register_that_the_scheduler_does_not_see_says_why(text: str, cards: int, error: str) -> None:
    register = a.decode_register(text)
    assert len(register.cards) == cards
    assert error in register.error and bool(register.error) == bool(error)


def test_parts_without_a_comma_keep_their_index() -> None:
    register = a.decode_register("junk:GPU-2,ten,16GB,NVIDIA-T4,yes,mps:")
    assert register.cards == (a.RegisteredCard(1, "GPU-2", 0, 0, "NVIDIA-T4", False, "mps"),)


def test_the_last_card_decides_the_mode_of_the_node() -> None:
    assert a.decode_register("A,7,1,x,true,mig:B,7,1,x,true,hami-core:").mode == "hami-core"
    assert a.decode_register("A,7,1,x,true,hami-core:B,7,1,x,true,mig:").mode == "mig"
    assert a.decode_register("A,7,1,x,true,MIG:").mode == "hami-core"


def test_broken_allocations_are_dropped_one_by_one_and_told() -> None:
    found = a.decode_allocations("GPU-1,NVIDIA,3000,0:GPU-2,NVIDIA,3000:;GPU-3,NVIDIA,-1,0:GPU-4,NVIDIA,1,2,more:")
    assert [item.uuid for item in found.all] == ["GPU-1", "GPU-4"]
    assert found.broken == ("GPU-2,NVIDIA,3000", "GPU-3,NVIDIA,-1,0")


def test_a_mig_slice_is_told_from_its_card() -> None:
    item = a.Allocation("GPU-5a[group1-2]", 5000, 0)
    assert (item.card, item.slice) == ("GPU-5a", "group1-2")
    assert (a.Allocation("GPU-5a", 1, 0).card, a.Allocation("GPU-5a", 1, 0).slice) == ("GPU-5a", "")


@pytest.mark.parametrize(
    ("text", "state", "at"),
    [
        ("Reported 2024-05-01 10:00:00.123456789 +0200 CEST m=+3.1", "Reported", 1714550400.0),
        ("Requesting_2024.05.01 08:00:00", "Requesting", 1714550400.0),
        ("Deleted_2024.05.01 08:00:00", "Deleted", 1714550400.0),
        ("Reported at some time", "Reported", None),
        ("anything", "", None),
    ],
)
def test_a_handshake_has_a_state_and_a_time(text: str, state: str, at: float | None) -> None:
    assert a.decode_handshake(text) == a.Handshake(state, at)


@pytest.mark.parametrize(
    ("text", "age"),
    [
        ("2024-05-01T08:00:00Z", 60.0),
        ("2024-05-01T10:00:00+02:00", 60.0),
        ("2024-05-01 08:00:00", None),
        ("2024-05-01T08:00:00", None),
        ("", None),
        ("2024-13-01T08:00:00Z", None),
    ],
)
def test_only_an_rfc_3339_time_is_a_lock_that_ends(text: str, age: float | None) -> None:
    assert a.lock_age(text, 1714550460.0) == age
