"""The holdings of one machine: cards and processes as its driver (NVML) lists them, vGPUs as their region files claim.

Where both speak of the same memory the driver's figure is shown, and the region's beside it if they differ.
"""

from __future__ import annotations

from collections.abc import Mapping

from vgpuctl.model.card import BrokenCard, Card, Process
from vgpuctl.model.facts import Facts
from vgpuctl.model.reading import Missing
from vgpuctl.model.region import Region, RegionFile, Slot
from vgpuctl.model.region_core import CoreCard
from vgpuctl.model.usage import accounting
from vgpuctl.model.usage.holdings import CardKey, Holdings
from vgpuctl.model.usage.pool import STALE_AFTER, use_state
from vgpuctl.model.usage.row import Row


def machine(facts: Facts) -> Holdings:
    """Joins the facts of this machine. Raises Missing when neither its cards nor its regions can be read."""
    if facts.cards.value is None and not facts.regions.value:
        raise Missing(facts.cards.reason, facts.cards.source)
    node = facts.host.value.name if facts.host.value else "this machine"
    listed = facts.cards.value or ()
    cards: dict[CardKey, Row] = {(node, card.uuid): _card(node, card, facts.now) for card in listed}
    for broken in facts.driver.value.broken if facts.driver.value else ():
        row = _broken(node, broken)
        cards[(node, row.uuid)] = row
    names = _pod_names(facts)
    vgpus: list[Row] = []
    processes: dict[object, list[Row]] = {}
    covered: set[tuple[str, int]] = set()
    for file in facts.regions.value or ():
        region = file.region.value
        if region is None:
            vgpus.append(_unreadable(node, file, names))
            continue
        for number, uuid in enumerate(region.uuids):
            card = next((card for card in listed if card.uuid == uuid), None)
            rows = accounting.inside(region, number, card)
            covered |= {(uuid, process.pid) for process, _ in rows}
            row = _vgpu(node, file, region, number, card, rows, names, facts.now)
            vgpus.append(row)
            processes[row.key] = [_process(node, card, process, row) for process, _ in rows if card]
    for card in listed:
        others = (process for process in card.processes.value or () if (card.uuid, process.pid) not in covered)
        vgpus += [_process(node, card, process) for process in others]
    notes = [
        f"{name} unknown: {r.reason}" for name, r in (("cards", facts.cards), ("vGPUs", facts.regions)) if not r.known
    ]
    nodes = {node: _node(node, list(cards.values()), facts.now)}
    return Holdings(
        facts.source, facts.now, nodes, cards, vgpus, processes, [], tuple(notes), whole=facts.regions.known
    )


def _card(node: str, card: Card, now: float) -> Row:
    return Row(
        level="card",
        node=node,
        card=card.index,
        uuid=card.uuid,
        model=card.model,
        cards=1,
        memory_used=card.used.value,
        memory_total=card.memory,
        busy=card.busy.value,
        processes=len(card.processes.value) if card.processes.value is not None else None,
        state="ready",
        at=now,
        reason=card.used.reason or card.busy.reason or card.processes.reason,
    )


def _broken(node: str, card: BrokenCard) -> Row:
    name = card.name or f"card {card.index}"
    return Row(level="card", node=node, card=card.index, uuid=name, cards=1, state="unhealthy", reason=card.reason)


def _node(node: str, cards: list[Row], now: float) -> Row:
    used = [card.memory_used for card in cards]
    total = [card.memory_total for card in cards]
    busy = [card.busy for card in cards if card.busy is not None]
    return Row(
        level="node",
        node=node,
        cards=len(cards),
        memory_used=None if None in used else sum(filter(None, used)),
        memory_total=None if None in total else sum(filter(None, total)),
        busy=sum(busy) / len(busy) if busy and len(busy) == len(cards) else None,
        state="ready",
        at=now,
    )


