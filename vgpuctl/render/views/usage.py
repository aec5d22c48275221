"""The view of Usage: a tree of groups and vGPUs, with marks, bars and totals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from vgpuctl.model.usage.arrange import GROUPS
from vgpuctl.model.usage.row import Row, Usage
from vgpuctl.render.units import gib, pair, percent, span
from vgpuctl.render.view import Cell, Column, View

UNKNOWN = Cell("–", "dim")
MARKS = {"over": "!", "unhealthy": "!", "not ready": "!", "idle": "~"}
"""Beside its colour a state that asks for attention has a mark."""
STYLES = {
    "over": "bad",
    "unhealthy": "bad",
    "not ready": "bad",
    "active": "good",
    "waiting": "warn",
    "ending": "warn",
    "cordoned": "warn",
    "idle": "dim",
    "free": "dim",
    "unknown": "dim",
}


@dataclass(frozen=True)
class Thresholds:
    """From which ratio on a figure is moderate, and from which it is high, in the style `top`."""

    moderate: float
    high: float
    top: str

    def style(self, ratio: float) -> str:
        if ratio >= self.high:
            return self.top
        return "info" if ratio >= self.moderate else "dim"


BUSY = Thresholds(0.10, 0.75, "good")
MEMORY = Thresholds(0.10, 0.95, "warn")


@lru_cache(maxsize=256)
def model_name(model: str) -> str:
    """A card's model without the maker: `H100 80GB HBM3`, `V100-SXM2-32GB`."""
    for word in ("NVIDIA-", "NVIDIA ", "Tesla "):
        model = model.removeprefix(word)
    return model


def name_of(row: Row) -> str:
    """What a row is called where its surroundings are not known."""
    if row.level == "card":
        return f"{row.node}/{row.card if row.card is not None else row.uuid or 'no card'}"
    if row.level == "process":
        return f"{row.pid} {row.process or ''}".rstrip()
    if row.level in ("pod", "vgpu"):
        return f"{row.namespace}/{row.pod}" if row.namespace else "/".join(filter(None, (row.pod, row.container)))
    return str(getattr(row, row.level) or "(unknown)")


_DEPTHS = {group: {step.level: depth for depth, step in enumerate(steps)} for group, steps in GROUPS.items()}
_INDENT = tuple("  " * depth for depth in range(8))


def label(row: Row, group: str) -> str | Cell:
    """The first column: indented by level, without what the row above says already."""
    level, depths = row.level, _DEPTHS[group]
    depth = len(depths) - (not row.container) if level == "process" else depths[level]
    if level == "vgpu" and group == "pod":
        text = f"{row.node}/{row.card}"
    elif level == "pod" and group == "namespace":
        text = row.pod or ""
    else:
        text = name_of(row)
        if level == "card":
            text = f"{text.partition('/')[2] if group == 'node' else text} {model_name(row.model or '')}".rstrip()
    text = _INDENT[depth] + text
    if depth == 0:
        return Cell(text, "strong")
    return Cell(text, "dim") if row.state == "idle" else text


def queue(row: Row) -> str | Cell:
    return row.queue or ("" if row.level in ("node", "card") else UNKNOWN)


def vgpus(row: Row) -> str:
    if row.level == "vgpu" or row.vgpus is None:
        return ""
    return f"{row.vgpus}/{row.slots}" if row.slots is not None else str(row.vgpus)


def allocated(row: Row) -> str | Cell:
    if row.memory_allocated is not None:
        return gib(row.memory_allocated)
    return Cell(f"{row.memory_units} units", "dim") if row.memory_units else UNKNOWN


def memory(row: Row) -> str | Cell:
    text = pair(row.memory_used, row.cap)
    if row.memory_partial:
        text = f"≥{text}"
    if row.stale:
        return Cell(text, "dim")
    return Cell(text, "bad") if row.state == "over" and row.level in ("vgpu", "pod") else text


def share(row: Row) -> str | Cell:
    ratio = row.share
    if ratio is None:
        return UNKNOWN
    if ratio > 1:
        return Cell(f"{percent(ratio)}!", "bad", ratio)
    return Cell(percent(ratio), "dim" if row.stale or row.state == "idle" else MEMORY.style(ratio), ratio)


def cores(row: Row) -> str | Cell:
    used, cap = row.cores_used, row.cores_cap
    if used is None and cap is None:
        return UNKNOWN
    text = f"{'–' if used is None else round(used * 100)}/{'–' if cap is None else round(cap * 100)}%"
    if row.cores_partial:
        text = f"≥{text}"
    if used is None or row.stale:
        return Cell(text, "dim")
    return Cell(text, BUSY.style(used / cap) if cap else "")


def ratio(value: float | None, row: Row) -> str | Cell:
    if value is None:
        return UNKNOWN
    return Cell(percent(value), "dim" if row.stale else BUSY.style(value))


def throttled(row: Row) -> str | Cell:
    return "" if row.level in ("node", "card") else ratio(row.throttled, row)


def kernel(row: Row, at: float) -> str | Cell:
    if row.last_kernel is None:
        return UNKNOWN if row.vgpus or row.level == "vgpu" else ""
    return Cell("never", "dim") if row.last_kernel == 0 else span(at - row.last_kernel)


