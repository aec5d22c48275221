"""Contexts of rules as cases and variants write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vgpuctl.model.context import Context, PoolNode
from vgpuctl.model.version_number import VersionNumber


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


def _mode(text: str) -> str:
    """The mode in Volcano's eyes: everything but `mig` is hami-core."""
    return text if text in ("", "mig") else "hami-core"


def _node(values: Mapping[str, Any]) -> PoolNode:
    return PoolNode(
        name=str(values.get("name", "")),
        cards=int(values.get("cards", 0)),
        model=str(values.get("model", "")),
        memory=int(values.get("memory_mib", 0)),
        mode=_mode(str(values.get("mode", ""))),
        split=values.get("split"),
    )
