"""Big pools: nodes, cards and pods by number, written straight into etcd and kept as a snapshot.

Through the API server, 32,000 pods take minutes; etcd takes them in seconds. The API server reads JSON
from etcd as well as its own protobuf and serves both alike; only its start takes longer.
"""

from __future__ import annotations

import fcntl
import hashlib
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import ballast
from .bench import CRDS, Bench
from .binaries import CACHE, key, say
from .etcd import Entry, Etcd

FACTOR = 20
CARD_MIB = 143771
CARD_TYPE = "NVIDIA-NVIDIA H200"
TEAMS = 16
GANG = 4
STAMP = "2026-01-15T08:00:00Z"
BIND_TIME = "1768464000"


@dataclass(frozen=True)
class Size:
    """How many nodes, cards on each, and pods (of one vGPU) on each card."""

    nodes: int
    cards: int
    vgpus: int

    @property
    def pods(self) -> int:
        return self.nodes * self.cards * self.vgpus

    def __str__(self) -> str:
        return f"{self.nodes}x{self.cards}x{self.vgpus}"

    @classmethod
    def parse(cls, text: str) -> Size:
        """Reads NODESxCARDSxVGPUS; raises ValueError for anything else."""
        nodes, cards, vgpus = (int(part) for part in text.lower().split("x"))
        if min(nodes, cards, vgpus) < 1:
            raise ValueError(f"{text}: every number must be 1 or more")
        return cls(nodes, cards, vgpus)


