"""Kubernetes label selectors: `app=train,tier!=dev,env in (a, b),!legacy`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_KEY = r"[A-Za-z0-9][A-Za-z0-9._/-]*"
_VALUE = r"[A-Za-z0-9._-]*"
_TERM = re.compile(
    rf"\s*(?:(?P<absent>!)\s*(?P<no>{_KEY})"
    rf"|(?P<key>{_KEY})\s*(?:(?P<sign>==|=|!=)\s*(?P<value>{_VALUE})"
    rf"|\s(?P<word>in|notin)\s*\((?P<values>[^()]*)\))?)\s*(?:,|$)"
)


@dataclass(frozen=True)
class Requirement:
    """values: None for a label that is to exist (or not, when `wanted` is False)."""

    key: str
    values: frozenset[str] | None
    wanted: bool

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Whether labels meet it; a label that is absent meets every `!=` and `notin`."""
        there = self.key in labels and (self.values is None or labels[self.key] in self.values)
        return there == self.wanted


@dataclass(frozen=True)
class Selector:
    """Requirements that must all hold; without any it matches everything and is false."""

    requirements: tuple[Requirement, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.requirements)

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(requirement.holds(labels) for requirement in self.requirements)


def selector(text: str) -> Selector:
    """Reads a selector as kubectl does. Raises ValueError naming the part that cannot be understood."""
    requirements = []
    place = 0
    while text.strip() and place < len(text):
        match = _TERM.match(text, place)
        if not match:
            raise ValueError(f"{text[place:].strip()!r} is no label requirement")
        place = match.end()
        if match["absent"]:
            requirements.append(Requirement(match["no"], None, False))
        elif match["word"]:
            values = frozenset(value.strip() for value in match["values"].split(","))
            requirements.append(Requirement(match["key"], values, match["word"] == "in"))
        elif match["sign"]:
            requirements.append(Requirement(match["key"], frozenset({match["value"]}), match["sign"] != "!="))
        else:
            requirements.append(Requirement(match["key"], None, True))
    return Selector(tuple(requirements))
