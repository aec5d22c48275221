"""Checks of the cluster itself: the API server, our rights, the GPU nodes, resource names."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from vgpuctl.checks import share
from vgpuctl.checks.check import Check, Evidence, Options, Result, Status, Where
from vgpuctl.model import kube, pool
from vgpuctl.model.access import RIGHTS
from vgpuctl.model.facts import Facts, Part
from vgpuctl.model.resource import ResourceNames
from vgpuctl.model.version_number import VersionNumber

_OLDEST = VersionNumber("1.20")
_SKEW = 3
"""Minor versions that a kubelet may be behind: https://kubernetes.io/releases/version-skew-policy/."""
_TROUBLE = "node.kubernetes.io/"


def api(facts: Facts, options: Options) -> Iterator[Result]:
    text = facts.version.need()
    evidence = (Evidence("/version", text),)
    server = _version(text)
    if server is None:
        yield Result(Status.UNKNOWN, f"the API server's version {text!r} cannot be read", evidence=evidence)
        return
    if server < _OLDEST:
        yield Result(
            Status.FAIL,
            f"Kubernetes {server} is older than 1.20",
            evidence=evidence,
            remedy="upgrade the cluster; device plugins and quotas of this pool need 1.20",
        )
        return
    yield Result(Status.PASS, f"Kubernetes {server}", evidence=evidence)
    for node in facts.nodes.value or ():
        kubelet = _version(node.status.node_info.kubelet_version)
        if kubelet is None:
            continue
        behind = server.minor - kubelet.minor
        if behind > _SKEW or behind < 0:
            where = "newer than" if behind < 0 else f"more than {_SKEW} minor versions behind"
            yield Result(
                Status.WARN,
                f"the kubelet is {where} the API server",
                share.node_subject(node),
                (Evidence(share.node_subject(node), f"kubelet {kubelet}, API server {server}"),),
                "upgrade the older of the two",
            )


def _version(text: str) -> VersionNumber | None:
    try:
        return VersionNumber(text)
    except ValueError:
        return None


def access(facts: Facts, options: Options) -> Iterator[Result]:
    """What cannot be read stays unknown elsewhere, so it is unknown here too; what cannot be written is a warning."""
    allowed = facts.access.need()
    for use, status, effect in (
        ("read", Status.UNKNOWN, "what depends on it stays unknown"),
        ("write", Status.WARN, "commands that change it will be refused"),
    ):
        lacking = [right.id for right in RIGHTS if right.use == use and allowed.get(right.id) is False]
        if lacking:
            yield Result(
                status,
                f"no right to {share.some(lacking)}: {effect}",
                evidence=(Evidence("SelfSubjectAccessReview", f"denied: {', '.join(lacking)}"),),
                remedy="bind a role that allows it, or use another user",
            )


def nodes(facts: Facts, options: Options) -> Iterator[Result]:
    for gpu in share.gpu_nodes(facts):
        node, subject = gpu.node, share.node_subject(gpu)
        ready = next((item for item in node.status.conditions or () if item.type == "Ready"), None)
        if ready is not None and ready.status != "True":
            yield Result(
                Status.WARN,
                "not ready",
                subject,
                (Evidence(subject, f"Ready={ready.status} {ready.reason}: {ready.message}".rstrip(": ")),),
                "look at the kubelet: journalctl -u kubelet",
            )
        if node.spec.unschedulable:
            yield Result(
                Status.WARN,
                "cordoned",
                subject,
                (Evidence(subject, "spec.unschedulable: true"),),
                "kubectl uncordon it when it may be used",
            )
        taints = [
            item
            for item in node.spec.taints or ()
            if item.key.startswith(_TROUBLE) and item.key != f"{_TROUBLE}unschedulable"
        ]
        for taint in taints:
            yield Result(
                Status.WARN,
                f"tainted {taint.key}",
                subject,
                (Evidence(subject, f"{taint.key}:{taint.effect}"),),
                "mend what the taint tells",
            )


def renamed_resource(facts: Facts, options: Options) -> Iterator[Result]:
    """Compares what waiting pods ask for with what the nodes offer."""
    offered = _offered(facts.nodes.need())
    names = pool.resource_names(facts)
    for pod in facts.pods.need():
        if pod.spec.node_name or not pool.alive(pod):
            continue
        asked = {name for container in pod.spec.containers for name in _asked(container)}
        for name in sorted(asked - offered):
            sibling = _sibling(name, offered, names)
            if sibling:
                yield Result(
                    Status.FAIL,
                    f"asks {name}, which no node offers; {sibling} is offered",
                    share.pod_subject(pod),
                    (Evidence(share.pod_subject(pod), f"asks {name}"), *_renaming(facts, name, sibling)),
                    f"ask {sibling} instead, or have the plugin offer {name} (NVIDIA's plugin: renameByDefault: false)",
                )


