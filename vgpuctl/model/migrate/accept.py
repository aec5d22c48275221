"""How a user names what changes its meaning: KIND/NAMESPACE/NAME, or KIND/NAME for what has no namespace.

`*` stands for any kind or any name, never for every namespace: a new factor is agreed on team by team.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

import msgspec

from vgpuctl.model.migrate.use import Use


class Accepted(msgspec.Struct, frozen=True):
    """One thing that a user wrote."""

    kind: str
    namespace: str
    name: str

    def covers(self, use: Use) -> bool:
        return (
            fnmatchcase(use.object_kind.lower(), self.kind.lower())
            and use.namespace == self.namespace
            and fnmatchcase(use.name, self.name)
        )


def accepted(text: str) -> Accepted:
    """Raises ValueError for what names nothing, or too much."""
    parts = text.strip().split("/")
    if len(parts) == 2:
        parts.insert(1, "")
    if len(parts) != 3 or not parts[0] or not parts[2]:
        raise ValueError(f"{text!r} is not KIND/NAMESPACE/NAME, nor KIND/NAME for a queue")
    kind, namespace, name = parts
    if "*" in namespace or (not namespace and "*" in kind):
        raise ValueError(f"{text!r} names too much: write each namespace out")
    return Accepted(kind, namespace, name)


def with_accepted(uses: Iterable[Use], wanted: Iterable[Accepted]) -> list[Use]:
    """The same uses, those that are named marked."""
    wanted = list(wanted)
    return [
        msgspec.structs.replace(use, accepted=True) if any(one.covers(use) for one in wanted) else use for use in uses
    ]


def offered(uses: Iterable[Use]) -> list[str]:
    """What to write to accept all of these: one pattern for each namespace and each queue."""
    left = [use for use in uses if not use.accepted]
    return list(dict.fromkeys(f"*/{use.namespace}/*" if use.namespace else use.title for use in left))