def state(row: Row) -> Cell:
    mark = MARKS.get(row.state, "")
    text = f"{row.state}{f' {mark}' if mark else ''}"
    return Cell(f"{text} (stale)" if row.stale else text, STYLES.get(row.state, ""))


def age(row: Row, at: float) -> str | Cell:
    return UNKNOWN if row.at is None else span(at - row.at)


@dataclass(frozen=True)
class Shown:
    """A row and what its cells need of the whole."""

    row: Row
    group: str
    at: float


def rows(usage: Usage) -> list[Shown]:
    return [Shown(row, usage.group, usage.at) for row in usage.rows]


def _optional(value: object) -> str | Cell:
    return UNKNOWN if value is None else str(value)


def _gib(size: int | None) -> str | Cell:
    return UNKNOWN if size is None else gib(size)


COLUMNS = (
    Column("NAME", lambda s: label(s.row, s.group), shrink=30),
    Column("QUEUE", lambda s: queue(s.row), shrink=8, drop=5),
    Column("VGPUS", lambda s: vgpus(s.row), right=True, drop=4),
    Column("ALLOCATED", lambda s: allocated(s.row), right=True, drop=7),
    Column("MEMORY USED", lambda s: memory(s.row), right=True, drop=1),
    Column("MEM%", lambda s: share(s.row), right=True),
    Column("CORES", lambda s: cores(s.row), right=True),
    Column("BUSY", lambda s: ratio(s.row.busy, s.row), right=True, drop=6),
    Column("THROTTLED", lambda s: throttled(s.row), right=True, drop=8),
    Column("KERNEL", lambda s: kernel(s.row, s.at), right=True, drop=3),
    Column("STATE", lambda s: state(s.row), drop=2),
    Column("FREE", lambda s: _gib(s.row.memory_free), wide=True, right=True),
    Column("LIMIT", lambda s: _gib(s.row.memory_limit), wide=True, right=True),
    Column("UNITS", lambda s: _optional(s.row.memory_units), wide=True, right=True),
    Column("PROCS", lambda s: _optional(s.row.processes), wide=True, right=True),
    Column("READ", lambda s: age(s.row, s.at), wide=True, right=True),
    Column("CONTAINER", lambda s: s.row.container or "", wide=True),
    Column("UUID", lambda s: s.row.uuid or "", wide=True),
    Column("REASON", lambda s: s.row.reason, wide=True),
)


def totals(usage: Usage) -> str:
    """One line of sums."""
    t = usage.totals
    parts = []
    if t.nodes:
        parts.append(f"{t.nodes} node{_plural(t.nodes)}")
    if t.cards:
        parts.append(f"{t.cards} card{_plural(t.cards)}")
    slots = f" of {t.slots}" if t.slots is not None else ""
    parts.append(f"{t.vgpus}{slots} vGPU{_plural(t.slots if t.slots is not None else t.vgpus)}")
    parts.append(f"allocated {_of(t.memory_allocated, t.memory_total)}")
    used = _of(t.memory_used, t.memory_total)
    parts.append(f"used {'≥' if t.partial and t.memory_used is not None else ''}{used}")
    if t.busy is not None:
        parts.append(f"busy {percent(t.busy)}")
    parts += [f"{count} {word}" for count, word in ((t.idle, "idle"), (t.over, "over the limit")) if count]
    return ", ".join(parts)


def _plural(count: int) -> str:
    return "" if count == 1 else "s"


def _of(part: int | None, whole: int | None) -> str:
    text = pair(part, whole) if whole is not None else "–" if part is None else gib(part)
    return f"{text} ({percent(part / whole)})" if part is not None and whole else text


def free(usage: Usage) -> str:
    """Where the largest vGPU still fits."""
    t = usage.totals
    if t.largest_free is None:
        return ""
    if t.largest_free == 0:
        return "largest free vGPU: none, every card is full"
    return f"largest free vGPU: {gib(t.largest_free)} on {t.largest_free_node}/{t.largest_free_card}"


def pending(usage: Usage, most: int = 5) -> str:
    """The pods that wait, the longest first."""
    pods = sorted(usage.pending, key=lambda pod: pod.since or usage.at)
    if not pods:
        return ""
    names = [
        f"{pod.namespace}/{pod.pod}{f' ({span(usage.at - pod.since)})' if pod.since else ''}" for pod in pods[:most]
    ]
    more = f" and {len(pods) - most} more" if len(pods) > most else ""
    return f"{len(pods)} pending: {', '.join(names)}{more}"


def footer(usage: Usage) -> list[str]:
    lines = ["", totals(usage), free(usage), pending(usage), *(f"note: {note}" for note in usage.notes)]
    return [lines[0], *filter(None, lines[1:]), f"source: {usage.source}"]


def _name(shown: Shown) -> str:
    return name_of(shown.row) if shown.row.level == GROUPS[shown.group][0].level else ""


VIEWS = {
    "Usage": View(
        rows=rows,
        columns=COLUMNS,
        name=_name,
        footer=footer,
        records=lambda usage: usage.rows,
        empty="nobody uses a vGPU here",
    )
}
