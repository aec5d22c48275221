"""A value that was read, or the reason why it is missing.

Unknown is a type: what could not be read stays a Reading without a value. It cannot become 0, and code that
needs the value says so by `need()`, which a caller turns into "unknown" with the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")
U = TypeVar("U")


class Missing(Exception):
    """A needed value is not known; the text is the reason, fit for the user's eyes."""

    def __init__(self, reason: str, source: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.source = source


@dataclass(frozen=True)
class Reading(Generic[T]):
    """What a source said.

    value: what was read; None exactly when it is missing. source: where (a path, an API path, "NVML"). at: when, in
    Unix seconds; None where that has no meaning. reason: why it is missing, "" when known. denied: the reason is a
    refused permission. absent: the reason is that it is known not to exist. note: what a known value lacks, such as
    objects that could not be decoded; "" when it is whole."""

    value: T | None
    source: str
    at: float | None = None
    reason: str = ""
    denied: bool = False
    note: str = ""
    absent: bool = False

    @property
    def known(self) -> bool:
        return self.value is not None

    def need(self) -> T:
        """The value; raises Missing with the reason when there is none."""
        if self.value is None:
            raise Missing(self.reason, self.source)
        return self.value

    def map(self, change: Callable[[T], U]) -> Reading[U]:
        """The same reading of a value derived from this one."""
        if self.value is None:
            return self.lost()
        return Reading(change(self.value), self.source, self.at, note=self.note)

    def lost(self) -> Reading[Any]:
        """The same missing reading, as one of any type."""
        return Reading(None, self.source, self.at, self.reason, self.denied, absent=self.absent)


def known(value: T, source: str, at: float | None = None) -> Reading[T]:
    """A value that was read from `source` at Unix time `at`."""
    return Reading(value, source, at)


def missing(reason: str, source: str = "", *, denied: bool = False, absent: bool = False) -> Reading[T]:
    """A value that could not be read, and why."""
    return Reading(None, source, None, reason, denied, absent=absent)
