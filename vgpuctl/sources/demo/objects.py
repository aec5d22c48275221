"""The demo's plan as Kubernetes objects, in the shape in which the API would give them."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from vgpuctl.model import annotation, history
from vgpuctl.model.annotation import Allocation, RegisteredCard
from vgpuctl.model.install.manifests import PLUGIN
from vgpuctl.model.pod.names import QUEUE
from vgpuctl.model.quota.team import TEAM, labels
from vgpuctl.sources.demo import installed
from vgpuctl.sources.demo.plan import Node, Object, Past, Plan, Pod, Team, Workload

_AGE = 40 * 86400
_SPLIT = 10


def stamp(at: float) -> str:
    """Unix seconds as Kubernetes writes them."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


def nodes(plan: Plan, now: float) -> list[Object]:
    return [_node(plan, node, now) for node in plan.nodes]


def _node(plan: Plan, node: Node, now: float) -> Object:
    units = node.memory // plan.factor
    cards = [
        RegisteredCard(card, node.uuid(card), _SPLIT, units, f"NVIDIA-{node.model}", True, "hami-core")
        for card in range(node.cards)
    ]
    offered = {
        "cpu": "96",
        "memory": "1056489472Ki",
        "pods": "110",
        "volcano.sh/vgpu-number": str(_SPLIT * node.cards),
        "volcano.sh/vgpu-memory": str(units * node.cards),
        "volcano.sh/vgpu-cores": str(100 * node.cards),
    }
    return {
        "metadata": {
            "name": node.name,
            "uid": f"demo-{node.name}",
            "creationTimestamp": stamp(now - _AGE),
            "labels": {"kubernetes.io/hostname": node.name, "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"},
            "annotations": {
                annotation.REGISTER: annotation.encode_register(cards),
                annotation.HANDSHAKE: time.strftime(
                    "Reported %Y-%m-%d %H:%M:%S.000000000 +0000 UTC", time.gmtime(now - now % 30)
                ),
            },
        },
        "status": {
            "capacity": offered,
            "allocatable": offered,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
            "nodeInfo": {
                "kubeletVersion": plan.kubernetes,
                "containerRuntimeVersion": "containerd://1.7.24",
                "kernelVersion": "6.8.0-51-generic",
                "osImage": "Ubuntu 24.04.1 LTS",
                "architecture": "amd64",
            },
        },
    }


def namespaces(plan: Plan, now: float) -> list[Object]:
    own = [
        {
            "metadata": {
                "name": team.name,
                "uid": f"demo-{team.name}",
                "labels": {TEAM: team.name},
                "annotations": {QUEUE: team.name},
            }
        }
        for team in plan.teams
    ]
    return own + [{"metadata": {"name": name}} for name in ("default", "kube-system", "volcano-system")]


def queues(plan: Plan, now: float) -> list[Object]:
    return [_queue(plan, team) for team in plan.teams]


def _queue(plan: Plan, team: Team) -> Object:
    spec: Object = {
        "weight": 1,
        "reclaimable": True,
        "capability": {"volcano.sh/vgpu-number": str(team.quota)},
    }
    if team.guarantee:
        spec["guarantee"] = {"resource": {"volcano.sh/vgpu-number": str(team.guarantee)}}
    allocated = {"volcano.sh/vgpu-number": str(_held(plan, team))}
    return {"metadata": {"name": team.name}, "spec": spec, "status": {"state": "Open", "allocated": allocated}}


def _held(plan: Plan, team: Team) -> int:
    return sum(len(pod.cards) for pod in plan.pods() if pod.workload.team == team.name and pod.node)


def _asked(plan: Plan, team: Team) -> int:
    return sum(len(pod.cards) for pod in plan.pods() if pod.workload.team == team.name)


def quotas(plan: Plan, now: float) -> list[Object]:
    objects = []
    for team in plan.teams:
        hard = {team.key: str(team.quota)}
        counted = {team.key: str(_asked(plan, team) if team.key.startswith("requests.") else 0)}
        objects.append(
            {
                "metadata": {
                    "name": "vgpu",
                    "namespace": team.name,
                    "uid": f"demo-quota-{team.name}",
                    "labels": labels(team.name) if team.key.startswith("requests.") else {},
                },
                "spec": {"hard": hard},
                "status": {"hard": hard, "used": counted},
            }
        )
    return objects


def podgroups(plan: Plan, now: float) -> list[Object]:
    return [
        {
            "metadata": {"name": workload.name, "namespace": workload.team},
            "spec": {"minMember": len(workload.at), "queue": workload.team},
            "status": {"phase": "Running" if all(workload.at) else "Inqueue"},
        }
        for workload in plan.workloads
        if workload.kind == "job"
    ]


def pods(plan: Plan, now: float) -> list[Object]:
    started = now - now % 300
    own = [_pod(pod, started) for pod in plan.pods()]
    return own + [_plugin(plan, node, started) for node in plan.nodes] + [_scheduler(plan, started)]


