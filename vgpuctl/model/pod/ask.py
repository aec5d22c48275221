"""What a container asks for: its vGPU amounts as Volcano would read them, misspelt names included.

`Ask.what` is what the name counts, or what a misspelt one was meant to count, so that the other rules do not
stumble over a slip that is reported already.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from vgpuctl.model.context import Context, PoolNode
from vgpuctl.model.document import Entry, Node, Scalar
from vgpuctl.model.manifest import join, near, near_key
from vgpuctl.model.pod import names
from vgpuctl.model.pod.template import Container, Template
from vgpuctl.model.quantity import Quantity, quantity
from vgpuctl.model.resource import ResourceNames, What

_TOKENS = (
    (What.PERCENTAGE, re.compile(r"perc|ratio")),
    (What.MEMORY, re.compile(r"mem|vram")),
    (What.CORES, re.compile(r"core|comput|util|sm\b")),
    (What.NUMBER, re.compile(r"num|count|gpu")),
)


@dataclass(frozen=True)
class Ask:
    """One amount. written: the value's text. amount: None when it is no quantity. misspelt: the name is."""

    what: What
    entry: Entry
    path: str
    written: str
    amount: Quantity | None
    misspelt: bool = False

    @property
    def number(self) -> int | None:
        """The whole number that it is; None for anything else."""
        return self.amount.number if self.amount and self.amount.whole else None


def asks(container: Container, part: str, context: Context) -> Iterator[Ask]:
    """The vGPU amounts among `limits` or `requests`, in order of appearance."""
    _, path, amounts = container.resources(part)
    for entry in amounts:
        exact = context.names.what(entry.name)
        what = exact or meant(entry.name, context)
        if what:
            written = written_of(entry.value)
            yield Ask(what, entry, join(path, entry.name), written, amount_of(entry.value), exact is None)


def ask(container: Container, what: What, context: Context, part: str = "limits") -> Ask | None:
    """One vGPU amount, None when the container does not state it."""
    return next((found for found in asks(container, part, context) if found.what is what), None)


def wants_vgpu(template: Template, context: Context) -> bool:
    """A main container asks for something of a vGPU."""
    return any(True for c in template.main for part in ("limits", "requests") for _ in asks(c, part, context))


def written_of(node: Node) -> str:
    """A value as it stands in the text."""
    return node.text if isinstance(node, Scalar) else "…"


def amount_of(node: Node) -> Quantity | None:
    """A value as a quantity; an empty one is 0, as the API server reads it."""
    if not isinstance(node, Scalar):
        return None
    try:
        return quantity(0 if node.value is None else node.value)
    except ValueError:
        return None


def foreign(name: str, context: Context) -> What | str | None:
    """What a resource of another product counts ("" when nothing of ours comes near); None when it is no such name,
    or when the pool offers it."""
    if context.resources is not None and name in context.resources:
        return None
    if name in names.FOREIGN_RESOURCES:
        nearest = names.FOREIGN_RESOURCES[name]
        return What(nearest) if nearest else ""
    return What.NUMBER if name.startswith(names.FOREIGN_PREFIXES) else None


def meant(name: str, context: Context) -> What | None:
    """What a misspelt resource name was meant to count; None for a name that is something else.

    A name counts as misspelt when its domain is, or nearly is, that of the vGPU resources, or when it speaks of
    vGPUs in another domain.
    """
    if context.names.what(name) or (context.resources and name in context.resources):
        return None
    if name in names.FOREIGN_RESOURCES or name.startswith(names.FOREIGN_PREFIXES):
        return None
    return similar(name, context.names)


def similar(name: str, known: ResourceNames) -> What | None:
    """The vGPU resource that a name resembles: in its domain, in one nearly like it, in NVIDIA's or in none."""
    domain, _, own = name.strip().lower().rpartition("/")
    domains = {full.partition("/")[0] for full in known.all}
    if near(domain, domains) or (domain in ("", "nvidia.com") and "vgpu" in own):
        return _by_token(own)
    right = near_key(name, known.all)
    return known.what(right) if right else None


def _by_token(own: str) -> What | None:
    return next((what for what, pattern in _TOKENS if pattern.search(own)), None)


def candidates(template: Template, context: Context) -> tuple[PoolNode, ...]:
    """The nodes that the pod's own mode and card types leave; all nodes when these leave none."""
    nodes = context.nodes or ()
    mode = template.annotation(names.MODE)
    if mode in names.MODES and not context.before(names.SINCE[names.MODE]):
        nodes = tuple(node for node in nodes if node.mode in ("", mode))
    matching = tuple(node for node in nodes if type_matches(template, node.card_type))
    return matching or nodes or (context.nodes or ())


def type_matches(template: Template, card_type: str) -> bool:
    """Volcano's comparison: use-gputype alone counts when it is there, else nouse-gputype; items are not trimmed."""
    use = template.annotation(names.USE_TYPE)
    if use is not None:
        return _contains(card_type, use.split(","))
    avoid = template.annotation(names.NO_USE_TYPE)
    return avoid is None or not _contains(card_type, avoid.split(","))


def _contains(card_type: str, words: Iterable[str]) -> bool:
    return any(word.upper() in card_type.upper() for word in words)


def in_mig_mode(template: Template, context: Context) -> bool:
    """The pod can only land on cards cut by MIG."""
    nodes = candidates(template, context)
    return template.annotation(names.MODE) == "mig" or (bool(nodes) and all(node.mode == "mig" for node in nodes))
