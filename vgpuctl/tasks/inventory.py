"""The pool's cards, from what is at hand: the plugin's register, the nodes' labels, this machine's driver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from vgpuctl.model import kube, pool
from vgpuctl.model.context import Context, PoolNode
from vgpuctl.model.facts import Facts, Part
from vgpuctl.model.quantity import MIB
from vgpuctl.tasks.context import PARTS

WANTED = (*PARTS, Part.CARDS)
_PRODUCT, _COUNT, _MEMORY = "nvidia.com/gpu.product", "nvidia.com/gpu.count", "nvidia.com/gpu.memory"


@dataclass(frozen=True)
class Inventory:
    """A context whose nodes are the cards that were found. named: the nodes' names are the cluster's. note: for the
    user, when something that should have been read could not be. source: where the cards were found."""

    context: Context
    named: bool = False
    note: str = ""
    source: str = ""


def inventory(facts: Facts) -> Inventory:
    """The cards that the facts know of; none is no failure."""
    context = pool.context(facts)
    if context.nodes:
        return Inventory(context, named=True, source=facts.source)
    labelled = tuple(node for item in facts.nodes.value or () for node in _labelled(item))
    if labelled:
        return Inventory(replace(context, nodes=labelled), named=True, source=facts.source)
    here = Counter((card.model, card.memory // MIB) for card in facts.cards.value or ())
    if here:
        name = facts.host.value.name if facts.host.value else "this machine"
        nodes = tuple(PoolNode(name, count, model, memory) for (model, memory), count in here.items())
        return Inventory(replace(context, nodes=nodes), source=facts.source)
    denied = facts.nodes.reason if not facts.nodes.known and facts.nodes.source else ""
    return Inventory(replace(context, nodes=None), note=denied)


def _labelled(node: kube.Node) -> Iterator[PoolNode]:
    """A node's cards as NVIDIA's feature discovery labels them."""
    labels = node.metadata.labels or {}
    count, memory = labels.get(_COUNT, ""), labels.get(_MEMORY, "")
    if labels.get(_PRODUCT) and count.isdigit() and memory.isdigit() and int(memory):
        model = labels[_PRODUCT].removeprefix("NVIDIA-").removesuffix("-SHARED")
        yield PoolNode(node.metadata.name, int(count), model, int(memory))