def _pod(pod: Pod, now: float) -> Object:
    work, created = pod.workload, now - pod.workload.age
    annotations = {"scheduling.k8s.io/group-name": work.name} if work.kind == "job" else {}
    if pod.node:
        vgpus = [Allocation(pod.node.uuid(card), pod.units, work.cores) for card in pod.cards]
        annotations |= {
            annotation.BIND_PHASE: "success",
            annotation.BIND_TIME: f"{created:.0f}",
            annotation.IDS: annotation.encode_allocations([vgpus]),
            annotation.NODE: pod.node.name,
            annotation.TIME: f"{created:.0f}",
        }
    container = {
        "name": pod.container,
        "image": f"registry.example.com/{work.team}/{work.name}:1.4",
        "env": [{"name": name, "value": value} for name, value in work.env.items()],
        "resources": {
            "limits": {
                "volcano.sh/vgpu-number": str(len(pod.cards)),
                "volcano.sh/vgpu-memory": str(pod.units),
                "volcano.sh/vgpu-cores": str(work.cores),
            }
        },
    }
    return {
        "metadata": {
            "name": pod.name,
            "namespace": work.team,
            "uid": pod.uid,
            "creationTimestamp": stamp(created),
            "labels": {"app": work.name, "team": work.team},
            "annotations": annotations,
        },
        "spec": {
            "schedulerName": "volcano",
            "nodeName": pod.node.name if pod.node else "",
            "containers": [container],
        },
        "status": _status(pod, work, created),
    }


def _status(pod: Pod, work: Workload, created: float) -> Object:
    if pod.node is None:
        message = "0/6 nodes are unavailable: 6 hami-vgpuDeviceSharing error."
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
        return {"phase": "Pending", "conditions": [condition]}
    state = {"running": {"startedAt": stamp(created + 5)}}
    if work.does == "start":
        state = {"waiting": {"reason": "ContainerCreating"}}
    return {
        "phase": "Pending" if work.does == "start" else "Running",
        "startTime": stamp(created),
        "conditions": [{"type": "PodScheduled", "status": "True"}],
        "containerStatuses": [{"name": pod.container, "ready": work.does != "start", "state": state}],
    }


def _plugin(plan: Plan, node: Node, now: float) -> Object:
    image = installed.image()
    names = (PLUGIN, "monitor")
    placed = {"exitCode": 0, "reason": "Completed", "message": installed.digests()["x86_64"]}
    return {
        "metadata": {
            "name": f"{PLUGIN}-{node.name}",
            "namespace": "kube-system",
            "labels": {"name": PLUGIN},
            "ownerReferences": [{"kind": "DaemonSet", "name": PLUGIN, "uid": f"demo-{PLUGIN}", "controller": True}],
        },
        "spec": {
            "nodeName": node.name,
            "initContainers": [{"name": "place", "image": image}],
            "containers": [{"name": name, "image": image} for name in names],
        },
        "status": {
            "phase": "Running",
            "startTime": stamp(now - _AGE),
            "conditions": [{"type": "Ready", "status": "True"}],
            "initContainerStatuses": [{"name": "place", "ready": True, "state": {"terminated": placed}}],
            "containerStatuses": [
                {"name": name, "ready": True, "image": image, "state": {"running": {"startedAt": stamp(now - _AGE)}}}
                for name in names
            ],
        },
    }


def _scheduler(plan: Plan, now: float) -> Object:
    running = {"running": {"startedAt": stamp(now - _AGE)}}
    return {
        "metadata": {
            "name": "volcano-scheduler-0",
            "namespace": "volcano-system",
            "labels": {"app": "volcano-scheduler"},
        },
        "spec": {
            "nodeName": plan.nodes[-1].name,
            "containers": [{"name": "volcano-scheduler", "image": f"volcanosh/vc-scheduler:{plan.volcano}"}],
        },
        "status": {
            "phase": "Running",
            "startTime": stamp(now - _AGE),
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [{"name": "volcano-scheduler", "ready": True, "state": running}],
        },
    }


def configmaps(plan: Plan, now: float) -> list[Object]:
    """What was changed by vgpuctl."""
    began = now - now % 300
    data = {_key(began - past.ago): _line(past, began) for past in plan.history}
    return [{"metadata": {"name": history.PLACE.name, "namespace": history.PLACE.namespace}, "data": data}]


def _key(at: float) -> str:
    return time.strftime("%Y%m%dT%H%M%S.000000Z", time.gmtime(at))


def _line(past: Past, now: float) -> str:
    line = history.Line(stamp(now - past.ago), past.who, past.what, past.how, past.change, past.undo)
    return msgspec.json.encode(line).decode()


GENERATED: dict[str, Callable[[Plan, float], list[Object]]] = {
    "Node": nodes,
    "Namespace": namespaces,
    "Queue": queues,
    "ResourceQuota": quotas,
    "PodGroup": podgroups,
    "Pod": pods,
    "ConfigMap": configmaps,
}
"""kind → the objects that follow from the plan."""
