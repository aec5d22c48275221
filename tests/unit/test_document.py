"""Documents keep positions, read as Go's loaders do, and survive any text."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vgpuctl.model.document import (
    Document,
    Mapping,
    Node,
    Position,
    Scalar,
    Sequence,
    find,
    place_of,
    read_json,
    read_yaml,
)
from vgpuctl.model.place import Lines
from vgpuctl.model.yaml_scalar import is_octal, resolve


@pytest.mark.parametrize(
    ("outer", "path", "wanted"),
    [
        ("data:\n  conf: |\n    a: 1\n    b:\n      - 2\n", ("b", 0), Position(5, 9)),
        ("data:\n  conf: |-\n\n    a: 1\n    b: 2\n", ("b",), Position(5, 8)),
        ("data:\n  conf: |+2\n      a: 1\n      b: 2\n\n", ("b",), Position(4, 10)),
        ("data:\r\n  conf: |\r\n    a: 1\r\n    b: 2\r\n", ("b",), Position(4, 8)),
        ("data:\n  conf: >\n    a:\n      b: 1\n      c: 2\n", ("a", "c"), Position(5, 10)),
        ('data:\n  conf: "a: 1\\nb: 2\\n"\n', ("b",), Position(2, 19)),
        ('{"data": {"conf": "a: 1\\nb: \\u00e9\\n"}}', ("b",), Position(1, 29)),
        ("data:\n  conf: 'a: 1'\n", ("a",), Position(2, 9)),
        ("données: 1\ndata:\n  conf: |\n    é: 1\n    b: 2\n", ("b",), Position(5, 8)),
        ("\ufeffdata:\n  conf: |\n    a: 1\n", ("a",), Position(3, 8)),
    ],
    ids=["literal", "blank-first", "indent-given", "crlf", "folded", "quoted", "json", "single", "accents", "bom"],
)
def test_an_embedded_text_has_the_positions_of_the_file(
    outer: str, path: tuple[str | int, ...], wanted: Position
) -> None:
    block = find(read_yaml(outer)[0].root, "data", "conf")
    assert isinstance(block, Scalar)
    inner = read_yaml(block.text, place_of(block, outer))
    node = find(inner[0].root, *path)
    assert node is not None
    assert node.position == wanted


@pytest.mark.parametrize(
    ("text", "kind", "line"),
    [
        ("a:\n\tb: 1\n", "yaml-tab", 2),
        ("a:\n  b: 1\n\tc: 2\n", "yaml-tab", 3),
        ("a:\n  b:\n  \t- c: 2\n", "yaml-tab", 3),
        ("a:\n\u00a0 b: 1\n  c: 2\n", "invisible-character", 2),
        ("a: 1\nb: \x07\n", "invisible-character", 2),
        ("spec:\n  capability:reclaimable\n    cpu: 1\n", "yaml-syntax", 2),
        ("a: 1\n  b: 2\n", "yaml-syntax", 2),
        ("a: b: 1\n", "yaml-syntax", 1),
        ("a: 1\nb 2\nc: 3\n", "yaml-syntax", 2),
        ("a: {b: 1\nc: 2\n", "yaml-syntax", 1),
        ("a: 1\nb: 'x\nc: 2\n", "yaml-syntax", 2),
        ("a: *b\n", "yaml-syntax", 1),
        ("[" * 5000, "yaml-syntax", 1),
        ("- " * 5000, "yaml-syntax", 1),
    ],
)
def test_a_yaml_error_points_at_its_cause(text: str, kind: str, line: int) -> None:
    (fault,) = read_yaml(text)[-1].faults
    assert (fault.kind, fault.position.line, fault.fatal) == (kind, line, True)


@pytest.mark.parametrize(
    ("text", "kind", "line", "column"),
    [
        ('{"a": [1, 2,]}', "json-syntax", 1, 13),
        ('{"a": 1,\n}', "json-syntax", 2, 1),
        ('{"a": 1\n "b": 2}', "json-syntax", 2, 2),
        ("{'a': 1}", "json-syntax", 1, 2),
        ('{"a": 1}\n{"b": 2}', "json-syntax", 2, 1),
        ('{"a": [1, 2\n\n\n', "json-syntax", 1, 11),
        ('# comment\n{"a": 1}', "json-syntax", 1, 1),
        ('{\n  // comment\n  "a": 1}', "json-syntax", 2, 3),
        ('{"a": 05}', "json-syntax", 1, 8),
        ('{"a": ' + "1" * 401 + "}", "json-syntax", 1, 7),
        ('{"a": "x\ny"}', "json-syntax", 1, 9),
        ('{"a": nul}', "json-syntax", 1, 7),
        ("", "json-syntax", 1, 1),
        ('\ufeff{"a": 1}', "invisible-character", 1, 1),
        ('{"a":' * 5000, "json-syntax", 1, 501),
    ],
)
def test_a_json_error_points_at_its_place(text: str, kind: str, line: int, column: int) -> None:
    (fault,) = read_json(text).faults
    assert (fault.kind, fault.position) == (kind, Position(line, column))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("012", 10),
        ("08", 8.0),
        ("0x1F", 31),
        ("0b101", 5),
        ("1_000", 1000),
        ("1e3", 1000.0),
        ("4.9", 4.9),
        (".5", 0.5),
        ("yes", True),
        ("Off", False),
        ("y", True),
        ("1:30", "1:30"),
        ("5Gi", "5Gi"),
        ("~", None),
        ("", None),
        ("Yeah", "Yeah"),
        ("-1", -1),
        ("18446744073709551616", 18446744073709551616.0),
    ],
)
def test_plain_scalars_are_what_go_makes_of_them(text: str, value: object) -> None:
    assert resolve(text) == value
    assert type(resolve(text)) is type(value)


def test_a_leading_zero_is_octal_only_when_it_changes_the_number() -> None:
    assert [is_octal(text) for text in ("012", "-010", "00", "07", "0", "12", "08")] == [True, True] + [False] * 5


def test_the_last_of_two_equal_keys_counts_and_both_are_kept() -> None:
    document = read_yaml("a: {b: 1, b: 2}\n")[0]
    assert document.root is not None
    assert document.root.plain() == {"a": {"b": 2}}
    assert [(fault.kind, fault.path) for fault in document.faults] == [("duplicate-key", "a.b")]


def test_merge_keys_fill_in_what_is_not_written() -> None:
    document = read_yaml("base: &b {x: 1, y: 2}\nown:\n  <<: *b\n  y: 3\n")[0]
    assert find(document.root, "own").plain() == {"x": 1, "y": 3}  # type: ignore[union-attr]
    assert not document.faults


def test_items_of_a_block_list_begin_at_their_dash() -> None:
    document = read_yaml("a:\n  -\n    - x: 1\n  - # why\n    y: 2\n  - [1,\n     2]\n")[0]
    outer = find(document.root, "a")
    assert isinstance(outer, Sequence)
    assert outer.marks == (Position(2, 3), Position(4, 3), Position(6, 3))


@pytest.mark.parametrize(
    ("text", "flagged"),
    [
        ("# a\u00a0comment\nkey: value\n", False),
        ("key: 'quoted\u00a0text'\n", False),
        ("key: du\u00a0texte\n", False),
        ("key:\n- |\n  \u00a0block\n", False),
        ("key\u200b: 1\n", True),
        ("key: 1\u00a0\n", True),
        ("key: vgpu\u200b-number\n", True),
        ("\u00a0key: 1\n", True),
    ],
)
def test_invisible_characters_count_where_they_change_a_key_or_a_value(text: str, flagged: bool) -> None:
    assert bool(read_yaml(text)[0].faults) is flagged


def test_aliases_that_expand_without_end_are_refused_at_once() -> None:
    laughs = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30))
    begun = time.perf_counter()
    (fault,) = read_yaml(laughs)[-1].faults
    assert fault.fatal
    assert time.perf_counter() - begun < 1


def _nodes(node: Node | None) -> list[Node]:
    if isinstance(node, Mapping):
        return [node, *(n for e in node.entries for n in (e.key, *_nodes(e.value)))]
    if isinstance(node, Sequence):
        return [node, *(n for item in node.items for n in _nodes(item))]
    return [node] if node else []


def _inside(document: Document, text: str) -> None:
    lines = Lines(text.removeprefix("\ufeff"))
    places = [n.position for n in _nodes(document.root)] + [fault.position for fault in document.faults]
    for place in [*places, document.start]:
        assert 1 <= place.line <= len(lines.starts)
        assert 1 <= place.column <= len(lines.row(place.line)) + 2


_MARKUP = st.text(alphabet="ab01:-#'\"{}[]|>&*!<%, \n\r\t\u00a0\ufeff\u2028é?~\x00", max_size=60)
_LINES = st.lists(
    st.sampled_from(
        [
            "a: 1",
            "  b: |",
            "    x: 1",
            "- c",
            "  - d: {e: [1]}",
            "---",
            "\tq: 1",
            "'",
            "? k",
            "&x y",
            "*x",
            "",
            "  :",
            "<<: *x",
        ]
    ),
    max_size=12,
).map("\n".join)


@given(st.one_of(_MARKUP, _LINES, st.text(max_size=80)))
def test_any_text_is_read_and_every_position_lies_inside(text: str) -> None:
    for document in (*read_yaml(text), read_json(text)):
        _inside(document, text)
        for node in _nodes(document.root):
            if isinstance(node, Scalar) and node.style:
                place = place_of(node, text)
                for found in (*read_yaml(node.text, place), read_json(node.text, place)):
                    _inside(found, text)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(),
        lambda x: st.lists(x) | st.dictionaries(st.text(), x),
        max_leaves=12,
    )
)
def test_json_is_read_as_python_reads_it(value: object) -> None:
    root = read_json(json.dumps(value)).root
    assert root is not None
    assert root.plain() == value
