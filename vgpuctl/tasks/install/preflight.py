"""What must hold before an installation: doctor's checks on the facts as they will be, rival plugins, and whether the
namespace lets the plugin's pods in."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import msgspec

from vgpuctl.checks.check import Check, Options, Outcome, Status, run_checks
from vgpuctl.checks.placing import rival
from vgpuctl.checks.registry import all_checks
from vgpuctl.model import kube, pool
from vgpuctl.model.change import Target
from vgpuctl.model.facts import Facts, Part
from vgpuctl.model.install.manifests import PLUGIN
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.sources.machine import Machine
from vgpuctl.tasks.install.live import Live, Object
from vgpuctl.tasks.install.rollout import some
from vgpuctl.tasks.install.scheduler import OPTION

CHECKS = (
    *("api", "volcano-version", "scheduler-running", "scheduler-conf"),
    *("deviceshare-enabled", "deviceshare-arguments", "predicates-plugin", "geometries-configmap"),
    *("device-config", "node-config", "config-place"),
)
"""Those of doctor that can tell something before the plugin runs."""
RIVALS, ADMISSION = "rival-plugin", "admission"
NAMES = (*CHECKS, RIVALS, ADMISSION)
UPGRADE = ("api", "device-config", "node-config", ADMISSION)
"""What decides whether the plugin's pods can start anew; the rest runs already, or fails for other reasons."""
_PARTS = (Part.NODES, Part.PODS, Part.DAEMONSETS, Part.CONFIGMAPS, Part.DEPLOYMENTS, Part.QUEUES, Part.NAMESPACES)
_PATCHED = ("deviceshare-enabled", "predicates-plugin")
"""Checks that fail where OPTION is the remedy."""
_REMEDIES = (
    (
        "PodSecurity",
        "kubectl label namespace {0} pod-security.kubernetes.io/enforce=privileged --overwrite, or another one with -n",
    ),
    ("quota", "let the quota admit one more pod for each GPU node, or choose another namespace with -n"),
    ("", "let it admit the plugin's pods in {0}: they are privileged and mount host paths"),
)
"""By a word of the refusal, the first that fits."""


@dataclass(frozen=True)
class Verdict:
    """problems: why not to install. notes: what is worth knowing."""

    problems: list[Problem]
    notes: list[str]


def wanted_parts(skip: Collection[str]) -> list[Part]:
    """The parts of the facts that are looked at."""
    parts = [part for check in _checks(skip) for part in (*check.needs, *check.also)]
    return [part for part in dict.fromkeys((*_PARTS, *parts)) if part not in {*Machine.parts, Part.LOGS, Part.METRICS}]


def check_names(skip: Iterable[str]) -> None:
    """Raises Problem (wrong use) for a name that --skip cannot mean."""
    unknown = sorted(set(skip) - set(NAMES))
    if unknown:
        what = f"--skip {unknown[0]}: no such check is made before an install"
        raise Problem(what, remedy=f"one of: {', '.join(NAMES)}", exit_code=Exit.USAGE)


def look(
    cluster: Live,
    facts: Facts,
    objects: Sequence[Object],
    skip: Collection[str],
    *,
    only: Collection[str] = NAMES,
    patched: bool = False,
) -> Verdict:
    """facts: with the scheduler's configuration as it will be. objects: what is to be installed. patched: the
    scheduler's configuration is being patched."""
    skip = {*skip, *(name for name in NAMES if name not in only)}
    will_be = _with_configs(facts, objects)
    verdict = Verdict([], [])
    for outcome in run_checks(_checks(skip), will_be, Options()):
        status, result = outcome.result.status, outcome.result
        if status in (Status.FAIL, Status.UNKNOWN):
            verdict.problems.append(_problem(outcome, patched=patched))
        elif status is Status.WARN:
            verdict.notes.append(f"{outcome.check.id}: {_said(result.subject, result.summary)}")
    (plugin,) = (item for item in objects if item["kind"] == "DaemonSet")
    if RIVALS not in skip:
        verdict.problems.extend(_rivals(facts, plugin))
    if ADMISSION not in skip:
        _admission(cluster, plugin, objects, verdict)
    verdict.notes.extend(_operator(facts))
    return verdict


def _checks(skip: Collection[str]) -> list[Check]:
    return [check for check in all_checks() if check.id in CHECKS and check.id not in skip]


