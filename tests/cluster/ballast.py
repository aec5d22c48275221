"""What real nodes and pods carry besides the vGPU facts: most of their bytes, and of a reader's work."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

STAMP = "2026-01-15T08:00:00Z"
IMAGE = "registry.example.com/ml/train"


def _tree(paths: Iterable[str]) -> dict[str, Any]:
    """The API server's form of a set of field paths: nested keys `f:name`, or `k:{...}` for list items."""
    root: dict[str, Any] = {}
    for path in paths:
        here = root
        for part in path.split("/"):
            here = here.setdefault(part if part.startswith("k:") or part == "." else f"f:{part}", {})
    return root


def _managed(manager: str, version: str, paths: Iterable[str], subresource: str = "") -> dict[str, Any]:
    return {
        "manager": manager,
        "operation": "Update",
        "apiVersion": version,
        "time": STAMP,
        "fieldsType": "FieldsV1",
        "fieldsV1": _tree(paths),
        **({"subresource": subresource} if subresource else {}),
    }


_ENVIRONMENT = {
    "NCCL_DEBUG": "WARN",
    "NCCL_SOCKET_IFNAME": "eth0",
    "VC_TASK_INDEX": "",
}
_VOLUMES: dict[str, dict[str, Any]] = {
    "dataset": {"persistentVolumeClaim": {"claimName": "dataset", "readOnly": True}},
    "shm": {"emptyDir": {"medium": "Memory", "sizeLimit": "16Gi"}},
}
_MOUNTS = {"dataset": "/data", "shm": "/dev/shm"}
_CONDITIONS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")

_container = 'spec/containers/k:{"name":"train"}'
POD = [
    _managed(
        "vc-controller-manager",
        "v1",
        [
            "metadata/annotations/.",
            *(
                f"metadata/annotations/{name}"
                for name in (
                    "scheduling.k8s.io~1group-name",
                    "volcano.sh~1job-name",
                    "volcano.sh~1queue-name",
                    "volcano.sh~1task-index",
                    "volcano.sh~1task-spec",
                )
            ),
            "metadata/labels/.",
            "metadata/labels/app",
            "metadata/labels/team",
            "metadata/labels/volcano.sh~1job-name",
            f"{_container}/.",
            f"{_container}/command",
            f"{_container}/env/.",
            *(
                f'{_container}/env/k:{{"name":"{name}"}}/{leaf}'
                for name in _ENVIRONMENT
                for leaf in (".", "name", "value")
            ),
            f"{_container}/image",
            f"{_container}/imagePullPolicy",
            f"{_container}/name",
            f"{_container}/resources/.",
            *(
                f"{_container}/resources/limits/{name}"
                for name in (
                    ".",
                    "cpu",
                    "memory",
                    "volcano.sh~1vgpu-cores",
                    "volcano.sh~1vgpu-memory",
                    "volcano.sh~1vgpu-number",
                )
            ),
            f"{_container}/volumeMounts/.",
            *(
                f'{_container}/volumeMounts/k:{{"mountPath":"{path}"}}/{leaf}'
                for path in (mount.replace("/", "~1") for mount in _MOUNTS.values())
                for leaf in (".", "mountPath", "name")
            ),
            "spec/dnsPolicy",
            "spec/hostname",
            "spec/restartPolicy",
            "spec/schedulerName",
            "spec/subdomain",
            "spec/terminationGracePeriodSeconds",
            "spec/volumes/.",
            *(f'spec/volumes/k:{{"name":"{name}"}}/{leaf}' for name in _VOLUMES for leaf in (".", "name")),
        ],
    ),
    _managed(
        "vc-scheduler",
        "v1",
        [
            f"metadata/annotations/volcano.sh~1{name}"
            for name in ("bind-phase", "bind-time", "vgpu-ids-new", "vgpu-node", "vgpu-time")
        ],
    ),
    _managed(
        "kubelet",
        "v1",
        [
            *(
                f'status/conditions/k:{{"type":"{kind}"}}/{leaf}'
                for kind in _CONDITIONS
                for leaf in (".", "lastProbeTime", "lastTransitionTime", "status", "type")
            ),
            "status/containerStatuses",
            "status/hostIP",
            "status/hostIPs",
            "status/phase",
            "status/podIP",
            'status/podIPs/k:{"ip":"10.64.0.1"}/ip',
            "status/startTime",
        ],
        "status",
    ),
]
NODE = [
    _managed(
        "volcano-device-plugin",
        "v1",
        ["metadata/annotations/.", "metadata/annotations/volcano.sh~1node-vgpu-register"],
    ),
    _managed(
        "kubelet",
        "v1",
        [
            *(f"status/{kind}/{name}" for kind in ("allocatable", "capacity") for name in ("cpu", "memory")),
            *(
                f'status/conditions/k:{{"type":"{kind}"}}/{leaf}'
                for kind in ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
                for leaf in ("lastHeartbeatTime", "lastTransitionTime", "message", "reason", "status")
            ),
            "status/images",
            "status/nodeInfo/kubeletVersion",
        ],
        "status",
    ),
]
POD_GROUP = [
    _managed(
        "vc-controller-manager",
        "scheduling.volcano.sh/v1beta1",
        ["spec/.", "spec/minMember", "spec/minResources/.", "spec/queue"],
    ),
    _managed(
        "vc-scheduler",
        "scheduling.volcano.sh/v1beta1",
        ["status/.", "status/conditions", "status/phase", "status/running"],
        "status",
    ),
]


