"""The schedulers: Kubernetes' own for pods that anybody may take, Volcano's for pods with vGPUs.

Volcano's decides by what the nodes' annotations say, first fit, and writes what the real one writes at a bind.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from tests.cluster.client import MERGE, ApiError, Client

Object = Mapping[str, Any]
_VGPU = "volcano.sh/vgpu"


class Scheduler:
    """Binds what is not bound."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def look(self, nodes: Iterable[Object], pods: Iterable[Object]) -> None:
        nodes, pods = list(nodes), list(pods)
        for pod in pods:
            if pod["spec"].get("nodeName") or "deletionTimestamp" in pod["metadata"]:
                continue
            try:
                self._place(pod, nodes, pods)
            except ApiError as error:
                if error.status not in (404, 409):  # it went, or was bound a moment ago
                    raise

    def _place(self, pod: Object, nodes: list[Object], pods: list[Object]) -> None:
        if pod["spec"].get("schedulerName") == "volcano":
            self._share(pod, nodes, pods)
            return
        fitting = [node["metadata"]["name"] for node in nodes if _fits(pod, node)]
        if fitting:
            self._bind(pod, fitting[0])

    def _share(self, pod: Object, nodes: list[Object], pods: list[Object]) -> None:
        held = Counter(card for other in pods for card in _held(other))
        for node in nodes:
            given = _given(pod, node, held)
            if given is not None:
                now, name = str(int(time.time())), node["metadata"]["name"]
                notes = {
                    f"{_VGPU}-node": name, f"{_VGPU}-time": now,
                    "volcano.sh/bind-time": now, "volcano.sh/bind-phase": "allocating",
                    f"{_VGPU}-ids-new": given, "volcano.sh/devices-to-allocate": given,
                }  # fmt: skip
                self._client.request("PATCH", _path(pod), {"metadata": {"annotations": notes}}, content_type=MERGE)
                self._bind(pod, name)
                return

    def _bind(self, pod: Object, node: str) -> None:
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        name = {"name": pod["metadata"]["name"]}
        self._client.post(
            f"{_path(pod)}/binding", {"apiVersion": "v1", "kind": "Binding", "metadata": name, "target": target}
        )


def _fits(pod: Object, node: Object) -> bool:
    """Node selector, the affinity by which a DaemonSet's pod names its node, taints."""
    spec, labels = pod["spec"], node["metadata"]["labels"]
    if any(labels.get(key) != value for key, value in spec.get("nodeSelector", {}).items()):
        return False
    affinity = (
        spec.get("affinity", {}).get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution", {})
    )
    fields = [field for term in affinity.get("nodeSelectorTerms", []) for field in term.get("matchFields", [])]
    if any(node["metadata"]["name"] not in field["values"] for field in fields):
        return False
    return all(_tolerated(taint, spec.get("tolerations", [])) for taint in node["spec"].get("taints", []))


def _tolerated(taint: Object, tolerations: Iterable[Object]) -> bool:
    return any(
        toleration.get("key", taint["key"]) == taint["key"]
        and toleration.get("effect", taint["effect"]) == taint["effect"]
        and (toleration.get("operator") == "Exists" or toleration.get("value", "") == taint.get("value", ""))
        for toleration in tolerations
    )


def _held(pod: Object) -> list[str]:
    """The cards that a pod holds, one for each vGPU."""
    text = pod["metadata"].get("annotations", {}).get(f"{_VGPU}-ids-new", "")
    return [entry.split(",")[0] for entry in text.replace(";", ":").split(":") if entry]


def _given(pod: Object, node: Object, held: Counter[str]) -> str | None:
    """The allocation that a node can give, as the annotation says it; None for none."""
    register = node["metadata"].get("annotations", {}).get("volcano.sh/node-vgpu-register", "")
    if int(node["status"]["allocatable"].get(f"{_VGPU}-number", 0)) == 0:
        return None
    cards = [entry.split(",") for entry in register.split(":") if entry]
    containers = []
    for container in pod["spec"]["containers"]:
        limits = container.get("resources", {}).get("limits", {})
        number, memory, cores = (int(limits.get(f"{_VGPU}-{what}", 0)) for what in ("number", "memory", "cores"))
        free = [card for card in cards if held[card[0]] < int(card[1]) and memory <= int(card[2])]
        if len(free) < number:
            return None
        containers.append("".join(f"{card[0]},NVIDIA,{memory or card[2]},{cores}:" for card in free[:number]))
    return ";".join(containers)


def _path(pod: Object) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
