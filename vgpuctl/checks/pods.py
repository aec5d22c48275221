"""Checks of what pods ask for: the rules of `pod lint`, on the pods that are there."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import msgspec

from vgpuctl.checks import share
from vgpuctl.checks.check import Check, Evidence, Options, Result, Skip, Status, Where
from vgpuctl.checks.lint import findings, results
from vgpuctl.model import kube, pool
from vgpuctl.model.context import Context
from vgpuctl.model.facts import Facts, Part
from vgpuctl.model.finding import Finding
from vgpuctl.model.pod import names
from vgpuctl.model.pod.lint import lint

_RULES = {
    **dict.fromkeys(
        (
            "number-missing",
            "number-zero",
            "unit-suffix",
            "number-over-cards",
            "percentage-unschedulable",
            "percentage-and-memory",
            "cores-over-100",
            "unit-percent",
            "memory-over-card",
            "requests-limits",
            "init-container",
            "resource-misspelt",
            "annotation-instead-of-limit",
            "annotation-misspelt",
            "mode-value",
            "mode-unavailable",
            "no-matching-card",
        ),
        "limits",
    ),
    "scheduler-name": "scheduler-name",
    **dict.fromkeys(("limiter-off", "visible-all", "privileged", "host-devices"), "bypass"),
}
"""Rule of pod lint → the check that it belongs to."""

_SANDBOXES = ("gvisor", "runsc", "kata", "firecracker")
_GRAPHICS = ("graphics", "display", "all")
_CONTEXT = (Part.NODES, Part.CONFIGMAPS, Part.DEPLOYMENTS, Part.QUEUES)


def _linted(facts: Facts) -> Iterator[tuple[kube.Pod, list[Finding]]]:
    """The pods that have to do with vGPUs, each with its findings; pods alike are looked at once."""
    context = pool.context(facts)
    known: dict[bytes, list[Finding]] = {}
    seen = False
    for pod in facts.pods.need():
        if not pool.alive(pod) or not _concerned(pod, context):
            continue
        seen = True
        key = _likeness(pod)
        if key not in known:
            known[key] = findings(lint, "Pod", "v1", pod, context)
        yield pod, known[key]
    if not seen:
        raise Skip("there are no vGPU pods")


def _concerned(pod: kube.Pod, context: Context) -> bool:
    if pool.is_plugin(pod.spec, pod.metadata):
        return False
    for container in (*pod.spec.containers, *(pod.spec.init_containers or ())):
        asked = {**(container.resources.requests or {}), **(container.resources.limits or {})}
        if any(name in context.names.all or "vgpu" in name for name in asked):
            return True
    told = {**(pod.metadata.labels or {}), **(pod.metadata.annotations or {})}
    return any(name in context.names.all or "vgpu-" in name for name in told if name not in names.WRITTEN)


def _likeness(pod: kube.Pod) -> bytes:
    """What the rules look at: the same for all pods of one template."""
    kept = {key: value for key, value in (pod.metadata.annotations or {}).items() if key not in names.WRITTEN}
    spec = msgspec.structs.replace(pod.spec, node_name="")
    return msgspec.json.encode((kept, pod.metadata.labels, spec), order="deterministic")


def by_lint(check: str, worst: Status, facts: Facts, options: Options) -> Iterator[Result]:
    """The results of one check out of pod lint's rules."""
    for pod, found in _linted(facts):
        yield from results(found, _RULES, check, share.pod_subject(pod), worst)


def bypass(facts: Facts, options: Options) -> Iterator[Result]:
    yield from by_lint("bypass", Status.WARN, facts, options)
    for pod in share.vgpu_pods(facts):
        runtime = pod.spec.runtime_class_name or ""
        if any(word in runtime.lower() for word in _SANDBOXES):
            subject = share.pod_subject(pod)
            yield Result(
                Status.WARN,
                "it runs in a sandbox, where the limits do not reach",
                subject,
                (Evidence(subject, f"runtimeClassName {runtime}"),),
                "use the node's ordinary runtime for vGPU pods",
            )


def graphics(facts: Facts, options: Options) -> Iterator[Result]:
    for pod in share.vgpu_pods(facts):
        for container in pod.spec.containers:
            value = next(
                (item.value or "" for item in container.env or () if item.name == "NVIDIA_DRIVER_CAPABILITIES"), ""
            )
            if set(value.replace(" ", "").split(",")) & set(_GRAPHICS):
                subject = share.pod_subject(pod)
                yield Result(
                    Status.WARN,
                    "it may use graphics, whose memory no limit holds",
                    subject,
                    (Evidence(subject, f"{container.name}: NVIDIA_DRIVER_CAPABILITIES={value}"),),
                    "NVIDIA_DRIVER_CAPABILITIES=compute,utility",
                )


CHECKS = (
    Check(
        "limits",
        "Pods ask for vGPUs in a way that counts and can be met",
        "pods",
        Status.FAIL,
        (Part.PODS,),
        (Where.API,),
        partial(by_lint, "limits", Status.FAIL),
        also=_CONTEXT,
        explain="Only limits of main containers count. What is written elsewhere, or with a unit, is ignored or read "
        "as something else, and the pod takes a whole card or none.",
    ),
    Check(
        "scheduler-name",
        "vGPU pods are planned by Volcano",
        "pods",
        Status.FAIL,
        (Part.PODS,),
        (Where.API,),
        partial(by_lint, "scheduler-name", Status.FAIL),
        also=_CONTEXT,
    ),
    Check(
        "bypass",
        "Nothing in a vGPU pod goes around its limits",
        "pods",
        Status.WARN,
        (Part.PODS,),
        (Where.API,),
        bypass,
        also=_CONTEXT,
    ),
    Check(
        "graphics",
        "Fractional pods compute only",
        "pods",
        Status.WARN,
        (Part.PODS,),
        (Where.API,),
        graphics,
        also=(Part.CONFIGMAPS,),
    ),
)
