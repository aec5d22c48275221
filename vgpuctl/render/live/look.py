"""What the user of the live screen looks at, and how keys change it. A key is a record in a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from vgpuctl.model.usage.arrange import GROUPS
from vgpuctl.model.usage.order import SORTS


@dataclass(frozen=True)
class Look:
    """top: the first row shown. typing: the filter while it is typed, None otherwise. before: the filter it replaces.
    order: `o` was pressed and the sort key's letter is to follow. help, wide, paused, done: what they say."""

    group: str = "node"
    sort: str = "name"
    text: str = ""
    top: int = 0
    typing: bool = False
    before: str = ""
    order: bool = False
    help: bool = False
    wide: bool = False
    paused: bool = False
    done: bool = False


@dataclass(frozen=True)
class Key:
    """names: of the keys, as `cli.screen` calls them. page: how many rows the screen shows."""

    names: tuple[str, ...]
    about: str
    press: Callable[[Look, int], Look]


def _next(names: list[str], now: str, step: int) -> str:
    return names[(names.index(now) + step) % len(names)] if now in names else names[0]


def _group(look: Look, step: int) -> Look:
    return replace(look, group=_next(list(GROUPS), look.group, step), top=0)


def _sort(look: Look, step: int) -> Look:
    return replace(look, sort=_next(list(SORTS), look.sort.removeprefix("-").partition(",")[0], step), top=0)


def _reverse(look: Look) -> Look:
    first, comma, rest = look.sort.partition(",")
    turned = first.removeprefix("-") if first.startswith("-") else f"-{first}"
    return replace(look, sort=f"{turned}{comma}{rest}", top=0)


def _scroll(rows: int) -> Callable[[Look, int], Look]:
    return lambda look, page: replace(look, top=max(0, look.top + rows))


KEYS = (
    Key(("q", "Q", "ctrl-c", "ctrl-d"), "quit", lambda look, page: replace(look, done=True)),
    Key(("h", "?", "f1"), "this help", lambda look, page: replace(look, help=True)),
    Key(("/",), "filter; a leading ! inverts it", lambda look, page: replace(look, typing=True, before=look.text)),
    Key(("escape",), "clear the filter", lambda look, page: replace(look, text="", top=0)),
    Key(("g",), "next grouping", lambda look, page: _group(look, 1)),
    Key(("G",), "previous grouping", lambda look, page: _group(look, -1)),
    Key(("o",), "sort by …", lambda look, page: replace(look, order=True)),
    Key((".", ">"), "next sort key", lambda look, page: _sort(look, 1)),
    Key((",", "<"), "previous sort key", lambda look, page: _sort(look, -1)),
    Key(("r",), "reverse the order", lambda look, page: _reverse(look)),
    Key(("w",), "more columns", lambda look, page: replace(look, wide=not look.wide)),
    Key((" ", "p"), "pause", lambda look, page: replace(look, paused=not look.paused)),
    Key(("down", "j"), "one row down", _scroll(1)),
    Key(("up", "k"), "one row up", _scroll(-1)),
    Key(("page-down", "ctrl-f"), "one page down", lambda look, page: replace(look, top=look.top + page)),
    Key(("page-up", "ctrl-b"), "one page up", lambda look, page: replace(look, top=max(0, look.top - page))),
    Key(("home",), "first row", lambda look, page: replace(look, top=0)),
    Key(("end",), "last row", lambda look, page: replace(look, top=1 << 30)),
)
_BY_NAME = {name: key for key in KEYS for name in key.names}
_LETTERS = {sort.letter: sort.name for sort in SORTS.values()}


def press(look: Look, key: str, page: int = 1) -> Look:
    """The look after a key; keys without a meaning change nothing."""
    if look.typing:
        return _type(look, key)
    if look.order:
        name = _LETTERS.get(key.lower())
        if name is None:
            return replace(look, order=False)
        return replace(look, order=False, sort=f"-{name}" if key.isupper() else name, top=0)
    if look.help:
        return replace(look, help=False, done=key in ("ctrl-c", "ctrl-d"))
    found = _BY_NAME.get(key)
    return found.press(look, page) if found else look


def _type(look: Look, key: str) -> Look:
    if key == "enter":
        return replace(look, typing=False)
    if key in ("escape", "ctrl-c"):
        return replace(look, typing=False, text=look.before, top=0)
    if key == "backspace":
        return replace(look, text=look.text[:-1], top=0, typing=bool(look.text))
    if key == "ctrl-u":
        return replace(look, text="", top=0)
    if len(key) == 1 and key.isprintable():
        return replace(look, text=look.text + key, top=0)
    return look
