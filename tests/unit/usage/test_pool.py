"""The join of a pool's facts: what is known is right, what nobody told stays unknown with its reason."""

from __future__ import annotations

import msgspec
import pytest

from tests.unit.usage.pools import GIB, NOW, OTHER, UUID, config, facts, node, pod, sample, scrape
from vgpuctl.model import kube
from vgpuctl.model.reading import Missing
from vgpuctl.model.usage.pool import pool
from vgpuctl.model.usage.row import Row
from vgpuctl.model.usage.sample import CardSample


def only(*pods: kube.Pod, **parts: object) -> Row:
    (row,) = pool(facts(*pods, **parts)).vgpus
    return row


def test_a_vgpu_joins_annotation_card_and_monitor() -> None:
    row = only(pod(), metrics=(scrape(sample()),))
    assert (row.node, row.card, row.uuid, row.model) == ("n1", 0, UUID, "Tesla T4")
    assert (row.namespace, row.pod, row.container, row.queue) == ("team", "p", "main", "default")
    assert (row.memory_used, row.memory_limit, row.memory_allocated) == (5 * GIB, 10 * GIB, 1024 * 10 << 20)
    assert (row.memory_units, row.cores_used, row.cores_allocated) == (1024, 0.3, 0.5)
    assert (row.state, row.stale, row.reason) == ("active", False, "")


def test_throttled_is_unknown_until_a_library_publishes_it() -> None:
    assert only(pod(), metrics=(scrape(sample()),)).throttled is None
    assert only(pod(), metrics=(scrape(sample(throttled=0.2)),)).throttled == 0.2


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        ({}, "active"),
        ({"memory_used": 11 * GIB}, "over"),
        ({"last_kernel": NOW - 61}, "idle"),
        ({"last_kernel": 0.0}, "idle"),
        ({"last_kernel": None}, "active"),
        ({"last_kernel": None, "cores_used": 0.0}, "idle"),
        ({"last_kernel": None, "cores_used": None}, "unknown"),
    ],
)
def test_the_state_that_figures_speak_of(fields: dict[str, object], state: str) -> None:
    assert only(pod(), metrics=(scrape(sample(**fields)),)).state == state


@pytest.mark.parametrize(
    ("made", "state"),
    [
        (pod(phase="Pending"), "waiting"),
        (pod(deleted=True), "ending"),
    ],
    ids=["no container runs yet", "being deleted"],
)
def test_the_state_that_the_pod_speaks_of(made: kube.Pod, state: str) -> None:
    assert only(made, metrics=(scrape(sample(memory_used=11 * GIB)),)).state == state


def test_finished_pods_hold_nothing() -> None:
    assert not pool(facts(pod(phase="Succeeded"), pod("q", phase="Failed"))).vgpus


@pytest.mark.parametrize(
    ("metrics", "reason"),
    [
        ("no permission for pods/proxy", "no permission for pods/proxy"),
        ((), "no monitor answers"),
        ((scrape(),), "does not list it"),
        ((scrape(reason="did not answer within 3 s"),), "did not answer within 3 s"),
    ],
)
def test_use_that_nobody_told_is_unknown_and_says_why(metrics: object, reason: str) -> None:
    row = only(pod(), metrics=metrics)
    assert (row.memory_used, row.cores_used, row.last_kernel, row.state) == (None, None, None, "unknown")
    assert reason in row.reason


@pytest.mark.parametrize(
    ("answer", "stale"),
    [
        (scrape(sample()), False),
        (scrape(sample(), at=NOW - 31), True),
        (scrape(sample(), at=NOW - 5, late=True), True),
    ],
    ids=["fresh", "old", "late"],
)
def test_old_figures_are_marked(answer: object, stale: bool) -> None:
    row = only(pod(), metrics=(answer,))
    assert row.stale is stale
    assert row.memory_used == 5 * GIB


@pytest.mark.parametrize(
    ("configmaps", "note"),
    [
        ("no permission to list configmaps", "no permission to list configmaps"),
        ((), "there is no ConfigMap"),
        ((config(0),), "no usable gpuMemoryFactor"),
        ((config("ten"),), "no usable gpuMemoryFactor"),
        ((config("[1"),), "no usable gpuMemoryFactor"),
    ],
)
def test_without_the_factor_memory_stays_in_units(configmaps: object, note: str) -> None:
    holdings = pool(facts(pod(), configmaps=configmaps))
    (row,) = holdings.vgpus
    assert (row.memory_allocated, row.memory_units) == (None, 1024)
    assert any(note in text for text in holdings.notes)


