"""Explains a configuration: that of files, or the one that a pool runs on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from vgpuctl.model import pool
from vgpuctl.model.config.explain import ConfigExplanation, Texts, explain
from vgpuctl.model.config.kind import DEVICE, NODE, SCHEDULER
from vgpuctl.model.config.values import Flag, Stated, device_values, deviceshare_values, flags, node_values
from vgpuctl.model.facts import Facts, Part
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.tasks.config.texts import found_in

PARTS = (Part.CONFIGMAPS, Part.NODES, Part.DAEMONSETS, Part.DEPLOYMENTS, Part.PODS)


def explain_texts(texts: Iterable[tuple[str, str]], wanted: str = "") -> ConfigExplanation:
    """What (file name, text) pairs say. Raises Problem when none holds a configuration."""
    by_kind = {found.kind.name: found.text for found in found_in(texts)}
    device = device_values(by_kind[DEVICE.name]) if DEVICE.name in by_kind else None
    explained = explain(
        Texts(
            device=device or Stated(),
            node=node_values(by_kind[NODE.name]) if NODE.name in by_kind else Stated(),
            deviceshare=deviceshare_values(by_kind[SCHEDULER.name]) if SCHEDULER.name in by_kind else None,
            scheduler_device=device,
        ),
        wanted,
    )
    note = "flags and variables of the plugin's DaemonSet are not known here; they win over the device config"
    return msgspec.structs.replace(explained, notes=[note])


def explain_live(facts: Facts, wanted: str = "") -> ConfigExplanation:
    """What the pool runs on. Raises Missing when ConfigMaps are not known, Problem for a node without cards."""
    device, scheduler_device = pool.plugin_config(facts), pool.scheduler_device_config(facts)
    node, scheduler = pool.node_config(facts), pool.scheduler_config(facts)
    names = tuple(gpu.name for gpu in pool.gpu_nodes(facts)) if facts.nodes.known else None
    if wanted and names is not None and wanted not in names:
        raise Problem(
            f"there is no node {wanted} with cards",
            remedy=f"nodes with cards: {', '.join(names) or 'none'}",
            exit_code=Exit.FINDINGS,
        )
    explained = explain(
        Texts(
            device=device_values(device.text) if device else Stated(dropped="there is none"),
            node=node_values(node.text) if node else Stated(),
            deviceshare=deviceshare_values(scheduler.text) if scheduler else None,
            scheduler_device=device_values(scheduler_device.text) if scheduler_device else None,
            flags=_flags(facts, names or ()) if facts.daemonsets.known else None,
            names=names,
        ),
        wanted,
    )
    places = [f"{text.place}: {text.key}" for text in (device, node, scheduler) if text]
    return msgspec.structs.replace(explained, source=facts.source, notes=[*_unread(facts), *places])


def _flags(facts: Facts, names: Iterable[str]) -> Mapping[str, Mapping[str, Flag]]:
    """By node, what the DaemonSet of its plugin pod sets; without a pod the only DaemonSet counts."""
    by_name = {item.metadata.name: flags(item) for item in pool.plugin_daemonsets(facts)}
    only = next(iter(by_name.values())) if len(by_name) == 1 else {}
    owners = {
        pod.spec.node_name: owner.name
        for pod in (pool.plugin_pods(facts) if facts.pods.known else ())
        for owner in pod.metadata.owner_references or ()
    }
    return {name: by_name.get(owners.get(name, ""), only) for name in names}


def _unread(facts: Facts) -> Iterator[str]:
    for part in (Part.NODES, Part.DAEMONSETS):
        reading = facts.part(part)
        if not reading.known:
            yield f"not known: {part.value}: {reading.reason}"
