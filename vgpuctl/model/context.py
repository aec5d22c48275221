"""What a rule may know of the pool that a text is meant for: versions, factor, nodes, resource names.

It comes from options (`--volcano-version`, `--factor`, `--gpus`), from a bundle or from the live cluster. What is
not known is None, and a rule that needs it stays silent.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from vgpuctl.model.quantity import units_of
from vgpuctl.model.resource import ResourceNames
from vgpuctl.model.version_number import VersionNumber


@dataclass(frozen=True)
class PoolNode:
    """The like cards of a node; a node with several types of cards is there once for each. memory: MiB of one card.
    model: as in the register annotation, without `NVIDIA-`. mode: `hami-core`, `mig` or "" when unknown.
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
    queues: names of the queues that exist, None when unknown. names_known: nodes are named as
    in the cluster."""

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
    names_known: bool = True

    def before(self, version: str) -> bool:
        """Volcano is known to be older than `version`."""
        return self.volcano is not None and self.volcano < VersionNumber(version)

    def since(self, version: str) -> bool:
        """Volcano is known to be `version` or newer."""
        return self.volcano is not None and self.volcano >= VersionNumber(version)

    def units(self, node: PoolNode) -> int | None:
        """The memory units of one card of a node."""
        return units_of(node.memory, self.factor) if self.factor else None


_GPUS = re.compile(r"(?:(\d+)\s*x\s*)?([A-Za-z][\w. -]*?)-(\d+)\s*(?:GB|G|GiB|Gi)?", re.IGNORECASE)
_REAL: dict[tuple[str, int], int] = {
    ("A10", 24): 23028,
    ("A30", 24): 24576,
    ("A100", 40): 40960,
    ("A100", 80): 81920,
    ("H100", 80): 81559,
    ("H200", 141): 143771,
    ("L40S", 48): 46068,
    ("RTX 4090", 24): 24564,
    ("T4", 16): 15360,
    ("V100", 16): 16384,
    ("V100", 32): 32768,
}
"""MiB that NVML tells of a card, by model and the GB of its name; others have 1024 MiB for each GB."""


def gpu_list(text: str) -> tuple[PoolNode, ...]:
    """The cards of `8xH100-80GB,4xV100-32GB`: one node for each part. Raises ValueError for what is not understood."""
    nodes = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        match = _GPUS.fullmatch(part)
        if not match:
            raise ValueError(f"{part!r} is not understood: write COUNTxMODEL-MEMORY, such as 8xH100-80GB")
        count, model, gigabytes = int(match.group(1) or 1), match.group(2), int(match.group(3))
        memory = next(
            (mib for (name, size), mib in _REAL.items() if size == gigabytes and name.lower() in model.lower()),
            gigabytes * 1024,
        )
        nodes.append(PoolNode(part, count, part.partition("x")[2] or part, memory))
    if not nodes:
        raise ValueError("no card is named: write COUNTxMODEL-MEMORY, such as 8xH100-80GB")
    return tuple(nodes)