def snapshot(size: Size, progress: Callable[[str], None] = say) -> Path:
    """A directory for `Bench(snapshot=...)` that holds a pool of this size; made once, then kept."""
    digest = hashlib.sha256(key().encode())
    for source in (Path(__file__), Path(ballast.__file__), *sorted(CRDS.glob("*.yaml"))):
        digest.update(source.read_bytes())
    target = CACHE / "pools" / f"{size}-{digest.hexdigest()}"
    target.parent.mkdir(parents=True, exist_ok=True)
    with (target.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.is_dir():
            # What an older generator made of this size, half a gigabyte for a big one, and broken attempts.
            for pattern in (f"{size}-*", "build-*"):
                for leftover in target.parent.glob(pattern):
                    shutil.rmtree(leftover)
            start = time.monotonic()
            with (
                tempfile.TemporaryDirectory(prefix="build-", dir=target.parent) as scratch,
                Bench(controllers=False) as bench,
            ):
                Etcd(bench.etcd).put(entries(size))
                bench.save(Path(scratch, "etcd"))
                Path(scratch, "etcd").rename(target)
            progress(f"bench: pool of {size.pods} pods made in {time.monotonic() - start:.0f} s")
    return target


def entries(size: Size) -> Iterator[Entry]:
    """The objects of the pool with their keys in etcd; the same for the same size."""
    source = random.Random(str(size))
    for team in range(TEAMS):
        yield _namespace(team, source)
        yield _queue(team, size, source)
    member = 0
    for index in range(size.nodes):
        node = f"gpu-{index:04d}"
        cards = [f"GPU-{_uid(source)}" for _ in range(size.cards)]
        yield _node(node, index, cards, size, source)
        for card in cards:
            for _ in range(size.vgpus):
                gang, rank = divmod(member, GANG)
                if rank == 0:
                    yield _pod_group(gang, source)
                yield _pod(gang, rank, node, index, card, size, source)
                member += 1


def _uid(source: random.Random) -> str:
    text = f"{source.getrandbits(128):032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def _metadata(name: str, source: random.Random, **more: Any) -> dict[str, Any]:
    return {"name": name, "uid": _uid(source), "creationTimestamp": STAMP, "generation": 1, **more}


def _team(gang: int) -> str:
    return f"team-{gang % TEAMS:02d}"


def _namespace(team: int, source: random.Random) -> Entry:
    name = f"team-{team:02d}"
    labels = {"kubernetes.io/metadata.name": name, "vgpuctl.dev/team": name}
    return f"/registry/namespaces/{name}", {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": _metadata(name, source, labels=labels),
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


def _queue(team: int, size: Size, source: random.Random) -> Entry:
    name = f"team-{team:02d}"
    return f"/registry/scheduling.volcano.sh/queues/{name}", {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": _metadata(name, source),
        "spec": {"weight": 1, "reclaimable": True, "capability": {"volcano.sh/vgpu-number": str(size.pods)}},
        "status": {"state": "Open"},
    }


def _pod_group(gang: int, source: random.Random) -> Entry:
    team, name = _team(gang), f"train-{gang:05d}"
    return f"/registry/scheduling.volcano.sh/podgroups/{team}/{name}", {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": _metadata(name, source, namespace=team, managedFields=ballast.POD_GROUP),
        "spec": {"minMember": GANG, "queue": team, "minResources": {"volcano.sh/vgpu-number": str(GANG)}},
        "status": {
            "phase": "Running",
            "running": GANG,
            "conditions": [
                {
                    "type": "Scheduled",
                    "status": "True",
                    "reason": "tasks in gang are ready to be scheduled",
                    "transitionID": _uid(source),
                    "lastTransitionTime": STAMP,
                }
            ],
        },
    }


def _node(name: str, index: int, cards: list[str], size: Size, source: random.Random) -> Entry:
    units = CARD_MIB // FACTOR
    register = "".join(f"{card},10,{units},{CARD_TYPE},true,hami-core:" for card in cards)
    resources = {
        "cpu": "192",
        "ephemeral-storage": "1855425871872",
        "hugepages-1Gi": "0",
        "hugepages-2Mi": "0",
        "memory": "2113382341Ki",
        "pods": "250",
        "volcano.sh/vgpu-cores": str(100 * size.cards),
        "volcano.sh/vgpu-memory": str(units * size.cards),
        "volcano.sh/vgpu-number": str(10 * size.cards),
    }
    metadata = _metadata(
        name,
        source,
        labels={
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/hostname": name,
            "kubernetes.io/os": "linux",
            "topology.kubernetes.io/zone": f"zone-{index % 3}",
        },
        annotations={"volcano.sh/node-vgpu-register": register},
        managedFields=ballast.NODE,
    )
    network = f"10.{64 + index // 256}.{index % 256}.0/24"
    return f"/registry/minions/{name}", {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata,
        "spec": {"podCIDR": network, "podCIDRs": [network]},
        "status": ballast.node_status(name, _address(index), resources, source),
    }


def _pod(gang: int, rank: int, node: str, index: int, card: str, size: Size, source: random.Random) -> Entry:
    team, name = _team(gang), f"train-{gang:05d}-worker-{rank}"
    units, cores = CARD_MIB // FACTOR // size.vgpus, 100 // size.vgpus
    allocation = f"{card},NVIDIA,{units},{cores}:"
    annotations = {
        "scheduling.k8s.io/group-name": f"train-{gang:05d}",
        "volcano.sh/bind-phase": "success",
        "volcano.sh/bind-time": BIND_TIME,
        "volcano.sh/job-name": f"train-{gang:05d}",
        "volcano.sh/queue-name": team,
        "volcano.sh/task-index": str(rank),
        "volcano.sh/task-spec": "worker",
        "volcano.sh/vgpu-ids-new": allocation,
        "volcano.sh/vgpu-node": node,
        "volcano.sh/vgpu-time": BIND_TIME,
    }
    labels = {"app": "train", "team": team, "volcano.sh/job-name": f"train-{gang:05d}"}
    limits = {
        "cpu": "4",
        "memory": "32Gi",
        "volcano.sh/vgpu-cores": str(cores),
        "volcano.sh/vgpu-memory": str(units),
        "volcano.sh/vgpu-number": "1",
    }
    metadata = _metadata(
        name, source, namespace=team, labels=labels, annotations=annotations, managedFields=ballast.POD
    )
    return f"/registry/pods/{team}/{name}", {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": ballast.pod_spec(name, node, rank, limits),
        "status": ballast.pod_status(_address(index), source),
    }


def _address(index: int) -> str:
    return f"10.20.{index // 250}.{index % 250 + 1}"
