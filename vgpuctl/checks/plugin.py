"""Checks of the device plugin: its rollout, what it registered, what the nodes offer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from vgpuctl.checks import share
from vgpuctl.checks.check import Check, Evidence, Options, Result, Skip, Status, Where
from vgpuctl.model import annotation, kube, pool
from vgpuctl.model.change import Change, How, Line, Target
from vgpuctl.model.config.factor import SAFE_ENTRIES, smallest
from vgpuctl.model.facts import Facts, Part
from vgpuctl.model.pool import GpuNode
from vgpuctl.model.version_number import VersionNumber
from vgpuctl.model.volcano import wants_handshake

_LOG_SIGNS = (
    (re.compile(r"integer divide by zero"), "gpuMemoryFactor is absent or 0", "set gpuMemoryFactor: 1 or more"),
    (
        re.compile(r"register device plugin.*(deadline exceeded|connection refused|no such file)"),
        "it cannot reach the kubelet's socket",
        "mount the kubelet's own device-plugins directory",
    ),
    (
        re.compile(r"larger than max|ResourceExhausted"),
        "its message to the kubelet is larger than 4 MiB",
        "raise gpuMemoryFactor: see memory-entries",
    ),
    (
        re.compile(r"(NVML|nvml).*(Unknown Error|\b999\b)"),
        "NVML fails with an unknown error",
        "the container lost its devices (cgroup reload) or the driver hangs: restart the pod, then the node",
    ),
    (
        re.compile(r"libnvidia-ml|Driver Not Loaded|driver/library version mismatch", re.IGNORECASE),
        "NVML does not work in its container",
        "is the NVIDIA runtime the node's default runtime, and the driver loaded?",
    ),
)


def rollout(facts: Facts, options: Options) -> Iterator[Result]:
    sets = pool.plugin_daemonsets(facts)
    if not sets:
        yield Result(
            Status.FAIL,
            "no DaemonSet of the vGPU device plugin",
            evidence=(Evidence("DaemonSets", f"none of {len(facts.daemonsets.need())} runs it"),),
            remedy="vgpuctl install",
        )
        return
    for item in sets:
        subject = f"DaemonSet {pool.full_name(item.metadata)}"
        desired, ready = item.status.desired_number_scheduled, item.status.number_ready
        images = ", ".join(container.image for container in item.spec.template.spec.containers[:1])
        evidence = (Evidence(subject, f"{ready} of {desired} pods ready; {images}"),)
        if desired == 0:
            yield Result(
                Status.FAIL, "it runs on no node", subject, evidence, "label the GPU nodes as its nodeSelector wants"
            )
        elif ready < desired:
            yield Result(
                Status.FAIL,
                f"{ready} of {desired} pods are ready",
                subject,
                (*evidence, *_log(facts)),
                _log_remedy(facts) or "kubectl describe and logs of its pods that are not ready",
            )
        else:
            yield Result(Status.PASS, f"{ready} of {desired} pods ready", subject, evidence)
    yield from _restarts(facts)


def _restarts(facts: Facts) -> Iterator[Result]:
    for pod in pool.plugin_pods(facts) if facts.pods.known and not facts.scope else ():
        restarts = sum(status.restart_count for status in pod.status.container_statuses or ())
        if restarts >= 3:
            yield Result(
                Status.WARN,
                "the plugin restarted again and again",
                f"Node {pod.spec.node_name}",
                (Evidence(share.pod_subject(pod), f"{restarts} restarts"), *_log(facts)),
                _log_remedy(facts) or "kubectl logs --previous of this pod",
            )


def _log(facts: Facts) -> tuple[Evidence, ...]:
    found = _classified(facts)
    return (Evidence("plugin log", f"{found[0]}: {found[1]}"),) if found else ()


def _log_remedy(facts: Facts) -> str:
    found = _classified(facts)
    return found[2] if found else ""


def _classified(facts: Facts) -> tuple[str, str, str] | None:
    """The newest log line that is understood: the line, what it means, what to do."""
    for line in reversed((facts.logs.value or {}).get("plugin", "").splitlines()):
        for sign, meaning, remedy in _LOG_SIGNS:
            if sign.search(line):
                return " ".join(line.split())[-200:], meaning, remedy
    return None


def coverage(facts: Facts, options: Options) -> Iterator[Result]:
    share.everything(facts)
    pods = pool.plugin_pods(facts)
    if not pods and not facts.daemonsets.known:
        raise Skip("no pod of the plugin was found")
    running = {pod.spec.node_name for pod in pods}
    for gpu in share.gpu_nodes(facts):
        subject = share.node_subject(gpu)
        if gpu.name not in running:
            yield Result(
                Status.FAIL,
                "a GPU node without a pod of the plugin",
                subject,
                (Evidence(subject, "no plugin pod has this spec.nodeName"),),
                "check nodeSelector and tolerations of the plugin's DaemonSet",
            )
        elif not gpu.cards:
            yield Result(
                Status.FAIL,
                "a plugin pod runs here, but no card is registered",
                subject,
                (
                    Evidence(subject, gpu.register.error if gpu.register else f"no annotation {annotation.REGISTER}"),
                    *_log(facts),
                ),
                _log_remedy(facts) or "kubectl logs of the plugin pod on this node",
            )


def memory_entries(facts: Facts, options: Options) -> Iterator[Result]:
    """One device per memory unit is announced to the kubelet in one message of at most 4 MiB."""
    factor = pool.memory_factor(facts) if facts.configmaps.known else None
    for gpu in share.registered(facts):
        entries = sum(max(0, card.memory) for card in gpu.cards)
        if entries <= SAFE_ENTRIES:
            continue
        subject = share.node_subject(gpu)
        yield Result(
            Status.FAIL,
            "more memory entries than the kubelet takes",
            subject,
            (Evidence(subject, f"{entries} entries, safe are {SAFE_ENTRIES}"),),
            _factor_remedy(gpu, factor),
        )


def _factor_remedy(gpu: GpuNode, factor: int | None) -> str:
    if factor is None:
        return "raise gpuMemoryFactor in the device configuration"
    best = smallest((max(0, card.memory) * factor, 1) for card in gpu.cards)
    return f"gpuMemoryFactor: {best} or more (it is {factor}); every request, quota and queue cap changes its meaning"


def allocatable(facts: Facts, options: Options) -> Iterator[Result]:
    names = pool.resource_names(facts)
    for gpu in share.registered(facts):
        subject = share.node_subject(gpu)
        have = gpu.node.status.allocatable
        sums = {
            names.number: (_sum(gpu, "count", healthy=True), _sum(gpu, "count")),
            names.memory: (_sum(gpu, "memory", healthy=True), _sum(gpu, "memory")),
            names.cores: (1, None),
        }
        empty = [name for name in sums if pool.amount(have, name) <= 0]
        shown = ", ".join(f"{name} {(have or {}).get(name, 'absent')}" for name in sums)
        evidence = (
            Evidence(subject, f"allocatable: {shown}"),
            Evidence(subject, f"registered: {sums[names.number][1]} vGPUs, {sums[names.memory][1]} memory units"),
        )
        if empty:
            yield Result(
                Status.FAIL,
                f"offers no {share.some(empty)}",
                subject,
                (*evidence, *_log(facts)),
                "the kubelet dropped the plugin's list or the plugin its connection: see memory-entries and "
                "socket-directory, then restart the plugin pod",
            )
            continue
        other = [
            name
            for name, (least, most) in sums.items()
            if most is not None and not least <= pool.amount(have, name) <= most
        ]
        if other:
            yield Result(
                Status.FAIL,
                f"offers another amount of {share.some(other)} than the plugin registered",
                subject,
                evidence,
                "restart the plugin pod of this node: allocatable is stale",
            )


def _sum(gpu: GpuNode, field: str, *, healthy: bool = False) -> int:
    return sum(int(getattr(card, field)) for card in gpu.cards if card.healthy or not healthy)


def register(facts: Facts, options: Options) -> Iterator[Result]:
    names, version = pool.resource_names(facts), pool.volcano_version(facts)
    for gpu in share.gpu_nodes(facts):
        subject = share.node_subject(gpu)
        if gpu.register is None:
            if pool.amount(gpu.node.status.allocatable, names.number):
                yield Result(
                    Status.FAIL,
                    "offers vGPUs but has no register annotation: pods are bound here without devices",
                    subject,
                    (Evidence(subject, f"no annotation {annotation.REGISTER}"),),
                    "restart the plugin pod of this node",
                )
            continue
        text = gpu.node.metadata.annotation(annotation.REGISTER) or ""
        evidence = (Evidence(subject, f"{annotation.REGISTER}: {text[:200]}"),)
        if gpu.register.error:
            yield Result(
                Status.FAIL,
                "the scheduler cannot read the register annotation and sees no vGPU",
                subject,
                (*evidence, Evidence(subject, gpu.register.error)),
                "restart the plugin pod of this node; if it comes back, the plugin's version does not fit",
            )
            continue
        wrong = _wrong_cards(gpu)
        if wrong:
            yield Result(Status.FAIL, wrong, subject, evidence, "restart the plugin pod of this node")
        yield from _against_driver(facts, gpu, evidence)
        if version is not None and wants_handshake(version):
            yield from _handshake(facts, gpu, version)


def _wrong_cards(gpu: GpuNode) -> str:
    twice = [uuid for uuid, times in Counter(card.uuid for card in gpu.cards).items() if times > 1]
    if twice:
        return "a card is registered twice"
    if any(not card.uuid for card in gpu.cards):
        return "a card is registered without its UUID"
    if any(card.count <= 0 or card.memory <= 0 for card in gpu.cards):
        return "a card is registered with no vGPU or no memory"
    return ""


def _against_driver(facts: Facts, gpu: GpuNode, evidence: tuple[Evidence, ...]) -> Iterator[Result]:
    """Where we run on the node itself: the same cards as NVML shows."""
    host, cards = facts.host.value, facts.cards.value
    if host is None or not cards or host.name != gpu.name:
        return
    there, registered = {card.uuid for card in cards}, {card.uuid for card in gpu.cards}
    gone = sorted(registered - there)
    if gone:
        yield Result(
            Status.FAIL,
            "a card is registered that the driver does not show",
            share.node_subject(gpu),
            (*evidence, Evidence("NVML", f"{share.count(len(there), 'card')}; missing {share.some(gone)}")),
            "is the card dead or in another VM? restart the plugin pod when it is back",
        )


def _handshake(facts: Facts, gpu: GpuNode, version: VersionNumber) -> Iterator[Result]:
    subject = share.node_subject(gpu)
    text = gpu.node.metadata.annotation(annotation.HANDSHAKE)
    shake = annotation.decode_handshake(text) if text is not None else None
    if shake is not None and shake.state == "Reported":
        return
    if shake is not None and shake.state == "Requesting" and shake.at is not None and facts.now - shake.at <= 60:
        return
    yield Result(
        Status.FAIL,
        f"Volcano {version} gets no handshake from the plugin and sees no vGPU here",
        subject,
        (Evidence(subject, f"{annotation.HANDSHAKE}: {text if text is not None else 'absent'}"),),
        "upgrade Volcano to 1.14.3, 1.15.1 or newer, or use plugin v1.12.0",
    )


def unhealthy(facts: Facts, options: Options) -> Iterator[Result]:
    for gpu in share.registered(facts):
        bad = [card for card in gpu.cards if not card.healthy]
        if bad and not gpu.node.spec.unschedulable:
            subject = share.node_subject(gpu)
            yield Result(
                Status.FAIL,
                "an unhealthy card is registered, and Volcano still gives it out",
                subject,
                (Evidence(subject, f"{len(bad)} of {len(gpu.cards)} cards: {share.some(card.uuid for card in bad)}"),),
                "take the card out of service with filterdevices in the node configuration, or cordon the node",
            )


def node_lock(facts: Facts, options: Options) -> Iterator[Result]:
    locked = 0
    for node in facts.nodes.need():
        text = node.metadata.annotation(annotation.LOCK)
        if text is None:
            continue
        locked += 1
        age = annotation.lock_age(text, facts.now)
        subject = share.node_subject(node)
        evidence = (Evidence(subject, f"{annotation.LOCK}: {text}"),)
        if age is None:
            summary, status = "its lock is not a time: no vGPU pod will ever be bound here", Status.FAIL
        elif age < -60:
            summary, status = (
                "its lock lies in the future: vGPU pods wait until that time and 5 minutes more",
                Status.FAIL,
            )
        elif age > annotation.LOCK_SECONDS:
            summary, status = "its lock was left behind", Status.WARN
        else:
            continue
        yield Result(
            status, summary, subject, evidence, "remove the annotation (--fix does it)", (_unlock(node, text),)
        )
    if not locked:
        yield Result(Status.PASS, "no node is locked")


def _unlock(node: kube.Node, text: str) -> Change:
    """Removes the lock if it still is the one that was read; a node's resourceVersion changes all the time."""
    path = f"/metadata/annotations/{annotation.LOCK}"
    name = node.metadata.name
    return Change(
        Target("Node", name),
        How.PATCH,
        after=[{"op": "test", "path": path, "value": text}, {"op": "remove", "path": path}],
        before={"metadata": {"annotations": {annotation.LOCK: text}}},
        lines=(Line(f"metadata.annotations.{annotation.LOCK}", text, None),),
        undo=f"kubectl annotate node {name} {annotation.LOCK}={text!r}",
        why="vGPU pods can be bound on this node again",
    )


