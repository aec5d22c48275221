"""A healthy pool as facts, and ways to make it ill: two nodes, Volcano, the plugin, a team with a quota."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import msgspec

from vgpuctl.model import kube
from vgpuctl.model.access import RIGHTS
from vgpuctl.model.card import MigProfile
from vgpuctl.model.decode import decode_item
from vgpuctl.model.facts import Facts, Part
from vgpuctl.model.host import Host, Sockets
from vgpuctl.model.reading import known, missing
from vgpuctl.model.usage.sample import Scrape

NOW = 1_780_000_000.0
CREATED, CHANGED, STARTED = "2026-05-28T08:00:00Z", "2026-05-28T09:00:00Z", "2026-05-28T10:00:00Z"
UUIDS = ("GPU-0000000a-0000-0000-0000-000000000001", "GPU-0000000a-0000-0000-0000-000000000002")
SCHEDULER, WEBHOOKS = "volcanosh/vc-scheduler", "volcanosh/vc-webhook-manager"
NAMES = ("volcano.sh/vgpu-number", "volcano.sh/vgpu-memory", "volcano.sh/vgpu-cores")

DEVICE_CONFIG = """nvidia:
  resourceCountName: volcano.sh/vgpu-number
  resourceMemoryName: volcano.sh/vgpu-memory
  resourceMemoryPercentageName: volcano.sh/vgpu-memory-percentage
  resourceCoreName: volcano.sh/vgpu-cores
  deviceSplitCount: 10
  deviceCoreScaling: 1
  gpuMemoryFactor: 1
"""
SCHEDULER_CONF = """actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
- plugins:
  - name: predicates
  - name: deviceshare
    arguments:
      deviceshare.VGPUEnable: true
      deviceshare.SchedulePolicy: binpack
      deviceshare.ScheduleWeight: 10
  - name: proportion
  - name: nodeorder
"""
NODE_CONFIG = '{"nodeconfig": [{"name": "gpu-1", "devicesplitcount": 10}]}'


def register(*uuids: str, count: int = 10, memory: int = 24576, healthy: bool = True, mode: str = "hami-core") -> str:
    return "".join(f"{uuid},{count},{memory},NVIDIA-NVIDIA A30,{str(healthy).lower()},{mode}:" for uuid in uuids)


def node(name: str, number: int, **annotations: str) -> dict[str, Any]:
    offered = dict(zip(NAMES, ("20", "49152", "200"), strict=True))
    uuids = [f"{uuid[:-1]}{number}{uuid[-1]}" for uuid in UUIDS]
    return {
        "metadata": {"name": name, "annotations": {"volcano.sh/node-vgpu-register": register(*uuids)} | annotations},
        "spec": {},
        "status": {
            "allocatable": {"cpu": "16", **offered},
            "capacity": {"cpu": "16", **offered},
            "conditions": [{"type": "Ready", "status": "True"}],
            "nodeInfo": {"kubeletVersion": "v1.31.4", "containerRuntimeVersion": "containerd://1.7.20"},
        },
    }


def pod(name: str, space: str = "lab", node: str = "gpu-1", **limits: object) -> dict[str, Any]:
    """A pod of one container; limits by the last word of the resource's name."""
    asked = {f"volcano.sh/vgpu-{key}": str(value) for key, value in limits.items()}
    return {
        "metadata": {"name": name, "namespace": space, "creationTimestamp": CREATED},
        "spec": {
            "nodeName": node,
            "schedulerName": "volcano",
            "containers": [{"name": "main", "image": "registry.example/app:1", "resources": {"limits": asked}}],
        },
        "status": {"phase": "Running" if node else "Pending", "startTime": STARTED},
    }


def vgpu_pod(
    name: str = "train", space: str = "lab", card: str = "", memory: int = 8000, cores: int = 30
) -> dict[str, Any]:
    """A pod that holds one vGPU on gpu-1."""
    made = pod(name, space, number=1, memory=memory, cores=cores)
    uuid = card or first_uuid()
    made["metadata"]["annotations"] = {
        "volcano.sh/vgpu-ids-new": f"{uuid},NVIDIA,{memory},{cores}:",
        "volcano.sh/devices-to-allocate": "",
        "volcano.sh/vgpu-node": "gpu-1",
        "volcano.sh/bind-phase": "success",
        "volcano.sh/bind-time": f"{NOW - 3600:.0f}",
    }
    return made


