"""Checks of the teams' quotas: the rules of `quota lint`, and what the API server counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from vgpuctl.checks import mend, share
from vgpuctl.checks.check import Check, Evidence, Options, Result, Skip, Status, Where
from vgpuctl.checks.lint import findings, results
from vgpuctl.model import kube, pool
from vgpuctl.model.facts import Facts, Part
from vgpuctl.model.quantity import integer
from vgpuctl.model.quota.lint import lint
from vgpuctl.model.quota.team import TEAM
from vgpuctl.model.resource import ResourceNames, What

_RULES = {
    **dict.fromkeys(("quota-prefix", "resource-misspelt", "unit-suffix", "quantity-integer"), "quota-prefix"),
    **dict.fromkeys(("unit-factor", "unit-percent", "percentage-quota"), "quota-units"),
}
"""Rule of quota lint → the check that it belongs to."""
_PREFIX = "quota-prefix"
"""The check, and the rule that it is named after."""
_PREFIXES = ("requests.", "limits.", "")


def _vgpu_quotas(facts: Facts) -> list[kube.ResourceQuota]:
    """The quotas that name a vGPU resource, or something like one; skips when there are none."""
    names = pool.resource_names(facts)
    found = [
        quota
        for quota in facts.quotas.need()
        if any(_what(name, names) or "vgpu" in name for name in quota.spec.hard or {})
    ]
    if not found:
        raise Skip("no quota names a vGPU resource")
    return found


def _what(name: str, names: ResourceNames) -> What | None:
    """What a key of a quota would count, whatever its prefix."""
    return next(
        (what for prefix in _PREFIXES if name.startswith(prefix) and (what := names.what(name[len(prefix) :]))), None
    )


def by_lint(check: str, worst: Status, facts: Facts, options: Options) -> Iterator[Result]:
    """The results of one check out of quota lint's rules."""
    context = pool.context(facts)
    for quota in _vgpu_quotas(facts):
        found = findings(lint, "ResourceQuota", "v1", quota, context)
        yield from results(found, _RULES, check, _subject(quota), worst)


def prefix(facts: Facts, options: Options) -> Iterator[Result]:
    """Amounts under names that are never counted can be written under those that are."""
    names, context = pool.resource_names(facts), pool.context(facts)
    for quota in _vgpu_quotas(facts):
        found = findings(lint, "ResourceQuota", "v1", quota, context)
        subject, keeper = _subject(quota), mend.keeper(quota.metadata)
        for result in results((one for one in found if one.rule == _PREFIX), _RULES, _PREFIX, subject):
            remedy = f"{result.remedy}: in {keeper}, which keeps this object" if keeper else result.remedy
            yield replace(result, remedy=remedy, fix=mend.counted(quota, names))
        yield from results((one for one in found if one.rule != _PREFIX), _RULES, _PREFIX, subject)


def _subject(quota: kube.ResourceQuota) -> str:
    return f"ResourceQuota {pool.full_name(quota.metadata)}"


def multi(facts: Facts, options: Options) -> Iterator[Result]:
    names = pool.resource_names(facts)
    for quota in _vgpu_quotas(facts):
        per_vgpu = [
            name
            for name in quota.spec.hard or {}
            if _what(name, names) in (What.MEMORY, What.CORES) and name.startswith("requests.")
        ]
        if not per_vgpu:
            continue
        space = quota.metadata.namespace
        pods = [
            pod
            for pod in facts.pods.need()
            if pod.metadata.namespace == space
            and pool.alive(pod)
            and any(_number(c, names) > 1 for c in pod.spec.containers)
        ]
        if pods:
            yield Result(
                Status.WARN,
                "it counts memory and cores once, where a container has several vGPUs",
                _subject(quota),
                (
                    Evidence(_subject(quota), share.some(per_vgpu)),
                    Evidence(share.pod_subject(pods[0]), f"one of {share.count(len(pods), 'pod')} with several vGPUs"),
                ),
                f"cap requests.{names.number}, or set the amounts for pods of one vGPU",
            )


def _number(container: kube.Container, names: ResourceNames) -> int:
    return integer(pool.limits(container, names).get(What.NUMBER, 0)) or 0


def over(facts: Facts, options: Options) -> Iterator[Result]:
    names = pool.resource_names(facts)
    quotas, queues = facts.quotas.need(), facts.queues.value or ()
    for quota in quotas:
        hard, used = quota.status.hard or quota.spec.hard or {}, quota.status.used or {}
        for name in sorted(name for name in used if _what(name, names) and name in hard):
            if (integer(used[name]) or 0) > (integer(hard[name]) or 0):
                yield Result(
                    Status.WARN,
                    "the team uses more than its quota allows",
                    _subject(quota),
                    (Evidence(_subject(quota), f"{name}: used {used[name]}, hard {hard[name]}"),),
                    "nothing is evicted: wait, delete pods, or raise the quota",
                )
    for queue in queues:
        cap, taken = queue.spec.capability or {}, queue.status.allocated or {}
        for name in sorted(name for name in taken if names.what(name) and name in cap):
            if (integer(taken[name]) or 0) > (integer(cap[name]) or 0):
                subject = f"Queue {queue.metadata.name}"
                yield Result(
                    Status.WARN,
                    "the queue uses more than its capability allows",
                    subject,
                    (Evidence(subject, f"{name}: allocated {taken[name]}, capability {cap[name]}"),),
                    "nothing is evicted: wait, delete pods, or raise the capability",
                )


def orphan(facts: Facts, options: Options) -> Iterator[Result]:
    busy = {pod.metadata.namespace for pod in pool.vgpu_pods(facts)}
    for quota in _vgpu_quotas(facts):
        if quota.metadata.namespace not in busy and not quota.metadata.label(TEAM):
            yield Result(
                Status.PASS,
                "a quota of a namespace without vGPU pods and of no team",
                _subject(quota),
                (Evidence(_subject(quota), f"no label {TEAM}"),),
            )


_CONTEXT = (Part.CONFIGMAPS, Part.NODES, Part.PODS, Part.DEPLOYMENTS, Part.QUEUES)

CHECKS = (
    Check(
        "quota-prefix",
        "Quotas on vGPUs are enforced",
        "quota",
        Status.FAIL,
        (Part.QUOTAS,),
        (Where.API,),
        prefix,
        also=_CONTEXT,
        fixable=True,
        explain="The API server counts extended resources under `requests.` only; others enforce nothing.",
    ),
    Check(
        "quota-multi",
        "Quotas on memory and cores meet pods of one vGPU per container",
        "quota",
        Status.WARN,
        (Part.QUOTAS,),
        (Where.API,),
        multi,
        also=(Part.PODS, Part.CONFIGMAPS),
    ),
    Check(
        "quota-units",
        "Quotas are written in the pool's units",
        "quota",
        Status.WARN,
        (Part.QUOTAS,),
        (Where.API,),
        partial(by_lint, "quota-units", Status.WARN),
        also=_CONTEXT,
        explain="A cap on memory is in units of gpuMemoryFactor MiB; another factor changes what it means.",
    ),
    Check(
        "quota-over",
        "Nobody uses more than his quota or queue allows",
        "quota",
        Status.WARN,
        (Part.QUOTAS,),
        (Where.API,),
        over,
        also=(Part.QUEUES, Part.CONFIGMAPS),
    ),
    Check(
        "quota-orphan",
        "Quotas belong to teams or to pods",
        "quota",
        Status.PASS,
        (Part.QUOTAS, Part.PODS),
        (Where.API,),
        orphan,
        also=(Part.CONFIGMAPS,),
    ),
)
