"""Checks of Volcano's queues."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from vgpuctl.checks import share
from vgpuctl.checks.check import Check, Evidence, Options, Result, Skip, Status, Where
from vgpuctl.model import kube, pool
from vgpuctl.model.facts import Facts, Part
from vgpuctl.model.quantity import quantity
from vgpuctl.model.version_number import VersionNumber


def queue_state(facts: Facts, options: Options) -> Iterator[Result]:
    if facts.queues.absent:
        raise Skip(facts.queues.reason)
    queues = facts.queues.need()
    for queue in queues:
        subject = f"Queue {queue.metadata.name}"
        if queue.status.state not in ("", "Open"):
            yield Result(
                Status.FAIL,
                f"{queue.status.state.lower()}: its pods stay Pending, without a reason",
                subject,
                (Evidence(subject, f"status.state {queue.status.state}"),),
                "vcctl queue operate --action open, or move its jobs",
            )
        yield from _order(queue, subject)
    yield from _guarantees(facts, queues)


def _order(queue: kube.Queue, subject: str) -> Iterator[Result]:
    spec = queue.spec
    levels = (
        ("capability", _amounts(spec.capability)),
        ("deserved", _amounts(spec.deserved)),
        ("guarantee", _guarantee(spec)),
    )
    for index, (upper, more) in enumerate(levels):
        for lower, less in levels[index + 1 :]:
            for name in sorted(set(more) & set(less)):
                if less[name] > more[name]:
                    yield Result(
                        Status.FAIL,
                        f"{lower} is above {upper}",
                        subject,
                        (Evidence(subject, f"{name}: {lower} {_shown(less[name])}, {upper} {_shown(more[name])}"),),
                        f"lower {lower} to {_shown(more[name])} or less, or raise {upper}",
                    )
    guarantee = spec.guarantee
    if guarantee and "resource" not in guarantee:
        yield Result(
            Status.FAIL,
            "its guarantee is dropped: the amounts must stand under resource",
            subject,
            (Evidence(subject, f"guarantee: {share.some(guarantee)}"),),
            "guarantee: {resource: {…}}",
        )


def _guarantees(facts: Facts, queues: tuple[kube.Queue, ...]) -> Iterator[Result]:
    """Guarantees that sum to more than the pool starve every queue without one."""
    sums: dict[str, Fraction] = {}
    children = {queue.spec.parent for queue in queues if queue.spec.parent}
    leaves = [queue for queue in queues if queue.metadata.name not in children]
    for queue in leaves:
        for name, number in _guarantee(queue.spec).items():
            sums[name] = sums.get(name, Fraction()) + number
    for name in sorted(sums):
        offered = (_amounts(node.status.allocatable).get(name, Fraction()) for node in facts.nodes.need())
        have = sum(offered, Fraction())
        if sums[name] <= have:
            continue
        parts = ", ".join(
            f"{queue.metadata.name} {_shown(_guarantee(queue.spec)[name])}"
            for queue in leaves
            if name in _guarantee(queue.spec)
        )
        version = pool.volcano_version(facts)
        effect = (
            "the scheduler panics"
            if version and version < VersionNumber("1.12")
            else "pods of every queue without a guarantee stay Pending"
        )
        biggest = max(leaves, key=lambda queue: _guarantee(queue.spec).get(name, 0))
        rest = have - (sums[name] - _guarantee(biggest.spec)[name])
        yield Result(
            Status.FAIL,
            f"guarantees of {name} sum to more than the pool has: {effect}",
            evidence=(
                Evidence("Queues", f"guarantees sum to {_shown(sums[name])}: {parts}"),
                Evidence("Nodes", f"allocatable {_shown(have)}"),
                *_crashing(facts),
            ),
            remedy=f"lower the guarantee of queue {biggest.metadata.name} to at most {_shown(max(rest, Fraction()))}",
        )


def _crashing(facts: Facts) -> Iterator[Evidence]:
    for pod in facts.pods.value or ():
        if pool.is_scheduler(pod.spec, pod.metadata):
            for status in pod.status.container_statuses or ():
                if status.restart_count:
                    yield Evidence(share.pod_subject(pod), f"{status.restart_count} restarts")


def _guarantee(spec: kube.QueueSpec) -> dict[str, Fraction]:
    return _amounts((spec.guarantee or {}).get("resource"))


def _amounts(values: Any) -> dict[str, Fraction]:
    """The amounts of a resource list; what is no quantity is left out."""
    found: dict[str, Fraction] = {}
    for name, value in values.items() if isinstance(values, Mapping) else ():
        with contextlib.suppress(ValueError):
            found[str(name)] = quantity(value).value
    return found


def _shown(value: Fraction) -> str:
    return str(value) if value.denominator == 1 else f"{float(value):g}"


CHECKS = (
    Check(
        "queue-state",
        "Queues are open and their amounts fit to each other and to the pool",
        "volcano",
        Status.FAIL,
        (Part.QUEUES,),
        (Where.API,),
        queue_state,
        also=(Part.NODES, Part.CONFIGMAPS, Part.PODS, Part.DEPLOYMENTS),
        explain="The API server stores any amounts. Guarantees above the pool make older schedulers panic and newer "
        "ones starve every queue that has no guarantee.",
    ),
)
