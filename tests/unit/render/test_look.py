"""What keys do to the live screen."""

from __future__ import annotations

from functools import reduce

import pytest

from vgpuctl.model.usage.arrange import GROUPS
from vgpuctl.model.usage.order import SORTS
from vgpuctl.render.live.look import KEYS, Look, press


def after(*keys: str, look: Look | None = None) -> Look:
    return reduce(lambda now, key: press(now, key, page=10), keys, look or Look())


@pytest.mark.parametrize("key", ["q", "Q", "ctrl-c", "ctrl-d"])
def test_keys_that_quit(key: str) -> None:
    assert after(key).done


def test_no_key_has_two_meanings() -> None:
    names = [name for key in KEYS for name in key.names]
    assert len(names) == len(set(names))
    letters = [sort.letter for sort in SORTS.values()]
    assert len(letters) == len(set(letters))


def test_help_goes_away_with_any_key() -> None:
    assert after("h").help
    assert not after("h", "q").help
    assert not after("h", "q").done


def test_a_filter_is_typed_kept_dropped_and_cleared() -> None:
    typed = after("/", *"nlp/x", "backspace")
    assert (typed.text, typed.typing) == ("nlp/", True)
    assert not after("/", "q", "enter").done, "letters belong to the filter while it is typed"
    kept = after("/", *"nlp", "enter")
    assert (kept.text, kept.typing) == ("nlp", False)
    assert after("/", "x", "escape", look=kept).text == "nlp"
    assert after("escape", look=kept).text == ""
    assert after("/", "a", "ctrl-u").text == ""
    assert not after("/", "a", "backspace", "backspace").typing


def test_groups_come_round() -> None:
    seen = [look.group for look in (after(*["g"] * n) for n in range(len(GROUPS)))]
    assert seen == list(GROUPS)
    assert after(*["g"] * len(GROUPS)).group == "node"
    assert after("G").group == list(GROUPS)[-1]


@pytest.mark.parametrize("sort", SORTS.values(), ids=lambda sort: sort.name)
def test_o_and_a_letter_sort(sort: object) -> None:
    letter, name = sort.letter, sort.name  # type: ignore[attr-defined]
    assert after("o", letter).sort == name
    assert after("o", letter.upper()).sort == f"-{name}"
    assert after("o", letter, "r").sort == f"-{name}"
    assert after("o", letter, "r", "r").sort == name


def test_o_and_another_key_change_nothing() -> None:
    assert after("o", "7") == Look()
    assert after("o", "escape") == Look()


def test_commas_and_dots_walk_through_the_sort_keys() -> None:
    assert after(*["."] * len(SORTS)).sort == "name"
    assert after(",").sort == list(SORTS)[-1]
    assert after(".", look=Look(sort="-memory,name")).sort == "share"


def test_scrolling_stays_inside() -> None:
    assert after("up").top == 0
    assert after("down", "down", "up").top == 1
    assert after("page-down", "page-down", "page-up").top == 10
    assert after("end", "home").top == 0


def test_pause_and_wide_are_switches() -> None:
    assert after("p").paused
    assert not after("p", " ").paused
    assert after("w").wide


@pytest.mark.parametrize("key", ["F12", "é", "right", "\x00"])
def test_other_keys_change_nothing(key: str) -> None:
    assert after(key) == Look()
