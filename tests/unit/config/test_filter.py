"""Cards are taken out of a node config and brought back by positions, and the plugin reads what is meant."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vgpuctl.model.config.filter import Filter, UnfitError, again, filtered, without
from vgpuctl.model.config.kind import NODE
from vgpuctl.model.config.validate import validate
from vgpuctl.model.context import Context
from vgpuctl.model.finding import Severity

CARD = "GPU-0a"
ENTRY = '{"name": "a", "filterdevices": {"uuid": ["GPU-0a"]}}'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", f'{{"nodeconfig": [\n  {ENTRY}\n]}}\n'),
        ('{"nodeconfig": []}', f'{{"nodeconfig": [{ENTRY}]}}'),
        ('{"nodeconfig": [{"name": "b"}]}', f'{{"nodeconfig": [{{"name": "b"}}, {ENTRY}]}}'),
        ('{"nodeconfig": [\n\t{"name": "b"}\n]}', f'{{"nodeconfig": [\n\t{{"name": "b"}},\n\t{ENTRY}\n]}}'),
        ('{"nodeconfig":[{"name":"a"}]}', '{"nodeconfig":[{"name":"a", "filterdevices": {"uuid": ["GPU-0a"]}}]}'),
        (
            '{"nodeconfig":[{"name":"a","filterdevices":{"uuid":[],"index":[]}}]}',
            '{"nodeconfig":[{"name":"a","filterdevices":{"uuid":["GPU-0a"],"index":[]}}]}',
        ),
        (
            '{"nodeconfig":[{"name":"a","filterdevices":{"index":[2]}}]}',
            '{"nodeconfig":[{"name":"a","filterdevices":{"index":[2], "uuid": ["GPU-0a"]}}]}',
        ),
        (
            '{"nodeconfig":[{"name":"a","FilterDevices":{"UUID":["x"]}}]}',
            '{"nodeconfig":[{"name":"a","FilterDevices":{"UUID":["x", "GPU-0a"]}}]}',
        ),
        (
            '{"nodeconfig":[{"name":"a","filterdevices":null}]}',
            '{"nodeconfig":[{"name":"a","filterdevices":{"uuid": ["GPU-0a"]}}]}',
        ),
        (
            '{"nodeconfig":[{"name":"a","filterdevices":{"uuid":["x"]}},{"name":"a"}]}',
            '{"nodeconfig":[{"name":"a","filterdevices":{"uuid":["x", "GPU-0a"]}},{"name":"a"}]}',
        ),
        ('{"nodeconfig": [\r\n{"name": "语"}]}', f'{{"nodeconfig": [\r\n{{"name": "语"}},\r\n{ENTRY}]}}'),
    ],
)
def test_one_place_changes(before: str, after: str) -> None:
    assert without(before, "a", CARD) == after


@pytest.mark.parametrize("text", ["{", "[]", '{"nodes": []}', '{"nodeconfig": [],}', "nodeconfig: []"])
def test_what_the_plugin_does_not_read_is_not_edited(text: str) -> None:
    with pytest.raises(UnfitError):
        without(text, "a", CARD)


def test_an_index_comes_back_too() -> None:
    text = '{"nodeconfig":[{"name":"a","filterdevices":{"index":[1, 2, 3]}}]}'
    assert again(text, "a", 2) == text.replace("1, 2, 3", "1, 3")
    assert again(text, "a", 3) == text.replace("1, 2, 3", "1, 2")
    assert again(text, "a", 9) == text
    assert again(text, "b", 1) == text


names = st.sampled_from(["a", "b"])
uuids = st.lists(st.sampled_from(["GPU-0a", "GPU-0b", "GPU-0c"]), unique=True)
entries = st.fixed_dictionaries(
    {"name": names},
    optional={
        "operatingmode": st.just("hami-core"),
        "devicesplitcount": st.integers(1, 9),
        "filterdevices": st.fixed_dictionaries({}, optional={"uuid": uuids, "index": st.lists(st.integers(0, 3))}),
    },
)
layouts = st.sampled_from([None, 0, 1, 4, "\t"])


@given(
    st.lists(entries, max_size=4), layouts, st.text(" \n\t", max_size=3), names, st.sampled_from(["GPU-0a", "GPU-0d"])
)
def test_only_this_card_of_this_node_changes(
    found: list[Any], indent: Any, tail: str, node: str, card: str | int
) -> None:
    text = json.dumps({"nodeconfig": found}, indent=indent) + tail
    before = {name: filtered(text, name) for name in ("a", "b")}
    uuids, indexes = before[node].uuids, before[node].indexes
    if card in (*uuids, *indexes):
        return
    there = without(text, node, card)
    wanted = Filter((*uuids, card), indexes) if isinstance(card, str) else Filter(uuids, (*indexes, card))
    assert filtered(there, node) == wanted
    other = "b" if node == "a" else "a"
    assert filtered(there, other) == before[other]
    rest = _rest(json.loads(there))
    assert rest == _rest(found_in := json.loads(text)) or rest[:-1] == _rest(found_in)
    worst = [one.rule for one in validate(there, "x", Context(), NODE).findings if one.severity is Severity.ERROR]
    assert set(worst) <= {"duplicate-key"}
    back = again(there, node, card)
    assert {name: filtered(back, name) for name in ("a", "b")} == before


def _rest(config: Any) -> Any:
    return [{key: value for key, value in entry.items() if key != "filterdevices"} for entry in config["nodeconfig"]]
