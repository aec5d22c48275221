"""Whatever a name, a label or a driver's string holds, no form of output lets it act."""

from __future__ import annotations

import csv
import io
import json
import unicodedata
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from vgpuctl.model.document import read_yaml
from vgpuctl.model.usage.row import PendingPod, Row, Totals, Usage
from vgpuctl.render.forms import render
from vgpuctl.render.live.frame import Memory, frame
from vgpuctl.render.live.look import Look
from vgpuctl.render.terminal import Terminal

HOSTILE = (
    "[bold red]x[/]", "[link=http://evil]x[/link]", "\x1b[31mred", "\x1b]8;;http://evil\x07x", "a\nb", "a\r\x08b",
    "\x9b2J", "\x7f", "\u202eevil", "\u2066x", "a\u2028b", "\x00", "\ud800", "=1+1", "+1", "-1+1", "@x", "\t=1",
    "<script>x</script>", "1e3", "0o17", "1_0", "y", "~", "资源", ":smile:", "%s{0}", "'", '"', "a,b", "\ufeff",
)  # fmt: skip
texts = st.sampled_from(HOSTILE) | st.text(st.characters(), max_size=20)
ACTIVE = {"Cc", "Cs", "Zl", "Zp"}
BIDI = set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f")
TERMINALS = (Terminal(), Terminal(width=80), Terminal(width=40, colour=True), Terminal(width=200, ascii=True))


def usage(text: str) -> Usage:
    """A table with the text in every place that comes from outside."""
    names = {
        "node": text, "uuid": text, "model": text, "namespace": text, "pod": text, "container": text, "queue": text,
        "process": text, "reason": text,
    }  # fmt: skip
    levels = ("node", "card", "vgpu", "process")
    rows = [Row(level=level, card=0, pid=1, memory_units=5, **names) for level in levels]
    return Usage(
        source=text,
        at=0.0,
        group="node",
        rows=rows,
        pending=[PendingPod(namespace=text, pod=text, queue=text)],
        totals=Totals(largest_free=1, largest_free_node=text),
        notes=[text],
    )


def quiet(drawn: str) -> bool:
    """No character is left that a terminal acts on, but line ends."""
    return not any(unicodedata.category(c) in ACTIVE or c in BIDI for c in drawn if c != "\n")


@given(texts)
@pytest.mark.parametrize("form", ["table", "wide", "name"])
def test_tables_and_names_are_plain_text(form: str, text: str) -> None:
    output = usage(text)
    harmless = render(usage("x"), form, Terminal())
    for terminal in TERMINALS:
        drawn = render(output, form, terminal)
        plain = drawn.replace("\x1b[", "") if terminal.colour else drawn
        assert quiet(plain)
        if terminal.colour:
            parts = drawn.split("\x1b[")[1:]
            assert all(part.partition("m")[0].replace(";", "").isdigit() for part in parts)
    assert len(render(output, form, Terminal()).split("\n")) == len(harmless.split("\n"))


@given(texts)
def test_the_live_screen_is_plain_text(text: str) -> None:
    for look in (Look(text=text), Look(text=text, typing=True), Look(wide=True)):
        drawn = frame(usage(text), look, Memory(), Terminal(width=100), 30, message=text)
        assert len(drawn) <= 30
        assert quiet("".join(drawn))


@given(texts)
def test_csv_holds_no_formula_and_no_escape(text: str) -> None:
    drawn = render(usage(text), "csv", Terminal())
    assert quiet(drawn)
    records = list(csv.reader(io.StringIO(drawn)))
    assert len(records) == 5
    for cell in records[1]:
        assert not cell.lstrip().startswith(("=", "+", "-", "@"))


def as_kubectl_does(text: str) -> Any:
    root = read_yaml(text)[0].root
    assert root is not None
    return root.plain()


@given(texts)
def test_json_and_yaml_keep_the_text_as_data(text: str) -> None:
    whole = text.encode("utf-8", "replace").decode()
    for form, load in (("json", json.loads), ("yaml", yaml.safe_load), ("yaml", as_kubectl_does)):
        drawn = render(usage(text), form, Terminal())
        assert load(drawn)["rows"][0]["node"] == whole
        assert quiet(drawn)
