"""The holdings of a pool: nodes and cards from the register annotations, vGPUs from the pods' allocation annotations,
their use from what the nodes' monitors said."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from vgpuctl.model import annotation, kube
from vgpuctl.model.facts import Facts
from vgpuctl.model.pool import ENDED
from vgpuctl.model.reading import Reading
from vgpuctl.model.usage.free import with_free
from vgpuctl.model.usage.holdings import CardKey, Holdings
from vgpuctl.model.usage.names import Names, names_of
from vgpuctl.model.usage.queues import Queues, queues
from vgpuctl.model.usage.row import PendingPod, Row, State
from vgpuctl.model.usage.sample import UUID_LENGTH, CardSample, Scrape, VgpuSample

STALE_AFTER = 30.0
"""Seconds after which a figure of use is old."""
IDLE_AFTER = 60.0
"""Seconds without a kernel after which a vGPU is idle."""
_NOTHING = VgpuSample("", "", "", "")


@dataclass(frozen=True)
class _Use:
    """The monitors' answers by what they are about. silent: why a node's figures are missing; reason: of all others."""

    vgpus: Mapping[tuple[str, str, str, str], tuple[VgpuSample, Scrape]]
    cards: Mapping[tuple[str, str], tuple[CardSample, Scrape]]
    silent: Mapping[str | None, str]
    heard: frozenset[str | None]
    reason: str

    def why_not(self, node: str | None) -> str:
        """Why there are no figures of a vGPU on a node."""
        if node in self.silent:
            return self.silent[node]
        return "its monitor does not list it: no CUDA call yet, or no library" if node in self.heard else self.reason


def pool(facts: Facts) -> Holdings:
    """Joins the facts of a cluster.

    Raises Missing when the pods are unknown; every other gap is a note, or a reason on the rows.
    """
    pods: Sequence[kube.Pod] = facts.pods.need()
    names, notes = names_of(facts)
    use = _use(facts.metrics)
    nodes, cards = _places(facts.nodes.value or (), names, use, facts.now)
    rule = queues(facts)
    vgpus: list[Row] = []
    pending: list[PendingPod] = []
    for pod in pods:
        if pod.status.phase in ENDED:
            continue
        held = (pod.metadata.annotations or {}).get(annotation.IDS)
        if pod.spec.node_name or held:
            vgpus += _vgpus(pod, held or "", cards, names, rule, use, facts.now)
        elif asked := sum(map(names.asked, pod.spec.containers)):
            created = annotation.decode_time(pod.metadata.creation_timestamp or "")
            pending.append(
                PendingPod(
                    namespace=pod.metadata.namespace,
                    pod=pod.metadata.name,
                    queue=rule.of(pod),
                    vgpus=asked,
                    since=created,
                )
            )
    if not facts.scope:
        with_free(nodes, cards, vgpus)
    return Holdings(facts.source, facts.now, nodes, cards, vgpus, {}, pending, (*notes, *_gaps(facts)), not facts.scope)


def _use(reading: Reading[tuple[Scrape, ...]]) -> _Use:
    scrapes = reading.value or ()
    return _Use(
        vgpus={(v.namespace, v.pod, v.container, v.uuid): (v, scrape) for scrape in scrapes for v in scrape.vgpus},
        cards={(scrape.node, card.uuid): (card, scrape) for scrape in scrapes for card in scrape.cards},
        silent={scrape.node: scrape.reason for scrape in scrapes if scrape.reason},
        heard=frozenset(scrape.node for scrape in scrapes),
        reason=reading.reason or "no monitor answers for its node",
    )


def _gaps(facts: Facts) -> Iterator[str]:
    """What could not be read, one sentence each."""
    for name, reading in (("nodes", facts.nodes), ("PodGroups", facts.podgroups), ("use", facts.metrics)):
        if reading.value is None:
            yield f"{name} unknown: {reading.reason}"
        elif reading.note:
            yield f"{name}: {reading.note}"
    if facts.pods.note:
        yield f"pods: {facts.pods.note}"


def _places(
    items: Sequence[kube.Node], names: Names, use: _Use, now: float
) -> tuple[dict[str, Row], dict[CardKey, Row]]:
    nodes: dict[str, Row] = {}
    cards: dict[CardKey, Row] = {}
    for item in items:
        text = item.metadata.annotation(annotation.REGISTER)
        if text is None:
            continue
        register = annotation.decode_register(text)
        name = item.metadata.name
        own = [_card(name, card, names, use, now) for card in register.cards]
        cards.update({(name, card.uuid): card for card in own})
        nodes[name] = _node(item, own, register.error, names)
    return nodes, cards


def _card(node: str, card: annotation.RegisteredCard, names: Names, use: _Use, now: float) -> Row:
    sample, scrape = use.cards.get((node, card.uuid[:UUID_LENGTH]), (None, None))
    return Row(
        level="card",
        node=node,
        card=card.index,
        uuid=card.uuid,
        model=card.model,
        cards=1,
        slots=card.count,
        memory_used=sample.memory_used if sample else None,
        memory_total=names.bytes(card.memory),
        busy=sample.busy if sample else None,
        state="ready" if card.healthy else "unhealthy",
        at=scrape.at if scrape else None,
        stale=_stale(scrape, now),
        reason="" if card.healthy else "registered as unhealthy",
    )


def _stale(scrape: Scrape | None, now: float) -> bool:
    return scrape is not None and (scrape.late or now - scrape.at > STALE_AFTER)


def _node(item: kube.Node, cards: list[Row], error: str, names: Names) -> Row:
    ready = any(c.type == "Ready" and c.status == "True" for c in item.status.conditions or ())
    offered = (item.status.allocatable or {}).get(names.resources.number, "0")
    reason = error or ("it offers no vGPU to pods" if offered == "0" else "")
    used = [card.memory_used for card in cards]
    total = [card.memory_total for card in cards]
    busy = [card.busy for card in cards]
    unread = bool(error) and not cards
    state: State = "not ready" if not ready else "cordoned" if item.spec.unschedulable else "ready"
    return Row(
        level="node",
        node=item.metadata.name,
        model=next((card.model for card in cards), None),
        cards=None if unread else len(cards),
        slots=None if unread else sum(card.slots or 0 for card in cards),
        memory_used=None if unread or None in used else sum(filter(None, used)),
        memory_total=None if unread or None in total else sum(filter(None, total)),
        busy=sum(filter(None, busy)) / len(busy) if busy and None not in busy else None,
        state=state if not reason else "unhealthy" if ready else state,
        at=min((card.at for card in cards if card.at is not None), default=None),
        stale=any(card.stale for card in cards),
        reason=reason,
    )


def _vgpus(
    pod: kube.Pod,
    held: str,
    cards: dict[CardKey, Row],
    names: Names,
    rule: Queues,
    use: _Use,
    now: float,
) -> Iterator[Row]:
    """A row for each vGPU of a bound pod, and one without a card for a container that got none."""
    asking = [container.name for container in pod.spec.containers if names.asked(container)]
    if not asking and not held:
        return
    node = pod.spec.node_name or (pod.metadata.annotations or {}).get(annotation.NODE)
    allocations = annotation.decode_allocations(held)
    queue = rule.of(pod)
    for number, container in enumerate(filter(None, allocations.containers)):
        name = asking[number] if number < len(asking) else ""
        for vgpu in container:
            yield _vgpu(pod, name, node, queue, vgpu, cards, names, use, now)
    if not allocations.all:
        for name in asking:
            yield Row(
                level="vgpu",
                node=node,
                namespace=pod.metadata.namespace,
                pod=pod.metadata.name,
                container=name,
                queue=queue,
                vgpus=1,
                state="waiting" if pod.status.phase == "Pending" else "unknown",
                reason=f"broken allocation {allocations.broken[0]!r}"
                if allocations.broken
                else "bound to the node, but no card was allocated",
            )


def _vgpu(
    pod: kube.Pod,
    container: str,
    node: str | None,
    queue: str | None,
    vgpu: annotation.Allocation,
    cards: dict[CardKey, Row],
    names: Names,
    use: _Use,
    now: float,
) -> Row:
    meta = pod.metadata
    uuid = vgpu.card if "[" in vgpu.uuid else vgpu.uuid
    place = cards.get((node, uuid))
    found = use.vgpus.get((meta.namespace, meta.name, container, uuid[:UUID_LENGTH]))
    sample, scrape = found or (_NOTHING, None)
    allocated = names.bytes(vgpu.memory)
    cores = vgpu.cores / 100
    state = _state(pod, sample, allocated, now)
    return Row(
        level="vgpu",
        node=node,
        card=place.card if place else None,
        uuid=vgpu.uuid,
        model=place.model if place else None,
        namespace=meta.namespace,
        pod=meta.name,
        container=container,
        queue=queue,
        vgpus=1,
        memory_used=sample.memory_used,
        memory_limit=sample.memory_limit,
        memory_allocated=allocated,
        memory_units=vgpu.memory,
        cores_used=sample.cores_used,
        cores_limit=sample.cores_limit,
        cores_allocated=cores,
        busy=sample.busy,
        throttled=sample.throttled,
        last_kernel=sample.last_kernel,
        state=state,
        at=scrape.at if scrape else None,
        stale=_stale(scrape, now),
        reason=sample.reason or ("" if found or state == "waiting" else use.why_not(node)),
    )


def _state(pod: kube.Pod, sample: VgpuSample, allocated: int | None, now: float) -> State:
    if pod.metadata.deletion_timestamp:
        return "ending"
    if pod.status.phase == "Pending":
        return "waiting"
    return use_state(sample.memory_used, sample.memory_limit or allocated, sample.cores_used, sample.last_kernel, now)


def use_state(used: int | None, limit: int | None, cores: float | None, last_kernel: float | None, now: float) -> State:
    """The state that figures of use speak of."""
    if used is not None and limit and used > limit:
        return "over"
    if last_kernel is not None:
        return "active" if now - last_kernel <= IDLE_AFTER else "idle"
    if cores is not None:
        return "active" if cores > 0 else "idle"
    return "unknown"