def pod_spec(name: str, node: str, rank: int, limits: dict[str, str]) -> dict[str, Any]:
    """The spec of a training worker bound to `node`, with one container of these limits."""
    job = name.rsplit("-worker-", 1)[0]
    environment = {**_ENVIRONMENT, "VC_TASK_INDEX": str(rank)}
    return {
        "nodeName": node,
        "schedulerName": "volcano",
        "restartPolicy": "OnFailure",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "hostname": name,
        "subdomain": job,
        "serviceAccountName": "default",
        "serviceAccount": "default",
        "securityContext": {},
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
        "priority": 0,
        "containers": [
            {
                "name": "train",
                "image": f"{IMAGE}:2.4.1-cuda12.4",
                "imagePullPolicy": "IfNotPresent",
                "command": ["torchrun", "--nnodes=4", f"--node_rank={rank}", "/workspace/train.py"],
                "env": [{"name": key, "value": value} for key, value in environment.items()],
                "resources": {"limits": limits, "requests": limits},
                "volumeMounts": [{"name": key, "mountPath": path} for key, path in _MOUNTS.items()],
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
            }
        ],
        "volumes": [{"name": key, **volume} for key, volume in _VOLUMES.items()],
        "tolerations": [
            {
                "key": f"node.kubernetes.io/{key}",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 300,
            }
            for key in ("not-ready", "unreachable")
        ],
    }


def pod_status(host: str, source: random.Random) -> dict[str, Any]:
    """The status of a running pod on the node with this address."""
    address = f"10.64.{source.randrange(256)}.{source.randrange(1, 255)}"
    return {
        "phase": "Running",
        "qosClass": "Guaranteed",
        "startTime": STAMP,
        "hostIP": host,
        "hostIPs": [{"ip": host}],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": [
            {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": STAMP} for kind in _CONDITIONS
        ],
        "containerStatuses": [
            {
                "name": "train",
                "image": f"{IMAGE}:2.4.1-cuda12.4",
                "imageID": f"{IMAGE}@sha256:{source.getrandbits(256):064x}",
                "containerID": f"containerd://{source.getrandbits(256):064x}",
                "ready": True,
                "started": True,
                "restartCount": 0,
                "lastState": {},
                "state": {"running": {"startedAt": STAMP}},
            }
        ],
    }


def node_status(name: str, address: str, resources: dict[str, str], source: random.Random) -> dict[str, Any]:
    """The status of a ready node with these resources, and a score of images as kubelets report them."""
    sound = {
        "MemoryPressure": "sufficient memory available",
        "DiskPressure": "no disk pressure",
        "PIDPressure": "sufficient PID available",
    }
    return {
        "capacity": resources,
        "allocatable": resources,
        "addresses": [
            {"type": "InternalIP", "address": address},
            {"type": "Hostname", "address": name},
        ],
        "conditions": [
            *(
                {
                    "type": kind,
                    "status": "False",
                    "reason": f"KubeletHas{kind}",
                    "message": f"kubelet has {message}",
                    "lastHeartbeatTime": STAMP,
                    "lastTransitionTime": STAMP,
                }
                for kind, message in sound.items()
            ),
            {
                "type": "Ready",
                "status": "True",
                "reason": "KubeletReady",
                "message": "kubelet is posting ready status",
                "lastHeartbeatTime": STAMP,
                "lastTransitionTime": STAMP,
            },
        ],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "images": [
            {
                "names": [
                    f"{IMAGE}-{number}@sha256:{source.getrandbits(256):064x}",
                    f"{IMAGE}-{number}:2.4.1-cuda12.4",
                ],
                "sizeBytes": source.randrange(10**7, 10**10),
            }
            for number in range(20)
        ],
        "nodeInfo": {
            "architecture": "amd64",
            "operatingSystem": "linux",
            "osImage": "Ubuntu 24.04.1 LTS",
            "kernelVersion": "6.8.0-51-generic",
            "containerRuntimeVersion": "containerd://1.7.24",
            "kubeletVersion": "v1.31.4",
            "kubeProxyVersion": "v1.31.4",
            "bootID": f"{source.getrandbits(128):032x}",
            "machineID": f"{source.getrandbits(128):032x}",
            "systemUUID": f"{source.getrandbits(128):032x}",
        },
    }
