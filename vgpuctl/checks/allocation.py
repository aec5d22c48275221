"""Checks of what pods were given: the scheduler's annotations against the nodes' cards and against each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from vgpuctl.checks import share
from vgpuctl.checks.check import Check, Evidence, Options, Result, Skip, Status, Where
from vgpuctl.model import annotation, kube, pool
from vgpuctl.model.annotation import Allocation
from vgpuctl.model.facts import Facts, Part
from vgpuctl.model.pod.names import GROUP
from vgpuctl.model.quantity import integer
from vgpuctl.model.resource import ResourceNames, What

_STUCK = 300.0
_PENDING = 600.0


@dataclass(frozen=True)
class _Held:
    """A vGPU that a pod holds on a node; terminating pods hold theirs until they are gone."""

    pod: kube.Pod
    item: Allocation


def _held(facts: Facts) -> Iterator[_Held]:
    for pod in facts.pods.need():
        found = pool.allocations(pod)
        if found is not None and pod.spec.node_name and pod.status.phase not in pool.ENDED:
            yield from (_Held(pod, item) for item in found.all)


def _by_card(facts: Facts) -> dict[tuple[str, str], list[_Held]]:
    """What is held, by node and card."""
    cards: dict[tuple[str, str], list[_Held]] = defaultdict(list)
    for held in _held(facts):
        cards[held.pod.spec.node_name, held.item.card].append(held)
    if not cards:
        raise Skip("no pod holds a vGPU")
    return cards


def drift(facts: Facts, options: Options) -> Iterator[Result]:
    for pod in share.vgpu_pods(facts):
        if not pod.spec.node_name:
            continue
        subject, note = share.pod_subject(pod), pod.metadata.annotation
        planned = note(annotation.NODE)
        if planned is not None and planned != pod.spec.node_name:
            yield Result(
                Status.FAIL,
                "it runs on another node than its vGPUs were planned on",
                subject,
                (Evidence(subject, f"spec.nodeName {pod.spec.node_name}, {annotation.NODE} {planned}"),),
                "delete the pod, so that it is planned anew",
            )
        phase, bound = note(annotation.BIND_PHASE), annotation.unix_time(note(annotation.BIND_TIME) or "")
        waited = facts.now - bound if bound is not None else None
        if phase == "failed" or (phase == "allocating" and waited is not None and waited > _STUCK):
            yield Result(
                Status.FAIL,
                "the plugin did not finish giving it its vGPUs",
                subject,
                (Evidence(subject, f"{annotation.BIND_PHASE}: {phase}" + (f" for {waited:.0f} s" if waited else "")),),
                "kubectl describe it, and the log of the plugin on its node; then delete the pod",
            )
        left = annotation.decode_allocations(note(annotation.TO_ALLOCATE) or "").all
        if left and phase == "success" and pod.status.phase == "Running":
            yield Result(
                Status.FAIL,
                "some of its vGPUs were planned but never given to a container",
                subject,
                (Evidence(subject, f"{annotation.TO_ALLOCATE}: {note(annotation.TO_ALLOCATE)}"),),
                "delete the pod, so that it is planned anew",
            )


def overcommitted(facts: Facts, options: Options) -> Iterator[Result]:
    cards = {(gpu.name, card.uuid): card for gpu in pool.gpu_nodes(facts) for card in gpu.cards}
    for (node, uuid), held in _by_card(facts).items():
        card = cards.get((node, uuid))
        if card is None or any(one.item.slice for one in held):
            continue
        sums = (
            ("memory units", sum(one.item.memory for one in held), card.memory),
            ("vGPUs", len(held), card.count),
            ("percent of the cores", sum(one.item.cores for one in held), 100),
        )
        for what, used, most in sums:
            if used > most:
                pods = share.some(dict.fromkeys(pool.full_name(one.pod.metadata) for one in held))
                yield Result(
                    Status.FAIL,
                    f"more {what} of a card are given out than it has",
                    f"Node {node}",
                    (Evidence(f"Node {node}", f"{uuid}: {used} of {most} {what}, held by {pods}"),),
                    "delete one of these pods; two containers of one pod on one card are booked once only",
                )


def no_device(facts: Facts, options: Options) -> Iterator[Result]:
    names = pool.resource_names(facts)
    pods = [
        pod
        for pod in facts.pods.need()
        if pod.spec.node_name and pod.status.phase != "Succeeded" and pool.is_vgpu_pod(pod, names)
    ]
    if not pods:
        raise Skip("no vGPU pod is bound")
    for pod in pods:
        found = pool.allocations(pod)
        if found is not None and found.all:
            continue
        if any(_number(container, names) for container in pod.spec.containers):
            subject = share.pod_subject(pod)
            told = "no annotation" if found is None else "an empty annotation"
            yield Result(
                Status.FAIL,
                "it was bound without vGPUs: the scheduler had no view of the node, or vGPU is off",
                subject,
                (Evidence(subject, f"on node {pod.spec.node_name}, {told} {annotation.IDS}"), *_reason(pod)),
                "delete the pod; if new ones fare alike, restart the scheduler (see config-reload)",
            )


def _number(container: kube.Container, names: ResourceNames) -> int:
    asked = pool.limits(container, names)
    return integer(asked.get(What.NUMBER, 1 if What.MEMORY in asked else 0)) or 0


def _reason(pod: kube.Pod) -> Iterator[Evidence]:
    if pod.status.reason or pod.status.message:
        yield Evidence(share.pod_subject(pod), f"{pod.status.reason} {pod.status.message}".strip())


def mig_slice(facts: Facts, options: Options) -> Iterator[Result]:
    slices: dict[tuple[str, str], list[_Held]] = defaultdict(list)
    for held in _held(facts):
        if held.item.slice:
            slices[held.pod.spec.node_name, held.item.uuid].append(held)
    if not slices:
        raise Skip("no pod holds a MIG slice")
    for (node, uuid), holders in slices.items():
        if len(holders) > 1:
            pods = share.some(dict.fromkeys(pool.full_name(one.pod.metadata) for one in holders))
            yield Result(
                Status.FAIL,
                "a MIG slice is given to two containers",
                f"Node {node}",
                (Evidence(f"Node {node}", f"{uuid}: held by {pods}"),),
                "delete all but one of these pods",
            )


def gone_device(facts: Facts, options: Options) -> Iterator[Result]:
    nodes = {gpu.name: {card.uuid for card in gpu.cards} for gpu in pool.gpu_nodes(facts) if gpu.cards}
    for (node, uuid), held in _by_card(facts).items():
        if node in nodes and uuid not in nodes[node]:
            for pod in {pool.full_name(one.pod.metadata): one.pod for one in held}.values():
                subject = share.pod_subject(pod)
                yield Result(
                    Status.FAIL,
                    "it holds a card that its node does not register",
                    subject,
                    (
                        Evidence(subject, f"{uuid} on node {node}"),
                        Evidence(f"Node {node}", f"registers {share.some(sorted(nodes[node]))}"),
                    ),
                    "is the card dead or filtered out? delete the pod, so that it is planned anew",
                )


def stuck_pending(facts: Facts, options: Options) -> Iterator[Result]:
    groups = {(group.metadata.namespace, group.metadata.name): group for group in facts.podgroups.value or ()}
    for pod in share.vgpu_pods(facts):
        if pod.spec.node_name or pod.status.phase != "Pending":
            continue
        created = annotation.decode_time(pod.metadata.creation_timestamp or "")
        if created is None or facts.now - created <= _PENDING:
            continue
        subject = share.pod_subject(pod)
        yield Result(
            Status.WARN,
            f"waits for a node: {_message(pod, groups)}",
            subject,
            (Evidence(subject, f"Pending for {(facts.now - created) / 60:.0f} min"),),
            "more free vGPUs, or a smaller request; the scheduler's log has the reason of each node",
        )


def _message(pod: kube.Pod, groups: dict[tuple[str, str], kube.PodGroup]) -> str:
    """The scheduler's own words: of the pod's condition, else of its PodGroup's."""
    note = pod.metadata.annotation
    name = next(filter(None, map(note, GROUP)), "")
    group = groups.get((pod.metadata.namespace, name))
    texts = [
        item.message for item in pod.status.conditions or () if item.type == "PodScheduled" and item.status == "False"
    ]
    if group:
        texts += [item.message for item in group.status.conditions or () if item.type == "Unschedulable"]
        texts += [f"PodGroup {name} is {group.status.phase}"] if group.status.phase else []
    return share.first_message(texts) or "the scheduler gives no reason; has it a PodGroup, and does the scheduler run?"


