"""Waits for pods: what is ready, and for each that does not come up the reason."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from vgpuctl.model.change import Target
from vgpuctl.model.install.manifests import PLUGIN, TEMPLATE
from vgpuctl.model.install.reasons import Reason, events, is_ready, reason, told
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.tasks.apply import Conduct, Wait
from vgpuctl.tasks.install.live import Live, Object, selected_pods

_LOOK = 2.0
"""Seconds between two looks at all pods."""
_FEW = 10
"""Up to so many nodes are asked one by one for their pod, more all at once."""
_AGAIN = "(combined from similar events): "
PATIENCE = 10.0
"""Seconds for which a pod may be without hope, before a stage of an upgrade is given up."""


def daemonset(namespace: str, name: str = PLUGIN) -> Target:
    return Target("DaemonSet", name, namespace, "apps/v1")


def pods_of(cluster: Live, namespace: str, name: str = PLUGIN) -> list[Object]:
    """The pods of a DaemonSet of ours, which is named as its pods' label."""
    return cluster.objects("Pod", namespace=namespace, query={"labelSelector": f"name={name}"})


def pods_on(cluster: Live, namespace: str, nodes: Collection[str]) -> list[Object]:
    """The plugin's pods on some nodes; a stage of a large pool need not list all of its pods."""
    if len(nodes) > _FEW:
        return [pod for pod in pods_of(cluster, namespace) if node_of(pod) in nodes]
    found = []
    for node in nodes:
        query = {"labelSelector": f"name={PLUGIN}", "fieldSelector": f"spec.nodeName={node}"}
        found += cluster.objects("Pod", namespace=namespace, query=query)
    return found


def node_of(pod: Object) -> str:
    return str(pod.get("spec", {}).get("nodeName") or "")


def template_of(pod: Object) -> str:
    """The hash of the template that a pod was made from; "" when it is no pod of ours."""
    return str((pod["metadata"].get("annotations") or {}).get(TEMPLATE, ""))


@dataclass
class Teller:
    """Says what holds pods up, each reason once."""

    say: Callable[[str], None]
    said: set[str] = field(default_factory=set)

    def tell(self, reasons: Sequence[Reason]) -> None:
        line = told(reasons)
        if line and line not in self.said:
            self.said.add(line)
            self.say(line)


def whole_rollout(cluster: Live, where: Target, what: str, conduct: Conduct) -> Wait:
    """Until a DaemonSet's newest template runs on every node that it is for."""
    teller = Teller(conduct.say)
    seen: dict[str, Any] = {"at": 0.0, "count": None}

    def done() -> bool:
        status, current = _status(cluster, where)
        desired, ready = status.get("desiredNumberScheduled", 0), status.get("numberAvailable", 0)
        updated = status.get("updatedNumberScheduled", 0)
        count = (min(ready, updated), desired)
        if current and count != seen["count"]:
            seen["count"] = count
            conduct.say(f"{what}: {count[0]} of {desired} nodes ready")
        if current and updated == desired == ready:
            return True
        if conduct.now() - seen["at"] >= _LOOK:
            seen["at"] = conduct.now()
            teller.tell(_reasons(cluster, where))
        return False

    return Wait(f"{what} on every node", done, lambda: why_not_ready(cluster, where))


def _status(cluster: Live, where: Target) -> tuple[dict[str, Any], bool]:
    """A DaemonSet's status, and whether it is that of its newest specification. Raises Problem when it is gone."""
    found = cluster.get(where)
    if found is None:
        raise Problem(f"{where} was deleted meanwhile", remedy="run the command again", exit_code=Exit.FINDINGS)
    status: dict[str, Any] = found.get("status") or {}
    return status, status.get("observedGeneration", 0) >= found["metadata"].get("generation", 1)


def why_not_ready(cluster: Live, where: Target) -> str:
    """What holds the pods of a DaemonSet up, on one line; events are asked too."""
    return told(_reasons(cluster, where, late=True))


