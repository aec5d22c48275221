"""Columns of text: widths, cuts, what gives way on a narrow terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vgpuctl.render.grid import bar, clip, cut, lines, plain, spark, width
from vgpuctl.render.terminal import Terminal
from vgpuctl.render.view import Cell, Column

PIPE = Terminal()
COLUMNS = (
    Column("NAME", lambda row: row[0], shrink=6),
    Column("SIZE", lambda row: row[1], right=True),
    Column("EXTRA", lambda row: row[2], drop=2),
    Column("MORE", lambda row: Cell(row[2], "bad"), drop=1),
)
ROWS = [("a-long-name", "1", "x"), ("b", "20", "yy")]


def draw(terminal: Terminal) -> list[str]:
    return list(lines(COLUMNS, ROWS, terminal))


def test_a_pipe_gets_everything_uncut() -> None:
    assert draw(PIPE) == [
        "NAME         SIZE  EXTRA  MORE",
        "a-long-name     1  x      x",
        "b              20  yy     yy",
    ]


def test_what_matters_least_goes_first() -> None:
    assert draw(Terminal(width=24)) == ["NAME         SIZE  MORE", "a-long-name     1  x", "b              20  yy"]


def test_then_columns_that_may_shrink_are_cut() -> None:
    assert draw(Terminal(width=14)) == ["NAME      SIZE", "a-long-…     1", "b           20"]
    assert draw(Terminal(width=14, ascii=True))[1] == "a-long-~     1"


def test_colour_is_only_paint() -> None:
    painted = list(lines(COLUMNS, ROWS, Terminal(width=80, colour=True)))
    assert "\x1b[1;31myy\x1b[0m" in painted[2]
    assert [clip(line, 80).replace("\x1b", "") for line in painted] != draw(Terminal(width=80))


@pytest.mark.parametrize(("text", "columns"), [("abc", 3), ("资源", 4), ("é", 1), ("e\u0301", 1), ("🚀", 2), ("", 0)])
def test_width_counts_columns_of_the_terminal(text: str, columns: int) -> None:
    assert width(text) == columns


def test_wide_characters_keep_the_columns_straight() -> None:
    rows = [("资源配额", "1", "x"), ("b", "20", "yy")]
    assert list(lines(COLUMNS[:2], rows, PIPE)) == ["NAME      SIZE", "资源配额     1", "b           20"]


@given(st.text(), st.integers(min_value=0, max_value=30))
def test_a_cut_text_fits(text: str, columns: int) -> None:
    assert width(cut(text, columns)) <= max(columns, 0)


@given(st.text(alphabet="ab资\u0301"), st.integers(min_value=0, max_value=9))
def test_a_clipped_line_fits_and_keeps_its_escapes(text: str, columns: int) -> None:
    clipped = clip(f"\x1b[31m{text}\x1b[0m", columns)
    assert clipped.startswith("\x1b[31m")
    assert clipped.endswith("\x1b[0m")
    assert width(clipped.replace("\x1b[31m", "").replace("\x1b[0m", "")) <= columns


def test_a_table_drawn_again_does_not_jump() -> None:
    least: dict[str, int] = {}
    first = list(lines(COLUMNS[:2], [("a", "1000000", "")], PIPE, least))
    second = list(lines(COLUMNS[:2], [("a", "1", "")], PIPE, least))
    assert len(first[0]) == len(second[0])


@pytest.mark.parametrize(
    ("ratio", "drawn"), [(0, "────────"), (0.5, "━━━━────"), (1, "━━━━━━━━"), (7, "━━━━━━━━"), (-1, "────────")]
)
def test_bars_are_bounded(ratio: float, drawn: str) -> None:
    assert bar(ratio, PIPE) == drawn
    assert bar(ratio, Terminal(ascii=True)).isascii()


def test_sparks_leave_unknown_blank() -> None:
    assert spark([0.0, None, 0.5, 1.0, 9.0], PIPE) == "▁ ▄▇▇"
    assert spark([0.0, None, 1.0], Terminal(ascii=True)) == ". #"


def test_our_own_marks_are_ascii_where_the_terminal_is() -> None:
    for draw in ("n 20 → 50", "1 · 2", "≥5", "–", "…", "3 × 4"):
        assert plain(draw, Terminal(ascii=True)).isascii()
