"""Small pools for tests, written as the API would give them."""

from __future__ import annotations

from typing import Any

import msgspec

from vgpuctl.model import kube
from vgpuctl.model.facts import Facts
from vgpuctl.model.reading import Reading, known, missing
from vgpuctl.model.usage.sample import CardSample, Scrape, VgpuSample

NOW = 1_800_000_000.0
GIB = 1 << 30
UUID = "GPU-323aa46d-f624-52e2-c270-378e3209d25c"
OTHER = "GPU-186edfd6-f881-095d-a59f-7b6e86b9a280"


def node(name: str = "n1", *uuids: str, register: str | None = None, **status: Any) -> kube.Node:
    """A ready node with cards of 8000 units."""
    text = "".join(f"{uuid},10,8000,NVIDIA-Tesla T4,true,hami-core:" for uuid in uuids or (UUID,))
    content = {
        "metadata": {
            "name": name,
            "annotations": {"volcano.sh/node-vgpu-register": text if register is None else register},
        },
        "status": {
            "allocatable": {"volcano.sh/vgpu-number": "10"},
            "conditions": [{"type": "Ready", "status": "True"}],
            **status,
        },
    }
    return msgspec.convert(content, kube.Node)


def pod(
    name: str = "p",
    namespace: str = "team",
    ids: str | None = f"{UUID},NVIDIA,1024,50:",
    node: str = "n1",
    phase: str = "Running",
    containers: tuple[str, ...] = ("main",),
    labels: dict[str, str] | None = None,
    deleted: bool = False,
    **annotations: str,
) -> kube.Pod:
    """A pod with one vGPU of 10 GiB (at factor 10) and half of the cores."""
    content = {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{name}",
            "creationTimestamp": "2027-01-15T07:58:00Z",
            "deletionTimestamp": "2027-01-15T07:59:00Z" if deleted else None,
            "labels": labels or {},
            "annotations": {**({"volcano.sh/vgpu-ids-new": ids} if ids else {}), **annotations},
        },
        "spec": {
            "nodeName": node,
            "containers": [
                {"name": container, "resources": {"limits": {"volcano.sh/vgpu-number": "1"}}}
                for container in containers
            ],
        },
        "status": {"phase": phase},
    }
    return msgspec.convert(content, kube.Pod)


def sample(name: str = "p", uuid: str = UUID, **fields: Any) -> VgpuSample:
    """A monitor's figures for the pod of that name."""
    values = {"memory_used": 5 * GIB, "memory_limit": 10 * GIB, "cores_used": 0.3, "last_kernel": NOW - 1, **fields}
    return VgpuSample("team", name, "main", uuid, **values)


def scrape(*vgpus: VgpuSample, cards: tuple[CardSample, ...] = (), at: float = NOW, **fields: Any) -> Scrape:
    return Scrape("n1", at, cards, vgpus, **fields)


def config(factor: object = 10) -> kube.ConfigMap:
    text = f"nvidia:\n  gpuMemoryFactor: {factor}\n"
    content = {
        "metadata": {"name": "volcano-vgpu-device-config", "namespace": "kube-system"},
        "data": {"device-config.yaml": text},
    }
    return msgspec.convert(content, kube.ConfigMap)


def facts(*pods: kube.Pod, **parts: Any) -> Facts:
    """Facts with one node, no PodGroups, and what is given; a text instead of a part is why it is missing."""
    defaults: dict[str, Any] = {
        "nodes": (node(),),
        "podgroups": (),
        "namespaces": (),
        "configmaps": (config(),),
        "metrics": (),
    }
    scope = parts.pop("scope", "")
    readings: dict[str, Reading[Any]] = {
        name: missing(value) if isinstance(value, str) else known(value, "test")
        for name, value in {**defaults, "pods": pods, **parts}.items()
    }
    return Facts(source="test", now=NOW, scope=scope, **readings)