def _reasons(cluster: Live, where: Target, *, late: bool = False) -> list[Reason]:
    """What holds the pods up; late: events too, for pods that say nothing themselves and for pods that cannot be
    made (Pod Security, quota, webhooks)."""
    pods = pods_of(cluster, where.namespace, where.name)
    found = [one for pod in pods if (one := reason(pod))]
    if len(pods) < _status(cluster, where)[0].get("desiredNumberScheduled", 0):
        refused = [line for line in _warnings(cluster, where) if line.startswith("FailedCreate")]
        found += [Reason("", line, hopeless=True) for line in refused[:1]]
    silent = [pod for pod in pods if late and not is_ready(pod) and reason(pod) is None]
    down = _down(cluster) if silent else ()
    for pod in silent:
        newest = next(iter(_warnings(cluster, Target("Pod", pod["metadata"]["name"], where.namespace))), "")
        phase = str(pod.get("status", {}).get("phase") or "Pending")
        said = "the node is not ready" if node_of(pod) in down else newest or f"{phase}, and nothing says why"
        found.append(Reason(node_of(pod), said))
    return found


def _down(cluster: Live) -> set[str]:
    """The nodes that are not ready."""
    found = set()
    for node in cluster.objects("Node"):
        for condition in node.get("status", {}).get("conditions") or []:
            if condition.get("type") == "Ready" and condition.get("status") != "True":
                found.add(str(node["metadata"]["name"]))
    return found


def _warnings(cluster: Live, where: Target) -> list[str]:
    query = {"fieldSelector": f"involvedObject.name={where.name},involvedObject.kind={where.kind},type=Warning"}
    return [
        line.replace(_AGAIN, "") for line in events(cluster.objects("Event", namespace=where.namespace, query=query))
    ]


@dataclass
class _Stage:
    """Looks at the plugin's pods on some nodes until each has a ready one of a template."""

    cluster: Live
    namespace: str
    nodes: Collection[str]
    template: str
    settle: float
    conduct: Conduct
    since: dict[str, float] = field(default_factory=dict)
    hopeless: dict[str, float] = field(default_factory=dict)

    def done(self) -> bool:
        now = self.conduct.now()
        pods = pods_on(self.cluster, self.namespace, self.nodes)
        new = [pod for pod in pods if template_of(pod) == self.template]
        ready = {node_of(pod) for pod in new if is_ready(pod)}
        self.since = {node: self.since.get(node, now) for node in ready}
        bad = [found for pod in new if (found := reason(pod)) and found.hopeless]
        self.hopeless = {one.node: self.hopeless.get(one.node, now) for one in bad}
        if any(now - first >= PATIENCE for first in self.hopeless.values()):
            raise Problem(
                "the plugin does not come up", told(bad), "mend that, and run the command again", Exit.FINDINGS
            )
        return ready >= set(self.nodes) and all(now - first >= self.settle for first in self.since.values())

    def why(self) -> str:
        return told(
            [one for one in _reasons(self.cluster, daemonset(self.namespace), late=True) if one.node in self.nodes]
        )


def stage(
    cluster: Live,
    namespace: str,
    nodes: Collection[str],
    template: str,
    settle: float,
    conduct: Conduct,
    title: str = "",
) -> Wait:
    """Until the plugin's pods on these nodes are of a template and were ready for `settle` seconds. One that has no
    hope ends it at once. title: goes before its name."""
    look = _Stage(cluster, namespace, nodes, template, settle, conduct)
    return Wait(f"{title}the plugin on {some(nodes)}", look.done, look.why, conduct.timeout)


def some(names: Collection[str], most: int = 3) -> str:
    """Names of nodes, the first few."""
    shown = ", ".join(sorted(names)[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def no_pods(cluster: Live, namespace: str, name: str) -> Wait:
    """Until the pods of a DaemonSet that was deleted are gone."""

    def left() -> list[Object]:
        return pods_of(cluster, namespace, name)

    return Wait(
        f"the pods of {name} are gone",
        lambda: not left(),
        lambda: f"still there on {some({node_of(pod) for pod in left()})}",
    )


def deployment(cluster: Live, where: Target, what: str) -> Wait:
    """Until a Deployment runs its newest template only."""

    def done() -> bool:
        found = cluster.get(where)
        if found is None:
            return True
        status, replicas = found.get("status") or {}, found.get("spec", {}).get("replicas", 1)
        current = status.get("observedGeneration", 0) >= found["metadata"].get("generation", 1)
        counts = [status.get(key, 0) for key in ("updatedReplicas", "availableReplicas", "replicas")]
        return current and all(count == replicas for count in counts)

    def why() -> str:
        found = cluster.get(where)
        return told([one for pod in selected_pods(cluster, found) if (one := reason(pod))]) if found else ""

    return Wait(what, done, why)
