"""The vGPU device plugin: registers a node's cards while its pod runs, and hands out what the scheduler planned.

It is as particular as the real one (docs/contract.md): it reads the device configuration once, under the rights of
its pod's service account; without a factor it crashes; without its mounts and environment it registers nothing. When
its pod goes the kubelet offers nothing any more, and the annotations stay behind.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.bench import Bench
from tests.cluster.client import MERGE, ApiError, Client

Object = Mapping[str, Any]
REGISTER, HANDSHAKE = "volcano.sh/node-vgpu-register", "volcano.sh/node-vgpu-handshake"
_KUBELET = "/var/lib/kubelet/device-plugins"
_RESOURCES = tuple(f"volcano.sh/vgpu-{what}" for what in ("number", "memory", "cores"))


@dataclass(frozen=True)
class Card:
    """A card in a machine. memory: MiB. model: as in its type."""

    uuid: str
    memory: int
    model: str


@dataclass(frozen=True)
class Offer:
    """What a plugin tells of its node. client: under the rights of its pod."""

    uid: str
    client: Client
    register: str
    amounts: Mapping[str, str]


class DevicePlugin:
    """The plugins of all nodes. host: a node's disk."""

    def __init__(self, bench: Bench, nodes: Mapping[str, tuple[Card, ...]], host: Callable[[str], Path]) -> None:
        self._bench = bench
        self._host = host
        self._nodes = nodes
        self._offers: dict[str, Offer] = {}
        self._clients: dict[str, Client] = {}

    def look(self, nodes: Iterable[Object], pods: Iterable[Object]) -> None:
        pods = list(pods)
        running = {pod["spec"]["nodeName"]: pod for pod in pods if _runs(pod)}
        for node in nodes:
            name = node["metadata"]["name"]
            if not self._nodes.get(name):
                continue
            pod, offer = running.get(name), self._offers.get(name)
            if pod is None:
                self._offers.pop(name, None)
                self._offer(node, dict.fromkeys(_RESOURCES, "0"), only_known=True)
                continue
            if offer is None or offer.uid != pod["metadata"]["uid"]:
                try:
                    offer = self._offers[name] = self._begin(name, pod)
                except (LookupError, ZeroDivisionError, TypeError) as error:
                    self._crash(pod, error)
                    continue
            self._register(node, offer)
            self._allocate(name, pods, offer)

    def _begin(self, node: str, pod: Object) -> Offer:
        """What a plugin that just started makes of its configuration and its cards."""
        client = self._as(pod)
        config = yaml.safe_load(self._device_config(client))["nvidia"]
        own = self._node_config(pod, node)
        hidden = own.get("filterdevices", {})
        factor, split = config["gpuMemoryFactor"], own.get("devicesplitcount") or config["deviceSplitCount"]
        cards = [
            card
            for index, card in enumerate(self._nodes[node])
            if card.uuid not in hidden.get("uuid", []) and index not in hidden.get("index", [])
        ]
        hook = next(item["value"] for item in _plugin(pod)["env"] if item["name"] == "HOOK_PATH")
        for folder in ("/tmp/vgpulock", f"{hook}/vgpu/containers"):
            (self._host(node) / folder.lstrip("/")).mkdir(parents=True, exist_ok=True)
        mode = own.get("operatingmode") or "hami-core"
        told = [
            f"{card.uuid},{split},{card.memory // factor},NVIDIA-NVIDIA {card.model},true,{mode}:" for card in cards
        ]
        cores = 100 * (own.get("devicecorescaling") or config["deviceCoreScaling"])
        amounts = (split * len(cards), sum(card.memory // factor for card in cards), int(cores * len(cards)))
        return Offer(
            pod["metadata"]["uid"], client, "".join(told), dict(zip(_RESOURCES, map(str, amounts), strict=True))
        )

    def _crash(self, pod: Object, error: Exception) -> None:
        """What the kubelet tells of a plugin that ended; it stays so until the pod is made anew."""
        name = _plugin(pod)["name"]
        ended = {"exitCode": 2, "reason": "Error", "message": f"panic: {error!r}"}
        state = {"waiting": {"reason": "CrashLoopBackOff", "message": f"back-off restarting failed {name}"}}
        statuses = [
            {**status, "ready": False, "state": state, "lastState": {"terminated": ended}, "restartCount": 1}
            if status["name"] == name
            else status
            for status in pod["status"]["containerStatuses"]
        ]
        lost = [{"type": kind, "status": "False"} for kind in ("Ready", "ContainersReady")]
        path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}/status"
        status = {"status": {"conditions": lost, "containerStatuses": statuses}}
        self._bench.client.request("PATCH", path, status, content_type="application/strategic-merge-patch+json")

    def _as(self, pod: Object) -> Client:
        account = pod["spec"].get("serviceAccountName", "default")
        user = f"system:serviceaccount:{pod['metadata']['namespace']}:{account}"
        if user not in self._clients:
            self._clients[user] = self._bench.client_as(user)
        return self._clients[user]

    def _device_config(self, client: Client) -> str:
        for space in ("kube-system", "volcano-system"):
            try:
                found = client.get(f"/api/v1/namespaces/{space}/configmaps/volcano-vgpu-device-config")
            except ApiError as error:
                if error.status != 404:
                    raise
            else:
                return str(found["data"]["device-config.yaml"])
        raise LookupError("there is no device configuration: the plugin divides by zero")

    def _node_config(self, pod: Object, node: str) -> Mapping[str, Any]:
        """This node's part of the file that is mounted at /config."""
        volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
        mounts = (mount for mount in _plugin(pod)["volumeMounts"] if mount["mountPath"] == "/config")
        for mount in mounts:
            name = volumes[mount["name"]]["configMap"]["name"]
            try:
                found = self._bench.client.get(f"/api/v1/namespaces/{pod['metadata']['namespace']}/configmaps/{name}")
            except ApiError:
                return {}
            entries = json.loads(found["data"]["config.json"])["nodeconfig"]
            return next((entry for entry in entries if entry["name"] == node), {})
        return {}

    def _register(self, node: Object, offer: Offer) -> None:
        notes = node["metadata"].get("annotations", {})
        if notes.get(REGISTER) != offer.register or not notes.get(HANDSHAKE, "").startswith("Reported"):
            now = time.strftime("%Y-%m-%d %H:%M:%S.0 +0000 UTC", time.gmtime())
            new = {REGISTER: offer.register, HANDSHAKE: f"Reported {now}"}
            path = f"/api/v1/nodes/{node['metadata']['name']}"
            offer.client.request("PATCH", path, {"metadata": {"annotations": new}}, content_type=MERGE)
        self._offer(node, offer.amounts)

    def _offer(self, node: Object, amounts: Mapping[str, str], *, only_known: bool = False) -> None:
        """The kubelet's part: what the node can give."""
        have = node["status"]["allocatable"]
        new = {name: value for name, value in amounts.items() if have.get(name, "0" if only_known else "") != value}
        if new:
            path = f"/api/v1/nodes/{node['metadata']['name']}/status"
            status = {"status": {"capacity": new, "allocatable": new}}
            self._bench.client.request("PATCH", path, status, content_type=MERGE)

    def _allocate(self, node: str, pods: Iterable[Object], offer: Offer) -> None:
        """Hands out what the scheduler planned for pods that were just bound to the node."""
        for pod in pods:
            notes = pod["metadata"].get("annotations", {})
            if pod["spec"].get("nodeName") == node and notes.get("volcano.sh/bind-phase") == "allocating":
                done = {"volcano.sh/bind-phase": "success", "volcano.sh/devices-to-allocate": ""}
                path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
                offer.client.request("PATCH", path, {"metadata": {"annotations": done}}, content_type=MERGE)


def _runs(pod: Object) -> bool:
    """It is a pod of the plugin that runs, with all that the plugin needs of its manifest."""
    ready = any(item["type"] == "Ready" and item["status"] == "True" for item in pod["status"].get("conditions", []))
    return ready and "deletionTimestamp" not in pod["metadata"] and bool(_plugin(pod))


def _plugin(pod: Object) -> Mapping[str, Any]:
    """The container that runs the plugin; {} for none."""
    for container in pod["spec"]["containers"]:
        environment = {item["name"]: item for item in container.get("env", [])}
        own = environment.get("NODE_NAME", {}).get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
        hook = environment.get("HOOK_PATH", {}).get("value", "")
        mounted = {mount["mountPath"].rstrip("/") for mount in container.get("volumeMounts", [])}
        if (
            own == "spec.nodeName"
            and {hook, "/tmp", _KUBELET} <= mounted
            and container.get("securityContext", {}).get("privileged")
            and environment.get("NVIDIA_VISIBLE_DEVICES", {}).get("value") == "all"
        ):
            found: Mapping[str, Any] = container
            return found
    return {}
