"""A big pool with an installation: the objects, and a plugin pod on each node as it stands when all is well."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from typing import Any

from tests.cluster.bench import Bench
from tests.cluster.etcd import Entry, Etcd
from tests.cluster.pool import load
from vgpuctl.model.install.manifests import PLUGIN, manifests
from vgpuctl.model.install.options import Options
from vgpuctl.model.install.release import Release, config_map

STAMP = "2026-01-15T08:00:00Z"


def install(bench: Bench, old: int = 0) -> None:
    """Puts an installation into a bench with nodes and without controllers. old: as many nodes have another library."""
    options = Options()
    objects = manifests(options, {"x86_64": b"a library" * 4000})
    load(bench, [*objects, config_map(Release(phase="installed", options=options))])
    nodes = [item["metadata"]["name"] for item in bench.client.get("/api/v1/nodes")["items"]]
    path = f"/apis/apps/v1/namespaces/{options.namespace}/daemonsets/{PLUGIN}"
    daemonset = bench.client.get(path)
    count, ready = len(nodes), {"observedGeneration": daemonset["metadata"]["generation"]}
    counts = ("currentNumberScheduled", "desiredNumberScheduled", "numberReady", "numberAvailable")
    status = {**dict.fromkeys((*counts, "updatedNumberScheduled"), count), "numberMisscheduled": 0, **ready}
    bench.client.request("PUT", f"{path}/status", {**daemonset, "status": status})
    Etcd(bench.etcd).put(_pods(daemonset, nodes, old))


def _pods(daemonset: dict[str, Any], nodes: list[str], old: int) -> Iterator[Entry]:
    source = random.Random(len(nodes))
    template, namespace = daemonset["spec"]["template"], daemonset["metadata"]["namespace"]
    owner = {key: daemonset[key] for key in ("apiVersion", "kind")}
    owner |= {key: daemonset["metadata"][key] for key in ("name", "uid")}
    place = next(item for item in template["spec"]["initContainers"][0]["env"] if item["name"] == "LIBRARIES")
    wanted = dict(pair.split(":") for pair in place["value"].split())["x86_64"]
    for number, node in enumerate(nodes):
        name = f"{PLUGIN}-{number:05d}"
        yield (
            f"/registry/pods/{namespace}/{name}",
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": name,
                    "namespace": namespace,
                    "uid": str(uuid.UUID(int=source.getrandbits(128))),
                    "creationTimestamp": STAMP,
                    "labels": {
                        **template["metadata"]["labels"],
                        "controller-revision-hash": "a",
                        "pod-template-generation": "1",
                    },
                    "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
                },
                "spec": {**template["spec"], "nodeName": node},
                "status": _status(template["spec"], "0" * 64 if number < old else wanted),
            },
        )


def _status(spec: dict[str, Any], library: str) -> dict[str, Any]:
    ended = {"exitCode": 0, "reason": "Completed", "message": library, "startedAt": STAMP, "finishedAt": STAMP}
    states = {"initContainers": {"terminated": ended}, "containers": {"running": {"startedAt": STAMP}}}
    statuses = {
        key: [
            {
                "name": item["name"], "image": item["image"], "imageID": "", "ready": True, "restartCount": 0,
                "state": state,
            }
            for item in spec[key]
        ]
        for key, state in states.items()
    }  # fmt: skip
    conditions = [
        {"type": kind, "status": "True"} for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
    ]
    return {
        "phase": "Running",
        "startTime": STAMP,
        "conditions": conditions,
        "initContainerStatuses": statuses["initContainers"],
        "containerStatuses": statuses["containers"],
    }