def test_the_queue_follows_volcanos_rule() -> None:
    group = msgspec.convert({"metadata": {"name": "g", "namespace": "team"}, "spec": {"queue": "q1"}}, kube.PodGroup)
    space = msgspec.convert(
        {"metadata": {"name": "team", "annotations": {"scheduling.volcano.sh/queue-name": "q3"}}}, kube.Namespace
    )
    in_group = {"scheduling.k8s.io/group-name": "g"}
    own = {"scheduling.volcano.sh/queue-name": "q2"}
    known = {"podgroups": (group,), "namespaces": (space,)}
    assert only(pod(**in_group, **own), **known).queue == "q1"
    assert only(pod(**{"scheduling.volcano.sh/group-name": "g"}), **known).queue == "q1"
    assert only(pod(**own), **known).queue == "q2"
    assert only(pod(**{"scheduling.k8s.io/group-name": "gone"}), **known).queue == "q3"
    assert only(pod(), **known).queue == "q3"
    assert only(pod("p", "elsewhere"), **known).queue == "default"
    assert only(pod(**in_group), podgroups="no permission", namespaces=(space,)).queue is None
    assert only(pod(), podgroups=(group,), namespaces="no permission").queue is None


def test_several_containers_and_cards() -> None:
    ids = f"{UUID},NVIDIA,1024,50:{OTHER},NVIDIA,1024,50:;{OTHER},NVIDIA,512,10:;"
    rows = pool(facts(pod(ids=ids, containers=("a", "b")), nodes=(node("n1", UUID, OTHER),))).vgpus
    assert [(row.container, row.card, row.memory_units) for row in rows] == [
        ("a", 0, 1024),
        ("a", 1, 1024),
        ("b", 1, 512),
    ]


def test_a_mig_slice_lies_on_its_card() -> None:
    row = only(pod(ids=f"{UUID}[group1-2],NVIDIA,1024,50:"))
    assert (row.card, row.uuid) == (0, f"{UUID}[group1-2]")


@pytest.mark.parametrize(
    ("ids", "reason"), [(None, "no card was allocated"), ("GPU-x,NVIDIA,many,50:", "broken allocation")]
)
def test_a_bound_pod_without_a_card_is_a_row_with_the_reason(ids: str | None, reason: str) -> None:
    row = only(pod(ids=ids))
    assert (row.node, row.uuid, row.memory_allocated) == ("n1", None, None)
    assert reason in row.reason


def test_pods_that_ask_for_no_vgpu_are_left_out() -> None:
    plain = msgspec.convert({"metadata": {"name": "web"}, "spec": {"nodeName": "n1", "containers": [{}]}}, kube.Pod)
    holdings = pool(facts(plain))
    assert (holdings.vgpus, holdings.pending) == ([], [])


def test_pending_pods_are_told_with_their_age() -> None:
    (waiting,) = pool(facts(pod(ids=None, node="", phase="Pending", containers=("a", "b")))).pending
    assert (waiting.namespace, waiting.pod, waiting.vgpus) == ("team", "p", 2)
    assert waiting.since == NOW - 120


def test_what_a_card_could_still_take() -> None:
    cards = pool(facts(pod(), pod("q", ids=f"{OTHER},NVIDIA,100,100:"), nodes=(node("n1", UUID, OTHER),))).cards
    assert cards[("n1", UUID)].memory_free == (8000 - 1024) * 10 << 20
    assert cards[("n1", OTHER)].memory_free == 0, "all of its compute is booked"


def test_free_is_unknown_when_only_some_pods_were_read() -> None:
    assert pool(facts(pod(), scope="namespace team")).cards[("n1", UUID)].memory_free is None


@pytest.mark.parametrize(
    ("made", "state", "reason"),
    [
        (node(), "ready", ""),
        (node(conditions=[]), "not ready", ""),
        (node(allocatable={}), "unhealthy", "offers no vGPU"),
        (node(register="GPU-1,10"), "unhealthy", "it holds no `:`"),
        (node(register="GPU-1,10:"), "unhealthy", "fields"),
    ],
)
def test_nodes_that_do_not_work_say_so(made: kube.Node, state: str, reason: str) -> None:
    row = pool(facts(nodes=(made,))).nodes["n1"]
    assert row.state == state
    assert reason in row.reason


def test_a_card_shows_what_the_driver_said() -> None:
    answer = scrape(cards=(CardSample(UUID, 3 * GIB, 0.4),))
    card = pool(facts(metrics=(answer,))).cards[("n1", UUID)]
    assert (card.memory_used, card.busy, card.memory_total) == (3 * GIB, 0.4, 8000 * 10 << 20)


@pytest.mark.parametrize("register", ["", "garbage", "GPU-1,10", "GPU-1,10:", ":", "[red]\x1b[31m"])
def test_the_cards_of_a_register_annotation_that_nobody_can_read_are_unknown_not_none(register: str) -> None:
    row = pool(facts(nodes=(node(register=register),))).nodes["n1"]
    assert (row.cards, row.slots, row.memory_used, row.memory_total) == (None, None, None, None)
    assert row.reason


def test_without_permission_for_nodes_the_pods_are_still_shown() -> None:
    holdings = pool(facts(pod(), nodes="no permission to list nodes"))
    assert [row.node for row in holdings.vgpus] == ["n1"]
    assert any("no permission to list nodes" in note for note in holdings.notes)


def test_without_pods_there_is_nothing_to_show() -> None:
    with pytest.raises(Missing, match="no permission"):
        pool(facts(pods="no permission to list pods"))
