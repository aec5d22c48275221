"""Groups, sums, sort keys and filters of a table of use."""

from __future__ import annotations

import pytest

from tests.unit.usage.pools import GIB, OTHER, UUID, facts, node, pod, sample, scrape
from vgpuctl.model.usage.arrange import GROUPS, arrange
from vgpuctl.model.usage.filter import Filter
from vgpuctl.model.usage.holdings import Holdings
from vgpuctl.model.usage.order import SORTS
from vgpuctl.model.usage.pool import pool
from vgpuctl.model.usage.row import Usage
from vgpuctl.model.usage.sample import CardSample


def holdings(**parts: object) -> Holdings:
    """Two nodes; a and b on one card, c of another team on the second node, which nobody watches."""
    pods = (
        pod("a"),
        pod("b", **{"scheduling.volcano.sh/queue-name": "fast"}),
        pod("c", "lab", ids=f"{OTHER},NVIDIA,2048,100:", node="n2"),
    )
    answer = scrape(sample("a", memory_used=GIB), sample("b", memory_used=3 * GIB, cores_used=0.5))
    return pool(facts(*pods, **{"nodes": (node("n2", OTHER), node("n1")), "metrics": (answer,), **parts}))


def names(usage: Usage) -> list[str]:
    return [
        {
            "node": row.node,
            "card": f"{row.node}/{row.card}",
            "pod": f"{row.namespace}/{row.pod}",
            "vgpu": f"- {row.pod}",
            "namespace": row.namespace,
            "queue": row.queue,
        }[row.level]
        or ""
        for row in usage.rows
    ]


@pytest.mark.parametrize(
    ("group", "wanted"),
    [
        ("node", ["n1", "n1/0", "- a", "- b", "n2", "n2/0", "- c"]),
        ("gpu", ["n1/0", "- a", "- b", "n2/0", "- c"]),
        ("pod", ["lab/c", "- c", "team/a", "- a", "team/b", "- b"]),
        ("namespace", ["lab", "lab/c", "team", "team/a", "team/b"]),
        ("queue", ["default", "lab/c", "team/a", "fast", "team/b"]),
    ],
)
def test_groups_hold_their_rows(group: str, wanted: list[str]) -> None:
    assert names(arrange(holdings(), group)) == wanted


def test_every_group_is_tested() -> None:
    assert set(GROUPS) == {"node", "gpu", "pod", "namespace", "queue"}


def test_a_sum_with_an_unknown_part_is_a_lower_bound() -> None:
    rows = {row.queue: row for row in arrange(holdings(), "queue").rows if row.level == "queue"}
    assert (rows["default"].memory_used, rows["default"].memory_partial) == (GIB, True)
    assert (rows["fast"].memory_used, rows["fast"].memory_partial) == (3 * GIB, False)


def test_a_sum_of_unknown_parts_is_unknown() -> None:
    (row,) = (row for row in arrange(holdings(), "namespace").rows if row.namespace == "lab" and row.level != "pod")
    assert (row.memory_used, row.memory_partial, row.cores_used, row.last_kernel) == (None, False, None, None)
    assert row.memory_allocated == 20 * GIB


def test_a_card_shows_the_drivers_figure_not_the_sum() -> None:
    answer = scrape(sample("a", memory_used=GIB), cards=(CardSample(UUID, 7 * GIB, 0.9),))
    card = next(row for row in arrange(holdings(metrics=(answer,))).rows if row.level == "card")
    assert (card.memory_used, card.memory_partial, card.busy) == (7 * GIB, False, 0.9)


def test_a_container_that_has_not_started_is_no_gap_in_a_sum() -> None:
    held = pool(facts(pod("a"), pod("b", phase="Pending"), metrics=(scrape(sample("a")),)))
    row = arrange(held, "namespace").rows[0]
    assert (row.memory_used, row.memory_partial) == (5 * GIB, False)


