"""The context of lint rules from the facts of a pool."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from vgpuctl.model import pool
from vgpuctl.model.context import Context, PoolNode
from vgpuctl.model.facts import Facts, Part
from vgpuctl.model.reading import Missing

PARTS = (Part.NODES, Part.CONFIGMAPS, Part.DEPLOYMENTS, Part.PODS, Part.QUEUES)
"""What the context is made of; a part that is missing leaves its share unknown."""


def context_of(facts: Facts) -> Context:
    """What the facts tell of the pool; the rest stays unknown."""
    names = pool.resource_names(facts)
    factor = pool.memory_factor(facts)
    queues = facts.queues.value
    context = Context(
        volcano=pool.volcano_version(facts),
        factor=factor,
        names=names,
        queues=None if queues is None else frozenset(queue.metadata.name for queue in queues),
    )
    if not facts.nodes.known:
        return context
    try:
        nodes = tuple(node for found in pool.gpu_nodes(facts) for node in _nodes(found, factor or 1))
    except Missing:
        return context
    offered = {name for node in facts.nodes.need() for name in node.status.allocatable or {} if "/" in name}
    return replace(context, nodes=nodes if factor else None, resources=frozenset(offered) if nodes else None)


def _nodes(found: pool.GpuNode, factor: int) -> Iterator[PoolNode]:
    """A node as one record for each type of its cards."""
    for kind in dict.fromkeys(card.type for card in found.cards):
        like = [card for card in found.cards if card.type == kind]
        yield PoolNode(
            name=found.name,
            cards=len(like),
            model=like[0].model,
            memory=max(card.memory for card in like) * factor,
            mode=found.register.mode if found.register else "",
            split=like[0].count,
            uuids=tuple(card.uuid for card in like),
        )
