"""Documents keep positions."""

from __future__ import annotations

from vgpuctl.model.document import Position, embedded, find, read_json, read_yaml


def test_a_block_inside_a_config_map_maps_to_the_outer_line() -> None:
    outer = "data:\n  conf: |\n    a: 1\n    b:\n      - 2\n"
    document = read_yaml(outer)[0]
    block = find(document.root, "data", "conf")
    inner = embedded(block, outer, "yaml")[0]  # type: ignore[arg-type, index]
    assert find(inner.root, "b", 0).position == Position(5, 9)  # type: ignore[union-attr]


def test_a_trailing_comma_is_reported_at_its_place() -> None:
    (fault,) = read_json('{"a": [1, 2,]}').faults
    assert (fault.kind, fault.position) == ("json-syntax", Position(1, 13))