CHECKS = (
    Check(
        "plugin-rollout",
        "The device plugin runs on every node that should have it",
        "plugin",
        Status.FAIL,
        (Part.DAEMONSETS,),
        (Where.API,),
        rollout,
        also=(Part.PODS, Part.LOGS),
    ),
    Check(
        "plugin-coverage",
        "Every GPU node has a plugin pod, every plugin pod has cards",
        "plugin",
        Status.FAIL,
        (Part.NODES, Part.PODS),
        (Where.API,),
        coverage,
        also=(Part.DAEMONSETS, Part.CONFIGMAPS, Part.LOGS),
    ),
    Check(
        "memory-entries",
        "The memory entries of a node fit into the kubelet's message",
        "plugin",
        Status.FAIL,
        (Part.NODES,),
        (Where.API,),
        memory_entries,
        also=(Part.CONFIGMAPS,),
        explain="The plugin announces one device for each memory unit, all cards of a node in one gRPC message. Beyond "
        "4 MiB the kubelet drops it, allocatable stays 0 or stale, and Volcano silently sees no vGPU.",
    ),
    Check(
        "allocatable",
        "Nodes offer what the plugin registered",
        "plugin",
        Status.FAIL,
        (Part.NODES,),
        (Where.API,),
        allocatable,
        also=(Part.CONFIGMAPS, Part.LOGS),
    ),
    Check(
        "register-annotation",
        "The scheduler can read each node's cards",
        "plugin",
        Status.FAIL,
        (Part.NODES,),
        (Where.API, Where.PLUGIN),
        register,
        also=(Part.CONFIGMAPS, Part.PODS, Part.DEPLOYMENTS, Part.HOST, Part.CARDS),
    ),
    Check(
        "unhealthy-cards",
        "No unhealthy card is given out",
        "plugin",
        Status.FAIL,
        (Part.NODES,),
        (Where.API,),
        unhealthy,
        also=(Part.CONFIGMAPS,),
        explain="Volcano decodes a card's health but does not use it when it places a pod.",
    ),
    Check(
        "node-lock",
        "No node is locked for good",
        "plugin",
        Status.FAIL,
        (Part.NODES,),
        (Where.API,),
        node_lock,
        fixable=True,
        explain="With deviceshare.NodeLockEnable the scheduler sets the annotation `hamivgpu` while it binds a pod. "
        "Others fail until it is removed or 5 minutes old; a value that is no time blocks the node for ever.",
    ),
)
