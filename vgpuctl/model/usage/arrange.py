"""Groups, filters and sorts Holdings into a Usage. Groups are records in a table, levels from the outside in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from vgpuctl.model.usage.filter import Filter
from vgpuctl.model.usage.holdings import Holdings
from vgpuctl.model.usage.order import Keys, ordered, sort_keys
from vgpuctl.model.usage.row import Level, Row, Usage
from vgpuctl.model.usage.sums import group_row, totals


@dataclass(frozen=True)
class Step:
    """A level of a grouping. by: a vGPU's (or card's) group at this level; None: each vGPU is a row of its own."""

    level: Level
    by: Callable[[Row], object] | None


_NODE = Step("node", lambda row: row.node)
_CARD = Step("card", lambda row: (row.node, row.uuid))
_POD = Step("pod", lambda row: (row.namespace, row.pod))
_NAMESPACE = Step("namespace", lambda row: row.namespace)
_QUEUE = Step("queue", lambda row: row.queue)
_VGPU = Step("vgpu", None)

GROUPS: dict[str, tuple[Step, ...]] = {
    "node": (_NODE, _CARD, _VGPU),
    "gpu": (_CARD, _VGPU),
    "pod": (_POD, _VGPU),
    "namespace": (_NAMESPACE, _POD),
    "queue": (_QUEUE, _POD),
}
"""The groupings, each with its levels from the outermost to the innermost."""


def arrange(holdings: Holdings, group: str = "node", sort: str = "name", wanted: Filter = Filter()) -> Usage:
    """The rows of a table: each group followed by what is in it, sorted at each level.

    Raises KeyError for an unknown group, ValueError for an unknown sort key.
    """
    vgpus = [row for row in holdings.vgpus if wanted.takes(row)]
    pending = [pod for pod in holdings.pending if wanted.takes_pending(pod)]
    places = {
        "node": [row for row in holdings.nodes.values() if wanted.takes(row)],
        "card": [row for row in holdings.cards.values() if wanted.takes(row)],
    }
    rows = list(_unfold(vgpus, GROUPS[group], places, holdings, sort_keys(sort)))
    return Usage(
        source=holdings.source,
        at=holdings.at,
        group=group,
        rows=rows,
        pending=pending,
        totals=totals(holdings, vgpus, pending, wanted),
        notes=list(holdings.notes),
    )


def _unfold(
    vgpus: list[Row],
    steps: Sequence[Step],
    places: dict[str, list[Row]],
    holdings: Holdings,
    keys: Keys,
) -> Iterator[Row]:
    step = steps[0]
    if step.by is None:
        for row in ordered(vgpus, keys, _itself):
            yield row
            if holdings.processes:
                yield from ordered(holdings.processes.get(row.key, []), keys, _itself)
        return
    members: dict[object, list[Row]] = {step.by(place): [] for place in places.get(step.level, ())}
    for row in vgpus:
        members.setdefault(step.by(row), []).append(row)
    cards: dict[object, list[Row]] = {}
    if steps[1:] and steps[1].level == "card":
        for card in places["card"]:
            cards.setdefault(step.by(card), []).append(card)
    made = [(group_row(step.level, inside, holdings, identity), identity) for identity, inside in members.items()]
    for row, identity in ordered(made, keys, _first):
        yield row
        if steps[1:]:
            yield from _unfold(members[identity], steps[1:], {"card": cards.get(identity, [])}, holdings, keys)


def _itself(row: Row) -> Row:
    return row


def _first(pair: tuple[Row, object]) -> Row:
    return pair[0]