_CARDS = (Part.PODS, Part.NODES)
_API = (Where.API,)
_NAMES = (Part.CONFIGMAPS,)

CHECKS = (
    Check(
        "drift",
        "Pods run where and with what they were planned",
        "pods",
        Status.FAIL,
        (Part.PODS,),
        _API,
        drift,
        also=_NAMES,
    ),
    Check(
        "overcommitted-card",
        "No card is given out more than once",
        "pods",
        Status.FAIL,
        _CARDS,
        _API,
        overcommitted,
        also=_NAMES,
        explain="Volcano books two containers of one pod on one card once only, and frees a terminating pod's card "
        "at once.",
    ),
    Check(
        "no-device",
        "vGPU pods that are bound have vGPUs",
        "pods",
        Status.FAIL,
        (Part.PODS,),
        _API,
        no_device,
        also=_NAMES,
        explain="After a start of the scheduler, and where a node's register annotation is missing, vGPU pods are "
        "bound without devices.",
    ),
    Check("mig-slice", "No MIG slice is given out twice", "pods", Status.FAIL, (Part.PODS,), _API, mig_slice),
    Check(
        "gone-device",
        "Pods hold cards that are registered",
        "pods",
        Status.FAIL,
        _CARDS,
        _API,
        gone_device,
        also=_NAMES,
    ),
    Check(
        "stuck-pending",
        "No vGPU pod waits for more than 10 minutes",
        "pods",
        Status.WARN,
        (Part.PODS,),
        _API,
        stuck_pending,
        also=(Part.PODGROUPS, *_NAMES),
    ),
)
