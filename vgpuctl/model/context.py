"""What a rule may know of the pool that a text is meant for: versions, factor, nodes, resource names.

It comes from options (`--volcano-version`, `--factor`, `--gpus`), from a bundle or from the live cluster. What is
not known is None, and a rule that needs it stays silent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vgpuctl.model.quantity import units_of
from vgpuctl.model.resource import ResourceNames
from vgpuctl.model.version_number import VersionNumber


@dataclass(frozen=True)
class PoolNode:
    """A node with like cards. memory: MiB of one card. model: as in the register annotation, without `NVIDIA-`.
    mode: `hami-core`, `mig` or "" when unknown.
    split: vGPUs per card."""

    name: str
    cards: int
    model: str
    memory: int
    mode: str = ""
    split: int | None = None
    uuids: tuple[str, ...] = ()

    @property
    def card_type(self) -> str:
        """The type that Volcano compares with use-gputype."""
        return f"NVIDIA-{self.model}"


@dataclass(frozen=True)
class Context:
    """volcano: its version. factor: MiB per memory unit. nodes: the GPU nodes, None when unknown. resources: the
    extended resources that the pool's nodes offer, None when unknown. schedulers: names under which Volcano runs.
    queues: names of the queues that exist, None when unknown."""

    volcano: VersionNumber | None = None
    factor: int | None = None
    nodes: tuple[PoolNode, ...] | None = None
    resources: frozenset[str] | None = None
    names: ResourceNames = ResourceNames()
    schedulers: tuple[str, ...] = ("volcano",)
    queues: frozenset[str] | None = None
    scheduler_namespace: str = ""
    scheduler_configmap: str = ""
    plugin_namespace: str = ""

    def before(self, version: str) -> bool:
        """Volcano is known to be older than `version`."""
        return self.volcano is not None and self.volcano < VersionNumber(version)

    def since(self, version: str) -> bool:
        """Volcano is known to be `version` or newer."""
        return self.volcano is not None and self.volcano >= VersionNumber(version)

    def units(self, node: PoolNode) -> int | None:
        """The memory units of one card of a node."""
        return units_of(node.memory, self.factor) if self.factor else None


def context_from(values: Mapping[str, Any]) -> Context:
    """A context from plain data: volcano, gpuMemoryFactor, nodes (name, cards, model, memory_mib, mode, split),
    pool_resources, scheduler_namespace, scheduler_configmap, plugin_namespace."""
    nodes = values.get("nodes")
    resources = values.get("pool_resources")
    return Context(
        volcano=VersionNumber(str(values["volcano"])) if "volcano" in values else None,
        factor=values.get("gpuMemoryFactor"),
        nodes=None if nodes is None else tuple(_node(node) for node in nodes),
        resources=None if resources is None else frozenset(resources),
        scheduler_namespace=values.get("scheduler_namespace", ""),
        scheduler_configmap=values.get("scheduler_configmap", ""),
        plugin_namespace=values.get("plugin_namespace", ""),
    )


def _node(values: Mapping[str, Any]) -> PoolNode:
    return PoolNode(
        name=str(values.get("name", "")),
        cards=int(values.get("cards", 0)),
        model=str(values.get("model", "")),
        memory=int(values.get("memory_mib", 0)),
        mode=str(values.get("mode", "")),
        split=values.get("split"),
    )