def _problem(outcome: Outcome, *, patched: bool) -> Problem:
    result, name = outcome.result, outcome.check.id
    why = "; ".join(f"{evidence.source}: {evidence.text}" for evidence in result.evidence[:2])
    remedy = result.remedy
    if name in _PATCHED and not patched:
        remedy = f"give {OPTION}, or mend it yourself: {remedy}"
    unknown = result.status is Status.UNKNOWN
    hint = f"--skip {name} goes on without this check"
    return Problem(
        f"preflight {name}: {_said(result.subject, result.summary or 'cannot be told')}",
        why,
        f"{remedy}; {hint}" if remedy else hint,
        Exit.UNKNOWN if unknown else Exit.FINDINGS,
    )


def _said(subject: str, summary: str) -> str:
    return f"{subject}: {summary}" if subject else summary


def _with_configs(facts: Facts, objects: Sequence[Object]) -> Facts:
    """The facts with the ConfigMaps that are to be made."""
    if facts.configmaps.value is None:
        return facts
    there = {(item.metadata.namespace, item.metadata.name) for item in facts.configmaps.value}
    new = [
        msgspec.convert(item, kube.ConfigMap)
        for item in objects
        if item["kind"] == "ConfigMap"
        and "data" in item
        and (item["metadata"]["namespace"], item["metadata"]["name"]) not in there
    ]
    return facts.with_part(Part.CONFIGMAPS, replace(facts.configmaps, value=(*facts.configmaps.value, *new)))


def _rivals(facts: Facts, plugin: Object) -> Iterator[Problem]:
    """Other plugins on the nodes that ours is for. Raises Missing when pods or nodes are not known."""
    selector = plugin["spec"]["template"]["spec"].get("nodeSelector") or {}
    mine = {
        node.metadata.name
        for node in facts.nodes.need()
        if selector.items() <= {**(node.metadata.labels or {}), "kubernetes.io/hostname": node.metadata.name}.items()
    }
    found: dict[str, set[str]] = {}
    for pod in facts.pods.need():
        if (other := rival(pod)) and pool.alive(pod) and pod.spec.node_name in mine:
            found.setdefault(other, set()).add(pod.spec.node_name)
    for other, nodes in found.items():
        yield Problem(
            f"preflight {RIVALS}: {other} runs on {some(nodes)} and hands out the same cards",
            "two plugins on one node give each card away twice",
            "keep one of them per node: --node-selector KEY=VALUE, the label nvidia.com/gpu.deploy.device-plugin=false "
            f"(GPU Operator), or remove it; --skip {RIVALS} goes on regardless",
            Exit.FINDINGS,
        )
    place = (plugin["metadata"]["namespace"], PLUGIN)
    for item in pool.plugin_daemonsets(facts):
        if (item.metadata.namespace, item.metadata.name) != place:
            yield Problem(
                f"preflight {RIVALS}: DaemonSet {pool.full_name(item.metadata)} runs the vGPU plugin already",
                "two of them on one node register over each other",
                f"remove it first; --skip {RIVALS} goes on regardless",
                Exit.FINDINGS,
            )


def _operator(facts: Facts) -> Iterator[str]:
    for item in facts.deployments.value or ():
        if any(pool.image_name(container.image) == "gpu-operator" for container in item.spec.template.spec.containers):
            yield (
                f"GPU Operator ({pool.full_name(item.metadata)}) manages this cluster: keep its own device plugin off "
                "the pool's nodes, by their label nvidia.com/gpu.deploy.device-plugin=false"
            )


def _admission(cluster: Live, plugin: Object, objects: Sequence[Object], verdict: Verdict) -> None:
    """Asks the API server whether it would take a pod of the plugin: Pod Security, quota, webhooks, policies answer."""
    namespace = plugin["metadata"]["namespace"]
    if any(item["kind"] == "Namespace" for item in objects) and cluster.get(Target("Namespace", namespace)) is None:
        return
    template = plugin["spec"]["template"]
    spec = copy.deepcopy(template["spec"])
    for name in ("serviceAccountName", "runtimeClassName"):  # which need not be there yet
        spec.pop(name, None)
    body = {"metadata": {**template["metadata"], "generateName": "vgpuctl-preflight-"}, "spec": spec}
    try:
        cluster.create(Target("Pod", "", namespace), body, dry_run=True)
    except Problem as problem:
        if problem.passing:
            raise
        said = "; ".join(problem.lines())
        refused = problem.status in (403, 422) or "denied the request" in said
        if refused and problem.exit_code is Exit.FINDINGS:
            remedy = next(text for word, text in _REMEDIES if word in said).format(namespace)
            why = problem.why or problem.what
            what = f"preflight {ADMISSION}: the plugin's pods would be refused in {namespace}"
            verdict.problems.append(
                Problem(what, why, f"{remedy}; --skip {ADMISSION} goes on regardless", Exit.FINDINGS)
            )
        else:
            verdict.notes.append(f"whether {namespace} admits the plugin's pods could not be tried: {said}")
