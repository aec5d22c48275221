"""Who changed what: the lines of the ConfigMap `vgpuctl-history`, and which of them are asked for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec

from vgpuctl.model.api import KINDS
from vgpuctl.model.change import Target
from vgpuctl.model.output import Item, Output

PLACE: Final = Target("ConfigMap", "vgpuctl-history", "kube-system")
"""One line a change; its key is the time (UTC) to the microsecond, its value JSON, see `Line`."""

_KEY = re.compile(r"(\d{8}T\d{6})\.(\d{6})\d*Z")


class Line(msgspec.Struct, frozen=True):
    """A line as it is stored. what: the object, as `str(Target)` says it. change: old → new. undo: a command."""

    time: str
    who: str
    what: str
    how: str = ""
    change: str = ""
    undo: str = ""


class Entry(Item, frozen=True, kw_only=True):
    """One change. key: of its line. at: Unix seconds, None when the line does not tell. change: old → new. undo: the
    command that reverts it. error: why the line cannot be read; what is not known of it is empty."""

    key: str
    at: float | None = None
    who: str = ""
    object_kind: str = ""
    namespace: str = ""
    name: str = ""
    how: str = ""
    change: str = ""
    undo: str = ""
    error: str = ""

    @property
    def object(self) -> str:
        """Such as `ResourceQuota ai-team/vgpu`."""
        return str(Target(self.object_kind, self.name, self.namespace)) if self.object_kind else ""


class History(Output, frozen=True, kw_only=True):
    """What `history` prints. entries: the newest last. kept: how many lines there are, those not asked for included."""

    entries: list[Entry] = []
    kept: int = 0


def entries(data: Mapping[str, str]) -> list[Entry]:
    """Every line of the ConfigMap, the newest last; lines that do not tell their time come first."""
    return sorted((_entry(key, text) for key, text in data.items()), key=_order)


def _order(entry: Entry) -> tuple[float, int, str]:
    """Changes of one microsecond have keys that grow longer."""
    return (entry.at if entry.at is not None else float("-inf"), len(entry.key), entry.key)


def _entry(key: str, text: str) -> Entry:
    at = _time(key)
    try:
        line = msgspec.json.decode(text, type=Line)
    except (msgspec.MsgspecError, RecursionError, TypeError) as error:
        return Entry(key=key, at=at, error=f"the line is damaged: {error}")
    kind, _, place = line.what.partition(" ")
    namespace, _, name = place.rpartition("/") if kind != "Host" else ("", "", place)
    return Entry(
        key=key,
        at=at,
        who=line.who,
        object_kind=kind,
        namespace=namespace,
        name=name,
        how=line.how,
        change=line.change,
        undo=line.undo,
        error="" if at is not None else f"its key {key!r} is not a time",
    )


def _time(key: str) -> float | None:
    found = _KEY.fullmatch(key)
    try:
        return datetime.strptime(f"{found[1]}.{found[2]}+0000", "%Y%m%dT%H%M%S.%f%z").timestamp() if found else None
    except ValueError:
        return None


@dataclass(frozen=True)
class Wanted:
    """Which changes are asked for; "" and None ask for all. since: Unix seconds. who: a part of the user's name.
    kind: of the object, its plural too. name: of the object, with or without its namespace. last: so many of the
    newest."""

    since: float | None = None
    who: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""
    last: int | None = None

    def of(self, all_entries: Iterable[Entry]) -> list[Entry]:
        """The entries that may be meant: what a damaged line does not tell is no reason to leave it out."""
        found = [entry for entry in all_entries if self._may_be(entry)]
        return found if self.last is None else found[max(len(found) - self.last, 0) :]

    def _may_be(self, entry: Entry) -> bool:
        if self.since is not None and entry.at is not None and entry.at < self.since:
            return False
        if not entry.object_kind:
            return True
        names = (entry.name, f"{entry.namespace}/{entry.name}")
        return (
            self.who in entry.who
            and (not self.kind or self.kind.lower() in _kinds(entry.object_kind))
            and (not self.name or self.name in names)
            and (not self.namespace or self.namespace == entry.namespace)
        )


def _kinds(kind: str) -> tuple[str, ...]:
    known = KINDS.get(kind)
    return (kind.lower(), *((known.plural,) if known else ()))
