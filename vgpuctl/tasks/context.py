"""The parts of the facts of which the context of the rules is made, see `model.pool.context`."""

from __future__ import annotations

from vgpuctl.model.facts import Part

PARTS = (Part.NODES, Part.CONFIGMAPS, Part.DEPLOYMENTS, Part.PODS, Part.QUEUES)
"""A part that is missing leaves its share unknown."""