def first_uuid() -> str:
    return f"{UUIDS[0][:-1]}1{UUIDS[0][-1]}"


def waiting(name: str = "waits", created: str = CREATED, **limits: object) -> dict[str, Any]:
    """A pod that no node was found for."""
    made = pod(name, node="", **(limits or {"number": 1, "memory": 8000}))
    made["metadata"]["creationTimestamp"] = created
    made["status"]["conditions"] = [
        {
            "type": "PodScheduled",
            "status": "False",
            "message": "0/2 nodes are unavailable: 2 hami-vgpuDeviceSharing error.",
        }
    ]
    return made


def system_pod(name: str, space: str, image: str, node: str, /, **labels: str) -> dict[str, Any]:
    container = "volcano-scheduler" if "scheduler" in name else "main"
    return {
        "metadata": {"name": name, "namespace": space, "labels": labels},
        "spec": {"nodeName": node, "containers": [{"name": container, "image": image}]},
        "status": {
            "phase": "Running",
            "startTime": STARTED,
            "containerStatuses": [{"name": container, "state": {"running": {"startedAt": STARTED}}, "ready": True}],
        },
    }


def configmap(name: str, space: str, **data: str) -> dict[str, Any]:
    """Data by key, with `__` for a dot and `_` for a dash."""
    keys = {key.replace("__", ".").replace("_", "-"): text for key, text in data.items()}
    fields = {"f:data": {f"f:{key}": {} for key in keys}}
    managed = [{"manager": "kubectl", "operation": "Update", "time": CHANGED, "fieldsV1": fields}]
    return {"metadata": {"name": name, "namespace": space, "managedFields": managed}, "data": keys}


def daemonset() -> dict[str, Any]:
    hook = {"name": "hook", "mountPath": "/usr/local/vgpu"}
    sockets = {"name": "sockets", "mountPath": "/var/lib/kubelet/device-plugins"}
    image = "projecthami/volcano-vgpu-device-plugin:v1.12.0"
    return {
        "metadata": {"name": "volcano-device-plugin", "namespace": "kube-system"},
        "spec": {
            "template": {
                "metadata": {"labels": {"name": "volcano-device-plugin"}},
                "spec": {
                    "containers": [
                        {"name": "volcano-device-plugin", "image": image, "volumeMounts": [hook, sockets],
                         "env": [{"name": "HOOK_PATH", "value": "/usr/local/vgpu"}]},
                        {"name": "monitor", "image": image, "command": ["volcano-vgpu-monitor"], "volumeMounts": [hook],
                         "env": [{"name": "HOOK_PATH", "value": "/usr/local/vgpu/vgpu"}]},
                    ],
                    "volumes": [
                        {"name": "hook", "hostPath": {"path": "/usr/local/vgpu"}},
                        {"name": "sockets", "hostPath": {"path": "/var/lib/kubelet/device-plugins"}},
                    ],
                },
            }
        },
        "status": {"desiredNumberScheduled": 2, "numberReady": 2},
    }  # fmt: skip


def deployment() -> dict[str, Any]:
    return {
        "metadata": {"name": "volcano-scheduler", "namespace": "volcano-system"},
        "spec": {
            "template": {
                "metadata": {"labels": {"app": "volcano-scheduler"}},
                "spec": {
                    "containers": [
                        {
                            "name": "volcano-scheduler",
                            "image": "volcanosh/vc-scheduler:v1.12.2",
                            "args": ["--scheduler-conf=/volcano.scheduler/volcano-scheduler.conf", "-v=3"],
                            "volumeMounts": [{"name": "conf", "mountPath": "/volcano.scheduler"}],
                        }
                    ],
                    "volumes": [{"name": "conf", "configMap": {"name": "volcano-scheduler-configmap"}}],
                },
            }
        },
    }


def quota(hard: dict[str, str], used: dict[str, str] | None = None) -> dict[str, Any]:
    return {
        "metadata": {"name": "vgpu", "namespace": "lab", "labels": {"vgpuctl.dev/team": "lab"}},
        "spec": {"hard": hard},
        "status": {"hard": hard, "used": used or dict.fromkeys(hard, "0")},
    }


