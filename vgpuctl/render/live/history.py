"""How hard each row computed in the last readings, for the trend column."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from vgpuctl.model.usage.row import Row

LENGTH = 12


class History:
    """The loads of every row that was in the last reading; rows that are gone are forgotten."""

    def __init__(self) -> None:
        self._loads: dict[tuple[object, ...], deque[float | None]] = {}

    def add(self, rows: Iterable[Row]) -> None:
        """Takes in one reading."""
        kept = {}
        for row in rows:
            loads = self._loads.get(row.key)
            if loads is None:
                loads = deque(maxlen=LENGTH)
            loads.append(row.load)
            kept[row.key] = loads
        self._loads = kept

    def of(self, row: Row) -> tuple[float | None, ...]:
        """The loads of a row, the newest last."""
        return tuple(self._loads.get(row.key, ()))
