"""What `top` prints, to the letter: the demo pool at a fixed clock, in every form and on several terminals."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from vgpuctl.model.usage.arrange import GROUPS, arrange
from vgpuctl.model.usage.row import Usage
from vgpuctl.render.forms import render
from vgpuctl.render.terminal import Terminal, terminal
from vgpuctl.sources.demo import Demo
from vgpuctl.tasks.top import Wanted, read

CLOCK = 1_789_464_000.0
PIPE = Terminal()
TERMINALS = {
    "80": Terminal(80, True),
    "200": Terminal(200, True),
    "piped": PIPE,
    "no-color": terminal({"NO_COLOR": "1"}, is_tty=True, columns=120, ascii_only=False),
    "ascii": terminal({"TERM": "dumb"}, is_tty=True, columns=100, ascii_only=False),
}


def usage(group: str = "node") -> Usage:
    picture = read((Demo(lambda: CLOCK),), Wanted())
    return arrange(picture.holdings, group, "name", picture.wanted)


@pytest.mark.parametrize("form", ["table", "wide"])
@pytest.mark.parametrize("name", TERMINALS)
def test_tables(golden: Callable[[str, str], None], form: str, name: str) -> None:
    golden(f"top/{form}-{name}.txt", render(usage(), form, TERMINALS[name]))


@pytest.mark.parametrize("group", [group for group in GROUPS if group != "node"])
def test_groups(golden: Callable[[str, str], None], group: str) -> None:
    golden(f"top/by-{group}.txt", render(usage(group), "table", PIPE))


@pytest.mark.parametrize(
    ("form", "group"), [("name", "node"), ("name", "pod"), ("csv", "namespace"), ("yaml", "queue")]
)
def test_forms_for_machines(golden: Callable[[str, str], None], form: str, group: str) -> None:
    golden(f"top/{group}.{form}", render(usage(group), form, PIPE))


def test_without_colour_nothing_is_lost() -> None:
    """State and marks are words and signs, so that NO_COLOR shows them too."""
    plain = render(usage(), "table", TERMINALS["no-color"])
    assert "\x1b" not in plain
    for sign in ("over !", "idle ~", "115%!"[3:], "waiting", "free"):
        assert sign in plain