def metrics_path(facts: Facts, options: Options) -> Iterator[Result]:
    """The nodes' monitors, asked through the API server's proxy as top asks them."""
    if facts.metrics.value is None:
        if facts.metrics.denied or not facts.metrics.source:
            facts.metrics.need()
        yield Result(
            Status.WARN,
            facts.metrics.reason,
            evidence=(Evidence(facts.metrics.source, facts.metrics.reason),),
            remedy="top then shows what was given out, but no use; look at the monitor's container of the plugin",
        )
        return
    for answer in facts.metrics.value:
        if answer.reason:
            yield Result(
                Status.WARN,
                "its monitor cannot be read through the API server",
                f"Node {answer.node}",
                (Evidence(f"Node {answer.node}", answer.reason),),
                "look at the monitor's container of the plugin, and at network policies between the two",
            )


def _asked(container: kube.Container) -> set[str]:
    resources = {**(container.resources.requests or {}), **(container.resources.limits or {})}
    return {name for name in resources if "/" in name and "kubernetes.io/" not in name and pool.amount(resources, name)}


def _offered(nodes: tuple[kube.Node, ...]) -> set[str]:
    return {
        name
        for node in nodes
        for name in node.status.allocatable or {}
        if "/" in name and pool.amount(node.status.allocatable, name)
    }


def _sibling(name: str, offered: set[str], names: ResourceNames) -> str:
    """An offered resource that a plugin may have made of `name`: a suffix more or less, another domain, a near name."""
    domain, _, own = name.partition("/")
    what = names.what(name) or ResourceNames().what(name)
    if what is not None and names.name(what) != name and names.name(what) in offered:
        return names.name(what)
    same_domain = sorted(other for other in offered if other.startswith(f"{domain}/"))
    for other in same_domain:
        if other.startswith((f"{name}.", f"{name}-")) or name.startswith((f"{other}.", f"{other}-")):
            return other
    same_name = sorted(other for other in offered if other.partition("/")[2] == own)
    if same_name:
        return same_name[0]
    if name == "nvidia.com/gpu" and (slices := [other for other in same_domain if "/mig-" in other]):
        return slices[0]
    return next(iter(difflib.get_close_matches(name, same_domain, n=1, cutoff=0.85)), "")


def _renaming(facts: Facts, name: str, sibling: str) -> Iterator[Evidence]:
    """What the nodes and NVIDIA's plugin configuration say of the two names."""
    for node in facts.nodes.need():
        if pool.amount(node.status.allocatable, sibling):
            have = node.status.allocatable or {}
            yield Evidence(
                share.node_subject(node), f"allocatable {name} {have.get(name, 'none')}, {sibling} {have[sibling]}"
            )
            break
    for item in facts.configmaps.value or ():
        for text in (item.data or {}).values():
            if "renameByDefault: true" in text:
                yield Evidence(f"ConfigMap {pool.full_name(item.metadata)}", "renameByDefault: true")


CHECKS = (
    Check(
        "api",
        "The API server answers, is 1.20 or newer, and the kubelets fit to it",
        "cluster",
        Status.FAIL,
        (Part.VERSION,),
        (Where.API,),
        api,
        also=(Part.NODES,),
        explain="Extended resources, device plugins and resource quotas on them work as described here from 1.20 on.",
    ),
    Check(
        "access",
        "We may do what vgpuctl needs",
        "cluster",
        Status.UNKNOWN,
        (Part.ACCESS,),
        (Where.API,),
        access,
        explain="Asked of the API server itself, by SelfSubjectAccessReviews; nothing is tried out.",
    ),
    Check(
        "nodes",
        "GPU nodes are ready, schedulable and free of trouble",
        "cluster",
        Status.WARN,
        (Part.NODES,),
        (Where.API,),
        nodes,
        also=(Part.CONFIGMAPS,),
    ),
    Check(
        "metrics-path",
        "The monitors on the nodes can be read through the API server",
        "cluster",
        Status.WARN,
        (Part.METRICS,),
        (Where.API,),
        metrics_path,
    ),
    Check(
        "renamed-resource",
        "Waiting pods ask for resources that nodes offer",
        "cluster",
        Status.FAIL,
        (Part.NODES, Part.PODS),
        (Where.API,),
        renamed_resource,
        also=(Part.CONFIGMAPS,),
        explain="A plugin that renames its resource (`nvidia.com/gpu` to `nvidia.com/gpu.shared`) leaves pods that ask "
        "for the old name waiting for ever, without a word on the new one.",
    ),
)