def _vgpu(
    node: str,
    file: RegionFile,
    region: Region,
    number: int,
    card: Card | None,
    rows: list[tuple[Process, Slot]],
    names: Mapping[str, tuple[str, str]],
    now: float,
) -> Row:
    alive = [slot for slot in region.slots if slot.alive is not False]
    claimed = region.used(number, stale=False)
    evidence = accounting.evidence(region, rows)
    used = claimed if evidence is None else evidence
    core = _core(file, region.uuids[number], now)
    busy = [process.busy for process, _ in rows]
    cores: float | None = min(sum(slot.busy[number] for slot in alive) / 100, 1.0)
    if core and core.share_1s is not None:
        cores = core.share_1s
    elif busy and None not in busy and len(busy) == len(alive):
        cores = min(sum(filter(None, busy)), 1.0)
    limit = region.limits[number]
    last = float(region.last_kernel or 0)
    namespace, pod = names.get(file.pod, (None, file.pod or None))
    share = region.cores[number]
    return Row(
        level="vgpu",
        node=node,
        card=card.index if card else None,
        uuid=region.uuids[number],
        model=card.model if card else None,
        namespace=namespace,
        pod=pod,
        container=file.container or file.path,
        vgpus=1,
        memory_used=used,
        memory_limit=limit,
        cores_used=cores,
        cores_limit=None if share is None else share / 100,
        busy=core.share_60s if core else None,
        throttled=_throttled(file, region.uuids[number], now),
        last_kernel=last,
        processes=len(alive),
        state=use_state(used, limit, cores, last, now),
        at=now,
        reason=_odd(region, claimed, evidence),
    )


def _core(file: RegionFile, uuid: str, now: float) -> CoreCard | None:
    """What the library publishes of its core limit, unless it is old."""
    card = file.core.value.card(uuid) if file.core.value else None
    fresh = card is not None and card.share_time is not None and now - card.share_time <= STALE_AFTER
    return card if fresh else None


def _throttled(file: RegionFile, uuid: str, now: float) -> float | None:
    """The share of time in which launches were held back: since the last look, at first since the file was made."""
    core, before = file.core.value, file.before.value
    card = core.card(uuid) if core else None
    if core is None or card is None:
        return None
    then, counted = float(core.created), 0.0
    earlier = before.card(uuid) if before and before.created == core.created else None
    if earlier and file.before.at is not None:
        then, counted = file.before.at, earlier.throttled
    passed = (file.core.at or now) - then
    return min(max(card.throttled - counted, 0.0) / passed, 1.0) if then and passed > 0 else None


def _odd(region: Region, claimed: int | None, evidence: int | None) -> str:
    if region.faults:
        return region.faults[0]
    if region.stale:
        return f"{len(region.stale)} slots of dead processes are not counted"
    if claimed is None or evidence is None:
        return ""
    if accounting.differ(claimed, evidence):
        return f"the region claims {claimed >> 20} MiB, the driver says {evidence >> 20} MiB"
    return ""


def _unreadable(node: str, file: RegionFile, names: Mapping[str, tuple[str, str]]) -> Row:
    namespace, pod = names.get(file.pod, (None, file.pod or None))
    return Row(
        level="vgpu",
        node=node,
        namespace=namespace,
        pod=pod,
        container=file.container or file.path,
        vgpus=1,
        reason=f"{file.path}: {file.region.reason}",
    )


def _process(node: str, card: Card | None, process: Process, vgpu: Row | None = None) -> Row:
    return Row(
        level="process",
        node=node,
        card=card.index if card else None,
        uuid=card.uuid if card else None,
        model=card.model if card else None,
        namespace=vgpu.namespace if vgpu else None,
        pod=vgpu.pod if vgpu else None,
        container=vgpu.container if vgpu else None,
        memory_used=process.memory,
        cores_used=process.busy,
        processes=1,
        pid=process.pid,
        process=process.name or None,
        state="unknown" if process.busy is None else "active" if process.busy > 0 else "idle",
        at=vgpu.at if vgpu else None,
    )


def _pod_names(facts: Facts) -> dict[str, tuple[str, str]]:
    """pod UID → its namespace and name, where the API told."""
    return {pod.metadata.uid: (pod.metadata.namespace, pod.metadata.name) for pod in facts.pods.value or ()}
