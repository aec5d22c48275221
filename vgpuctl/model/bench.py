"""Measurements of the core limit on one card: what was measured, and what is promised.

A share is throughput over the throughput of the same kernels alone, without a limit. The kernels do a fixed amount of
work, so that waiting and taking turns show.
"""

from __future__ import annotations

from collections.abc import Sequence

from vgpuctl.model.output import Item, Output

PROMISE = 0.003
"""How far a share may be off its limit, as a share of the card."""
SIMULATED_PROMISE = 0.02
"""The same on a simulated card, which is only as exact as the machine's own clock and load."""
SHORT_KERNEL = 20e-6
"""Seconds. The rate alone of kernels up to so long is taken before and after each cell, that of longer ones once."""
LIMITS = (20, 50, 80)
KERNELS = (20e-6, 1e-3, 10e-3)
BUSY, IDLE = 0.025, 0.075
"""Seconds that a job of the sharing bench keeps the card busy, and then does not use it."""
JOBS = 4

_UNITS = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
_SHORTEST, _LONGEST = 1e-6, 1.0
_LEAST_KERNELS, _LONGEST_CELL = 20, 40.0


class ShareCell(Item, frozen=True, kw_only=True):
    """One limit with one kernel. kernel: seconds a kernel. limit, share, promise: of the card, 0 to 1. kernels: counted
    in `seconds`. held: the share is no further off the limit than promised."""

    kernel: float
    limit: float
    share: float
    promise: float
    held: bool
    kernels: int
    seconds: float


class LimitBench(Output, frozen=True, kw_only=True):
    """The core limit of one card, cell by cell. simulated: the card is one of the simulated driver."""

    card: str
    uuid: str
    simulated: bool
    cells: tuple[ShareCell, ...]

    @property
    def missed(self) -> int:
        return sum(not cell.held for cell in self.cells)


class Arrangement(Item, frozen=True, kw_only=True):
    """One way to run the jobs. makespan: seconds from the first's begin to the last's end. utilisation: of the card in
    that time, 0 to 1. jobs: seconds that each took."""

    name: str
    makespan: float
    utilisation: float
    jobs: tuple[float, ...]


class SharingBench(Output, frozen=True, kw_only=True):
    """The same jobs one after another and at once. busy: the share of its time that a job keeps the card busy."""

    card: str
    uuid: str
    simulated: bool
    busy: float
    arrangements: tuple[Arrangement, ...]


def limit_list(text: str) -> tuple[int, ...]:
    """Percents such as `20,50,80`. Raises ValueError."""
    found = []
    for word in _words(text):
        if not (word.isascii() and word.isdigit()) or not 1 <= int(word) <= 99:
            raise ValueError(f"{word!r} is not a limit: percent of a card, 1 to 99")
        found.append(int(word))
    return tuple(found)


def kernel_list(text: str) -> tuple[float, ...]:
    """Lengths of kernels such as `20us,1ms`, in seconds. Raises ValueError."""
    found = []
    for word in _words(text):
        number = word.rstrip("sumµ")
        unit = word[len(number) :]
        try:
            seconds = float(number) * _UNITS[unit]
        except (ValueError, KeyError):
            raise ValueError(f"{word!r} is not the length of a kernel, such as 20us or 1ms") from None
        if not _SHORTEST <= seconds <= _LONGEST:
            raise ValueError(f"{word!r}: kernels of 1us to 1s can be measured")
        found.append(seconds)
    return tuple(found)


def cell_seconds(least: float, kernel: float, limit: int) -> float:
    """How long to measure: long enough for 20 kernels, where that is not too long."""
    return max(least, min(_LEAST_KERNELS * kernel / (limit / 100), _LONGEST_CELL))


def share_cell(
    kernel: float, limit: int, periods: Sequence[float], kernels: int, seconds: float, promise: float
) -> ShareCell:
    """periods: seconds from one kernel to the next without a limit, as measured around the cell."""
    share = round(kernels * (sum(periods) / len(periods)) / seconds, 5)
    return ShareCell(
        kernel=kernel,
        limit=limit / 100,
        share=share,
        promise=promise,
        held=round(abs(share - limit / 100), 5) <= promise,
        kernels=kernels,
        seconds=round(seconds, 6),
    )


def arrangement(name: str, spans: Sequence[tuple[float, float]], work: float) -> Arrangement:
    """spans: begin and end of each job, seconds. work: seconds that all jobs together keep the card busy alone."""
    makespan = max(end for _, end in spans) - min(begin for begin, _ in spans)
    return Arrangement(
        name=name,
        makespan=round(makespan, 3),
        utilisation=round(min(work / makespan, 1.0), 4),
        jobs=tuple(round(end - begin, 3) for begin, end in spans),
    )


def _words(text: str) -> list[str]:
    words = [word.strip() for word in text.split(",")]
    if not all(words):
        raise ValueError(f"{text!r} has an empty place")
    return words