def test_a_card_without_vgpus_is_free_but_its_use_is_known_only_if_someone_says_so() -> None:
    silent = next(row for row in arrange(pool(facts())).rows if row.level == "card")
    assert (silent.state, silent.vgpus, silent.cores_used, silent.memory_used) == ("free", 0, None, None)
    answer = scrape(cards=(CardSample(UUID, GIB, 0.0),))
    heard = next(row for row in arrange(pool(facts(metrics=(answer,)))).rows if row.level == "card")
    assert (heard.state, heard.cores_used, heard.memory_used) == ("free", 0.0, GIB)


@pytest.mark.parametrize(
    ("sort", "wanted"),
    [
        ("memory", ["b", "a", "c"]),
        ("-memory", ["a", "b", "c"]),
        ("allocated,name", ["c", "a", "b"]),
        ("queue,-name", ["a", "c", "b"]),
        ("cores", ["b", "a", "c"]),
    ],
)
def test_sorts_put_unknown_last_in_both_directions(sort: str, wanted: list[str]) -> None:
    rows = arrange(holdings(), "pod", sort).rows
    assert [row.pod for row in rows if row.level == "pod"] == wanted


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("group", GROUPS)
def test_every_sort_key_orders_every_group(sort: str, group: str) -> None:
    usual, turned = (arrange(holdings(), group, key).rows for key in (sort, f"-{sort}"))
    assert len(usual) == len(turned)


def test_sorting_is_natural_for_numbers_in_names() -> None:
    nodes = tuple(node(name, f"GPU-{name}") for name in ("gpu-10", "gpu-9", "gpu-1"))
    rows = arrange(pool(facts(nodes=nodes))).rows
    assert [row.node for row in rows if row.level == "node"] == ["gpu-1", "gpu-9", "gpu-10"]


def test_an_unknown_sort_key_is_named() -> None:
    with pytest.raises(ValueError, match="height"):
        arrange(holdings(), sort="memory,height")


@pytest.mark.parametrize(
    ("wanted", "pods"),
    [
        (Filter(), ["a", "b", "c"]),
        (Filter(namespaces=frozenset({"lab"})), ["c"]),
        (Filter(nodes=frozenset({"n1"})), ["a", "b"]),
        (Filter(queues=frozenset({"fast"})), ["b"]),
        (Filter(pods=frozenset({("team", "a")})), ["a"]),
        (Filter(text="LAB/"), ["c"]),
        (Filter(text="!lab/"), ["a", "b"]),
        (Filter(text="tesla"), ["a", "b", "c"]),
        (Filter(text="nothing like it"), []),
    ],
)
def test_filters(wanted: Filter, pods: list[str]) -> None:
    usage = arrange(holdings(), "node", wanted=wanted)
    assert [row.pod for row in usage.rows if row.level == "vgpu"] == pods
    assert usage.totals.vgpus == len(pods)


def test_a_filtered_node_sums_what_is_shown() -> None:
    usage = arrange(holdings(), wanted=Filter(queues=frozenset({"fast"})))
    assert [(row.level, row.vgpus, row.memory_allocated) for row in usage.rows] == [
        ("node", 1, 10 * GIB),
        ("card", 1, 10 * GIB),
        ("vgpu", 1, 10 * GIB),
    ]


def test_totals() -> None:
    waiting = pod("w", ids=None, node="", phase="Pending")
    held = pool(facts(pod("a"), waiting, metrics=(scrape(sample("a", memory_used=11 * GIB)),)))
    t = arrange(held).totals
    assert (t.nodes, t.cards, t.vgpus, t.slots, t.pending, t.over, t.idle) == (1, 1, 1, 10, 1, 1, 0)
    assert (t.memory_used, t.memory_allocated, t.memory_total) == (11 * GIB, 10 * GIB, 8000 * 10 << 20)
    assert (t.largest_free, t.largest_free_node, t.largest_free_card) == ((8000 - 1024) * 10 << 20, "n1", 0)
