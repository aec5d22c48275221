"""Where what lives differs from what was installed, and who changed it last.

Only the fields that we set are looked at. What is `kept` (configurations, namespaces, immutable objects) must only be
there: its content is its owner's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vgpuctl.model import annotation
from vgpuctl.model.change import Target
from vgpuctl.model.install.compare import differences
from vgpuctl.model.install.manifests import kept, target
from vgpuctl.model.install.template import Object
from vgpuctl.model.output import Item
from vgpuctl.model.quota.team import MANAGER


class Difference(Item, frozen=True, kw_only=True):
    """One value. live: None when it is not there. by, at: who changed it last, and when (Unix seconds), as far as the
    object tells."""

    path: str
    wanted: str
    live: str | None = None
    by: str = ""
    at: float | None = None


class Drift(Item, frozen=True, kw_only=True):
    """An object that is not as it was installed. missing: it is not there at all."""

    object_kind: str
    name: str
    namespace: str = ""
    missing: bool = False
    differences: list[Difference] = []

    @property
    def target(self) -> Target:
        return Target(self.object_kind, self.name, self.namespace)


def drift(wanted: Sequence[Object], live: Mapping[Target, Mapping[str, Any] | None]) -> list[Drift]:
    """The objects that differ, in the order of `wanted`. live: what was found, None for an object that does not exist;
    one that is not in it could not be read, and is not judged."""
    found = []
    for item in wanted:
        one = target(item)
        if one not in live:
            continue
        have = live[one]
        values = [] if have is None or kept(item) else _differences(item, have)
        if have is None or values:
            found.append(
                Drift(
                    object_kind=one.kind,
                    name=one.name,
                    namespace=one.namespace,
                    missing=have is None,
                    differences=values,
                )
            )
    return found


def _differences(wanted: Object, live: Mapping[str, Any]) -> list[Difference]:
    fields = (live.get("metadata") or {}).get("managedFields")
    found = []
    for line in differences(wanted, live):
        by, at = last_change(fields if isinstance(fields, list) else [], line.path)
        found.append(Difference(path=line.path, wanted=line.after or "", live=line.before, by=by, at=at))
    return found


def last_change(fields: Sequence[Any], path: str) -> tuple[str, float | None]:
    """Who wrote the value at a path last, and when. fields: metadata.managedFields. Where nobody owns it (it was taken
    out), whoever wrote the object last, after us; "" when it does not tell: who only takes away leaves no trace. A
    change of the status is none of the object."""
    entries = [entry for entry in fields if isinstance(entry, dict) and not entry.get("subresource")]
    owners = [entry for entry in entries if _owns(entry.get("fieldsV1"), path)]
    ours = max((_when(entry) for entry in entries if entry.get("manager") == MANAGER), default="")
    newest = max(owners or [entry for entry in entries if _when(entry) > ours], key=_when, default={})
    return str(newest.get("manager") or ""), annotation.decode_time(_when(newest))


def _when(entry: Mapping[str, Any]) -> str:
    return str(entry.get("time") or "")


def _owns(fields: Any, path: str) -> bool:
    """Whether a set of fields (fieldsV1) holds a path, something below it, or all around it."""
    if not isinstance(fields, dict):
        return False
    if not path or not set(fields) - {"."}:
        return True
    return any(_owns(below, rest) for key, below in fields.items() for rest in _rest(key, path))


def _rest(key: str, path: str) -> Iterator[str]:
    """What is left of a path behind one key of fieldsV1: `f:` a name, `k:` the keys of a list's element."""
    for step in _steps(key):
        if path == step or path.startswith((f"{step}.", f"{step}[")):
            yield path[len(step) :].removeprefix(".")


def _steps(key: str) -> Iterator[str]:
    kind, _, text = key.partition(":")
    if kind == "f":
        yield text
    if kind == "k":
        try:
            keys = json.loads(text)
        except ValueError:
            return
        yield from (f"[{value}]" for value in keys.values()) if isinstance(keys, dict) else ()
