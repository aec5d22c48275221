"""Label selectors mean what they mean to kubectl."""

from __future__ import annotations

import pytest

from vgpuctl.model.selector import selector

LABELS = {"app": "train", "env": "prod", "team.example.com/name": "a"}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("app=train", True),
        ("app==train", True),
        ("app = serve", False),
        ("app!=serve", True),
        ("missing!=serve", True),
        ("app=train,env=prod", True),
        ("app=train, env=test", False),
        ("env in (test, prod)", True),
        ("env notin (test,prod)", False),
        ("missing notin (x)", True),
        ("app", True),
        ("missing", False),
        ("!app", False),
        ("!missing", True),
        ("team.example.com/name=a", True),
        ("missing=", False),
    ],
)
def test_selectors(text: str, matches: bool) -> None:
    assert selector(text).matches(LABELS) is matches


@pytest.mark.parametrize("text", ["=a", "app=a b", "env in prod", "a,,b", "app=(a)", "app>3"])
def test_what_is_no_selector_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="label requirement"):
        selector(text)
