"""What teams may use and what they use: quotas joined with what their pods hold; the Output of `quota list`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from vgpuctl.model import kube, pool
from vgpuctl.model.facts import Facts
from vgpuctl.model.output import Item, Output
from vgpuctl.model.pod.names import QUEUE
from vgpuctl.model.quantity import MIB, integer
from vgpuctl.model.quota.cap import COUNTED
from vgpuctl.model.quota.team import MANAGED_BY, MANAGER, TEAM
from vgpuctl.model.resource import ResourceNames, What

_UNCOUNTED = ("", "limits.")


class Amount(Item, frozen=True, kw_only=True):
    """vGPUs, memory (bytes, and in the pool's units) and cores (percent of a card); None: no limit, or not known."""

    number: int | None = None
    memory: int | None = None
    memory_units: int | None = None
    cores: int | None = None


class Share(Item, frozen=True, kw_only=True):
    """One quota, or a namespace that has none (name ""). hard and used: as the API server counts, used None while it
    does not. holds: what running pods really hold, count x per vGPU. pending: what pods without a node ask for.
    problems: what is wrong with the quota."""

    namespace: str
    name: str = ""
    team: str = ""
    priorities: list[str] = []
    managed: bool = False
    queue: str = ""
    hard: Amount = Amount()
    used: Amount | None = None
    holds: Amount | None = None
    pending: Amount | None = None
    pending_pods: int | None = None
    problems: list[str] = []


class QueueShare(Item, frozen=True, kw_only=True):
    """A Volcano Queue with vGPU amounts. allocated: as Volcano writes it into the status."""

    name: str
    parent: str = ""
    team: str = ""
    state: str = ""
    capability: Amount = Amount()
    deserved: Amount = Amount()
    guarantee: Amount = Amount()
    allocated: Amount = Amount()


class Quotas(Output, frozen=True, kw_only=True):
    """What `quota list` prints. factor: MiB per memory unit. unread: what could not be read, with the reason."""

    factor: int | None = None
    shares: list[Share] = []
    queues: list[QueueShare] = []
    unread: list[str] = []


@dataclass(frozen=True)
class Sum:
    """What pods ask for together. number, memory, cores: count x per vGPU. counted: as a quota counts them."""

    number: int = 0
    memory: int = 0
    cores: int = 0
    counted_memory: int = 0
    counted_cores: int = 0
    pods: int = 0

    def plus(self, other: Sum) -> Sum:
        return Sum(
            self.number + other.number,
            self.memory + other.memory,
            self.cores + other.cores,
            self.counted_memory + other.counted_memory,
            self.counted_cores + other.counted_cores,
            self.pods + other.pods,
        )


def asked(pod: kube.Pod, names: ResourceNames) -> Sum:
    """What one pod asks for. Containers without a memory limit ask for whole cards, whose size is not in the spec."""
    total = Sum(pods=1)
    for container in pod.spec.containers:
        limits = {what: integer(value) or 0 for what, value in pool.limits(container, names).items()}
        number = limits.get(What.NUMBER, 0)
        memory, cores = limits.get(What.MEMORY, 0), limits.get(What.CORES, 0)
        total = total.plus(Sum(number, number * memory, number * cores, memory, cores))
    return total


def total(pods: Iterable[kube.Pod], names: ResourceNames) -> Sum:
    """What pods ask for together."""
    whole = Sum()
    for pod in pods:
        whole = whole.plus(asked(pod, names))
    return whole


def uncounted(quota: kube.ResourceQuota, names: ResourceNames) -> Iterator[tuple[str, What]]:
    """The keys of a quota that name a vGPU resource and that the API server never counts."""
    for key in quota.spec.hard or {}:
        for prefix in _UNCOUNTED:
            what = names.what(key[len(prefix) :]) if key.startswith(prefix) else None
            if what:
                yield key, what


def priorities_of(quota: kube.ResourceQuota) -> list[str] | None:
    """The priority classes that a quota is for; None when it is for all pods."""
    selector = quota.spec.scope_selector
    for expression in (selector.match_expressions or []) if selector else []:
        if expression.get("scopeName") == "PriorityClass" and expression.get("operator", "In") == "In":
            return [str(value) for value in expression.get("values") or ()]
    return None


def join(facts: Facts, names: ResourceNames, factor: int | None) -> Quotas:
    """The quotas with vGPU amounts and the namespaces with vGPU pods; where the facts are narrowed, only the queues of
    these namespaces. Raises Missing when quotas are not known."""
    quotas = facts.quotas.need()
    unread = [
        f"{part}: {reading.reason}"
        for part, reading in (("pods", facts.pods), ("namespaces", facts.namespaces), ("queues", facts.queues))
        if not reading.known and not reading.absent
    ]
    if factor is None:
        unread.append(f"gpuMemoryFactor: {facts.configmaps.reason or 'no device configuration was found'}")
    joiner = _Joiner(facts, names, factor)
    shares = [joiner.share(quota) for quota in quotas if joiner.concerns(quota)]
    with_quota = {share.namespace for share in shares}
    shares += [joiner.unlimited(name) for name in joiner.namespaces() if name not in with_quota]
    shares.sort(key=lambda share: (share.namespace, share.name))
    used = {share.queue for share in shares}
    queues = [
        found
        for queue in facts.queues.value or ()
        if (found := joiner.queue(queue)) and (not facts.scope or queue.metadata.name in used)
    ]
    return Quotas(source=facts.source, factor=factor, shares=shares, queues=queues, unread=unread)


class _Joiner:
    """The facts by namespace, and the pool's names and factor."""

    def __init__(self, facts: Facts, names: ResourceNames, factor: int | None) -> None:
        self.names = names
        self.factor = factor
        self.spaces = {item.metadata.name: item.metadata for item in facts.namespaces.value or ()}
        self.pods: dict[str, list[kube.Pod]] | None = None if facts.pods.value is None else {}
        for pod in facts.pods.value or ():
            if self.pods is not None and pool.alive(pod) and pool.is_vgpu_pod(pod, names):
                self.pods.setdefault(pod.metadata.namespace, []).append(pod)

    def namespaces(self) -> list[str]:
        return sorted(self.pods or ())

    def concerns(self, quota: kube.ResourceQuota) -> bool:
        keys = quota.spec.hard or {}
        return any(f"{COUNTED}{name}" in keys for name in self.names.all) or any(uncounted(quota, self.names))

    def amount(self, values: Mapping[str, object] | None, prefix: str = COUNTED) -> Amount:
        found = {what: integer((values or {}).get(f"{prefix}{self.names.name(what)}")) for what in What}
        return self.of(found[What.NUMBER], found[What.MEMORY], found[What.CORES])

    def of(self, number: int | None, units: int | None, cores: int | None) -> Amount:
        size = units * self.factor * MIB if units is not None and self.factor else None
        return Amount(number=number, memory=size, memory_units=units, cores=cores)

    def share(self, quota: kube.ResourceQuota) -> Share:
        metadata = quota.metadata
        priorities = priorities_of(quota)
        mine = None
        if self.pods is not None:
            mine = [
                pod
                for pod in self.pods.get(metadata.namespace, ())
                if priorities is None or pod.spec.priority_class_name in priorities
            ]
        share = self.place(
            metadata.namespace,
            name=metadata.name,
            team=metadata.label(TEAM) or "",
            priorities=priorities or [],
            managed=metadata.label(MANAGED_BY) == MANAGER,
            hard=self.amount(quota.spec.hard),
            used=self.amount(quota.status.used) if quota.status.hard is not None else None,
        )
        share = self.with_pods(share, mine)
        return msgspec.structs.replace(share, problems=list(self.problems(quota, share, mine)))

    def unlimited(self, name: str) -> Share:
        share = self.place(name, problems=["no quota: nothing limits this namespace"])
        return self.with_pods(share, (self.pods or {}).get(name))

    def place(self, namespace: str, team: str = "", **fields: Any) -> Share:
        space = self.spaces.get(namespace) or kube.Metadata()
        queue = space.annotation(QUEUE) or ""
        return Share(namespace=namespace, team=team or space.label(TEAM) or "", queue=queue, **fields)

    def with_pods(self, share: Share, pods: list[kube.Pod] | None) -> Share:
        if pods is None:
            return share
        held = total((pod for pod in pods if pod.spec.node_name), self.names)
        waiting = total((pod for pod in pods if not pod.spec.node_name), self.names)
        return msgspec.structs.replace(
            share,
            holds=self.of(held.number, held.memory, held.cores),
            pending=self.of(waiting.number, waiting.memory, waiting.cores),
            pending_pods=waiting.pods,
        )

    def problems(self, quota: kube.ResourceQuota, share: Share, pods: list[kube.Pod] | None) -> Iterator[str]:
        for key, _ in uncounted(quota, self.names):
            yield f"{key} enforces nothing: only {COUNTED}{key.removeprefix('limits.')} is counted"
        if share.used is None:
            yield "the API server does not count it yet, and refuses vGPU pods until it does"
            return
        for what, hard, used in (
            ("vGPUs", share.hard.number, share.used.number),
            ("memory units", share.hard.memory_units, share.used.memory_units),
            ("% of cores", share.hard.cores, share.used.cores),
        ):
            if hard is not None and used is not None and used > hard:
                yield f"{used - hard} {what} above the cap: nothing is evicted, new pods are refused"
        held = total(pods or (), self.names)
        for what, capped, real, counted in (
            ("memory", share.hard.memory_units, held.memory, held.counted_memory),
            ("cores", share.hard.cores, held.cores, held.counted_cores),
        ):
            if capped is not None and real > counted:
                yield f"{what} is counted once for a container with several vGPUs: more is held than counted"

    def queue(self, queue: kube.Queue) -> QueueShare | None:
        """A queue with vGPU amounts; None for one without."""
        spec = queue.spec
        stated = [self.amount(values, "") for values in (spec.capability, spec.deserved)]
        stated.append(self.amount((spec.guarantee or {}).get("resource"), ""))
        if all(amount == Amount() for amount in stated):
            return None
        return QueueShare(
            name=queue.metadata.name,
            parent=spec.parent,
            team=queue.metadata.label(TEAM) or "",
            state=queue.status.state,
            capability=stated[0],
            deserved=stated[1],
            guarantee=stated[2],
            allocated=self.amount(queue.status.allocated, ""),
        )
