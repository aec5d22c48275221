"""What the monitors of the demo's nodes would answer at a moment."""

from __future__ import annotations

from vgpuctl.model.usage.sample import CardSample, Scrape, VgpuSample
from vgpuctl.sources.demo.behaviour import BEHAVIOURS
from vgpuctl.sources.demo.plan import Node, Plan, Pod

_DRIVER = 640 << 20
"""Bytes that the driver itself holds on a card."""


def scrapes(plan: Plan, at: float) -> tuple[Scrape, ...]:
    """One answer of each node's monitor."""
    pods = list(plan.pods())
    return tuple(_scrape(node, [pod for pod in pods if pod.node is node], at) for node in plan.nodes)


def _scrape(node: Node, pods: list[Pod], at: float) -> Scrape:
    vgpus = tuple(sample for pod in pods for sample in _samples(pod, at))
    cards = []
    for card in range(node.cards):
        mine = [vgpu for vgpu in vgpus if vgpu.uuid == node.uuid(card)]
        memory = sum(vgpu.memory_used or 0 for vgpu in mine)
        cores = sum(vgpu.cores_used or 0.0 for vgpu in mine)
        cards.append(CardSample(node.uuid(card), min(memory + _DRIVER, node.memory << 20), round(min(cores, 1.0), 2)))
    return Scrape(node.name, at, tuple(cards), vgpus)


def _samples(pod: Pod, at: float) -> list[VgpuSample]:
    behaviour = BEHAVIOURS.get(pod.workload.does)
    if behaviour is None or pod.node is None:
        return []
    cores = pod.workload.cores / 100
    samples = []
    for card in pod.cards:
        seed = f"{pod.name}/{card}"
        use = behaviour(seed, at, cores)
        minute = [behaviour(seed, at - ago, cores).cores for ago in range(0, 60, 15)]
        samples.append(
            VgpuSample(
                namespace=pod.workload.team,
                pod=pod.name,
                container=pod.container,
                uuid=pod.node.uuid(card),
                memory_used=int(pod.limit * use.memory),
                memory_limit=pod.limit,
                cores_used=round(use.cores, 2),
                cores_limit=cores,
                busy=round(sum(minute) / len(minute), 2),
                throttled=round(use.throttled, 2),
                last_kernel=use.last_kernel,
            )
        )
    return samples