def queue(name: str, state: str = "Open", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": spec, "status": {"state": state}}


def objects() -> dict[str, list[dict[str, Any]]]:
    """The healthy pool's objects by part."""
    reported = "Reported 2026-05-28 20:26:00.5 +0000 UTC m=+1.0"
    return {
        "nodes": [node(f"gpu-{n}", n, **{"volcano.sh/node-vgpu-handshake": reported}) for n in (1, 2)],
        "pods": [
            vgpu_pod(),
            system_pod("volcano-scheduler-1", "volcano-system", f"{SCHEDULER}:v1.12.2", "ctl", app="volcano-scheduler"),
            system_pod("volcano-admission-1", "volcano-system", f"{WEBHOOKS}:v1.12.2", "ctl", app="volcano-admission"),
            *(
                system_pod(f"volcano-device-plugin-{n}", "kube-system",
                           "projecthami/volcano-vgpu-device-plugin:v1.12.0", f"gpu-{n}", name="volcano-device-plugin")
                for n in (1, 2)
            ),
        ],
        "configmaps": [
            configmap("volcano-vgpu-device-config", "kube-system", device_config__yaml=DEVICE_CONFIG),
            configmap("volcano-vgpu-node-config", "kube-system", config__json=NODE_CONFIG),
            configmap("volcano-scheduler-configmap", "volcano-system", volcano_scheduler__conf=SCHEDULER_CONF),
        ],
        "daemonsets": [daemonset()],
        "deployments": [deployment()],
        "quotas": [quota({"requests.volcano.sh/vgpu-number": "5"}, {"requests.volcano.sh/vgpu-number": "1"})],
        "queues": [queue("default", capability={"volcano.sh/vgpu-number": "40"})],
        "podgroups": [],
        "webhooks": [
            {
                "metadata": {"name": "volcano-admission-service-jobs-validate"},
                "webhooks": [
                    {
                        "name": "validatejob.volcano.sh",
                        "failurePolicy": "Fail",
                        "clientConfig": {
                            "service": {"name": "volcano-admission-service", "namespace": "volcano-system"}
                        },
                    }
                ],
            }
        ],
    }  # fmt: skip


_TYPES = {
    "nodes": kube.Node,
    "pods": kube.Pod,
    "configmaps": kube.ConfigMap,
    "daemonsets": kube.Workload,
    "deployments": kube.Workload,
    "quotas": kube.ResourceQuota,
    "queues": kube.Queue,
    "podgroups": kube.PodGroup,
    "webhooks": kube.WebhookConfiguration,
}


def facts_of(found: dict[str, list[dict[str, Any]]]) -> Facts:
    """Objects as facts, decoded as a source would."""
    facts = Facts(source="test", now=NOW)
    for name, items in found.items():
        decoded = tuple(decode_item(msgspec.json.encode(item), _TYPES[name])[0] for item in items)
        facts = facts.with_part(Part(name), known(decoded, f"/{name}", NOW))
    facts = facts.with_part(Part.VERSION, known("v1.31.4", "/version", NOW))
    facts = facts.with_part(Part.ACCESS, known({right.id: True for right in RIGHTS}, "review", NOW))
    facts = facts.with_part(Part.METRICS, known((Scrape("gpu-1", NOW),), "monitors", NOW))
    facts = facts.with_part(Part.LOGS, known({}, "logs", NOW))
    return facts.with_part(Part.HOST, known(host(), "gpu-1", NOW))


def host() -> Host:
    sockets = Sockets("/var/lib/kubelet/device-plugins", "/var/lib/kubelet/device-plugins", ("kubelet.sock",))
    return Host("gpu-1", sockets=known((sockets,), "/"), mig_profiles=known((MigProfile("1g.6gb", 5888, 4),), "smi"))


Objects = dict[str, list[dict[str, Any]]]


def pool(change: Callable[[Objects], object] = lambda found: None) -> Facts:
    """The healthy pool, changed by a function of its objects."""
    found = copy.deepcopy(objects())
    change(found)
    return facts_of(found)


def without(facts: Facts, part: Part, reason: str = "no permission") -> Facts:
    return facts.with_part(part, missing(reason, f"/{part.value}", denied=True))
