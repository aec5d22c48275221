"""The demo's data: nodes, teams and workloads as templates/demo.yaml has them, and where each pod's vGPUs lie."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import msgspec

Object = dict[str, Any]
"""A Kubernetes object as JSON has it."""
_SPACE = uuid.UUID("6d0a7a0e-3c1b-5f6e-9a44-7e7d7a1f0b11")


class Node(msgspec.Struct, frozen=True):
    """memory: MiB of one card."""

    name: str
    cards: int
    model: str
    memory: int

    def uuid(self, card: int) -> str:
        """The UUID of a card, the same in every run."""
        return f"GPU-{uuid.uuid5(_SPACE, f'{self.name}/{card}')}"


class Team(msgspec.Struct, frozen=True):
    """quota: vGPUs. key: the resource name in its ResourceQuota."""

    name: str
    quota: int
    guarantee: int = 0
    key: str = "requests.volcano.sh/vgpu-number"


class Workload(msgspec.Struct, frozen=True):
    """memory: GiB per vGPU, 0 for the whole card. cores: percent. at: `node/card+card` for each pod, "" for pending.
    age: seconds."""

    team: str
    name: str
    kind: str
    memory: int
    cores: int
    does: str
    age: int
    at: list[str]
    env: dict[str, str] = {}


class Past(msgspec.Struct, frozen=True):
    """What vgpuctl changed, as its history tells it. ago: seconds."""

    ago: int
    who: str
    what: str
    change: str
    undo: str = ""
    how: str = "server-side apply"


class Plan(msgspec.Struct, frozen=True):
    """factor: MiB per memory unit. The versions are those of Kubernetes and Volcano."""

    factor: int
    kubernetes: str
    volcano: str
    nodes: list[Node]
    teams: list[Team]
    workloads: list[Workload]
    history: list[Past]

    def units(self, workload: Workload, node: Node | None) -> int:
        """Memory units of one vGPU; without a node those of the largest card."""
        card = node.memory if node else max(node.memory for node in self.nodes)
        return (workload.memory * 1024 or card) // self.factor

    def pods(self) -> Iterator[Pod]:
        """Every pod, in the order of the file."""
        nodes = {node.name: node for node in self.nodes}
        for workload in self.workloads:
            for number, place in enumerate(workload.at):
                name, _, cards = place.partition("/")
                node = nodes.get(name)
                indexes = tuple(int(card) for card in cards.split("+")) if node else (0,)
                yield Pod(self, workload, number, node, indexes)


class Pod(msgspec.Struct, frozen=True):
    """One pod of a workload. node: None while it is pending."""

    plan: Plan
    workload: Workload
    number: int
    node: Node | None
    cards: tuple[int, ...]

    @property
    def name(self) -> str:
        suffix = uuid.uuid5(_SPACE, f"{self.workload.name}/{self.number}").hex
        if self.workload.kind == "pod":
            return self.workload.name
        if self.workload.kind == "deployment":
            return f"{self.workload.name}-{uuid.uuid5(_SPACE, self.workload.name).hex[:9]}-{suffix[:5]}"
        return f"{self.workload.name}-{self.number}"

    @property
    def uid(self) -> str:
        return str(uuid.uuid5(_SPACE, f"{self.workload.team}/{self.name}"))

    @property
    def container(self) -> str:
        return {"train": "train", "serve": "server", "spill": "batch"}.get(self.workload.does, "main")

    @property
    def units(self) -> int:
        return self.plan.units(self.workload, self.node)

    @property
    def limit(self) -> int:
        """Memory of one vGPU, bytes."""
        return self.units * self.plan.factor << 20
