"""Compares the configurations in files with those that a pool runs on, by what they mean."""

from __future__ import annotations

from collections.abc import Iterable

from vgpuctl.model import pool
from vgpuctl.model.config.diff import Compared, ConfigDiff, differences
from vgpuctl.model.config.kind import DEVICE, NODE, SCHEDULER, Kind
from vgpuctl.model.facts import Facts, Part
from vgpuctl.tasks.config.texts import found_in

PARTS = (Part.CONFIGMAPS, Part.DEPLOYMENTS)
_LIVE = {DEVICE.name: pool.plugin_config, NODE.name: pool.node_config, SCHEDULER.name: pool.scheduler_config}


def live(facts: Facts, kind: Kind) -> pool.Text | None:
    """The configuration of a kind that the pool reads. Raises Missing when that is not known."""
    return _LIVE[kind.name](facts)


def diff(texts: Iterable[tuple[str, str]], facts: Facts, kind: Kind | None = None) -> ConfigDiff:
    """Each configuration in (file name, text) pairs against the cluster's. Raises Missing and Problem."""
    compared = []
    for found in found_in(texts, kind):
        there = live(facts, found.kind)
        compared.append(
            Compared(
                file=found.file,
                subject=found.kind.title,
                place=there.place if there else "",
                same_text=there is not None and there.text == found.text,
                differences=differences(found.kind, there.text if there else None, found.text),
            )
        )
    return ConfigDiff(source=facts.source, compared=compared)
