"""What applying an object takes away, and how changes of many places are told."""

from __future__ import annotations

from typing import Any

import pytest

from vgpuctl.model.change import Line
from vgpuctl.model.install.compare import dropped, together


def plugin(**spec: Any) -> dict[str, Any]:
    return {"kind": "DaemonSet", "spec": spec}


@pytest.mark.parametrize(
    ("former", "wanted", "live", "lines"),
    [
        ({"a": 1, "b": 2}, {"a": 1}, {"a": 1, "b": 2}, [("spec.b", "2")]),
        ({"a": 1, "b": 2}, {"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, {"a": 1}, []),
        ({"labels": {"a": "x", "b": "y"}}, {"labels": {"a": "x"}}, {"labels": {"a": "x", "b": "y", "c": "z"}},
         [("spec.labels.b", "y")]),
        # a part of which nothing is kept is told as one
        (
            {"containers": [{"name": "p", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}]},
            {"containers": [{"name": "p", "env": [{"name": "B", "value": "2"}]}]},
            {"containers": [{"name": "p", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}]},
            [("spec.containers[p].env[A]", "there")],
        ),
        ({"containers": [{"name": "p"}, {"name": "m", "image": "x"}]}, {"containers": [{"name": "p"}]},
         {"containers": [{"name": "p"}, {"name": "m", "image": "x"}]}, [("spec.containers[m]", "there")]),
    ],
)  # fmt: skip
def test_what_we_set_formerly_and_is_still_there(
    former: dict[str, Any], wanted: dict[str, Any], live: dict[str, Any], lines: list[tuple[str, str]]
) -> None:
    found = dropped(plugin(**former), plugin(**wanted), plugin(**live))
    assert [(line.path, line.before) for line in found] == lines
    assert {line.after for line in found} <= {None}


def test_one_change_of_many_places_is_told_once() -> None:
    lines = [Line("a.image", "1", "2"), Line("b", "x", None), Line("c.image", "1", "2"), Line("d.image", "1", "2")]
    assert together(lines) == (Line("a.image and 2 more", "1", "2"), Line("b", "x", None))
