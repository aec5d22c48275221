"""Rules on all objects of a text together: the tree of queues, guarantees against the pool, one default priority."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from vgpuctl.model.context import Context
from vgpuctl.model.document import Entry, Mapping, Scalar
from vgpuctl.model.finding import Severity
from vgpuctl.model.manifest import Manifest, join, text_of
from vgpuctl.model.quota.amounts import pool_units
from vgpuctl.model.quota.cap import Cap, groups
from vgpuctl.model.resource import What
from vgpuctl.model.rule import Hit

Objects = Sequence[Manifest]
_ALWAYS = ("root", "default")
_TOP = ("", "root")


def _queues(objects: Objects) -> dict[str, Manifest]:
    return {manifest.name: manifest for manifest in objects if manifest.kind == "Queue"}


def _parent(queue: Manifest) -> tuple[str, Entry | None]:
    spec = queue.root.get("spec")
    entry = spec.entry("parent") if isinstance(spec, Mapping) else None
    return (text_of(entry.value) if entry else ""), entry


def _parent_path(queue: Manifest) -> str:
    return join(join(queue.path, "spec"), "parent")


def queue_tree(objects: Objects, context: Context) -> Iterator[Hit]:
    queues = _queues(objects)
    known = {*queues, *_ALWAYS, *(context.queues or ())}
    for name, queue in queues.items():
        parent, entry = _parent(queue)
        if not entry or not parent:
            continue
        path = _parent_path(queue)
        if parent == name:
            yield Hit(entry.position, path, "a queue cannot be its own parent", "remove parent")
        elif parent not in known:
            message = f"there is no queue {parent}: the webhook refuses this one"
            yield Hit(entry.position, path, message, "create the parent first, or correct the name")
        elif _closes_circle(name, queues):
            yield Hit(entry.position, path, "the parents go round in a circle", "remove one parent")
    yield from _child_over_parent(queues, context)


def _closes_circle(name: str, queues: dict[str, Manifest]) -> bool:
    """The queue is in a circle, and the last of it in the text."""
    seen, here = [name], _parent(queues[name])[0]
    while here in queues and here not in seen:
        seen.append(here)
        here = _parent(queues[here])[0]
    order = list(queues)
    return here == name and max(seen, key=order.index) == name


def child_order(objects: Objects, context: Context) -> Iterator[Hit]:
    names = list(_queues(objects))
    for queue in _queues(objects).values():
        parent, entry = _parent(queue)
        if entry and parent in names and names.index(parent) > names.index(queue.name) and not queue.live:
            message = f"the parent {parent} comes later in the text: the first kubectl apply is refused"
            yield Hit(entry.position, _parent_path(queue), message, "write the parent first", Severity.INFO)


def _amounts(queue: Manifest, section: str, context: Context) -> dict[str, Cap]:
    group = next((group for group in groups(queue, context) if group.section == section), None)
    return {cap.base: cap for cap in group.caps if cap.amount} if group else {}


def _child_over_parent(queues: dict[str, Manifest], context: Context) -> Iterator[Hit]:
    for name, parent in queues.items():
        children = [queue for queue in queues.values() if _parent(queue)[0] == name and queue is not parent]
        limits = _amounts(parent, "capability", context)
        for child in children:
            for resource, cap in _amounts(child, "capability", context).items():
                limit = limits.get(resource)
                if limit and limit.amount and cap.amount and cap.amount.value > limit.amount.value:
                    yield Hit(
                        cap.entry.position,
                        cap.path,
                        f"more than the parent {name} has ({limit.written})",
                        f"{limit.written} or less",
                    )
        for section in ("deserved", "guarantee"):
            yield from _sum_over(children, parent, section, context)


def _sum_over(children: list[Manifest], parent: Manifest, section: str, context: Context) -> Iterator[Hit]:
    for resource, limit in _amounts(parent, section, context).items():
        total = Fraction(0)
        for child in children:
            cap = _amounts(child, section, context).get(resource)
            if not cap or not cap.amount or not limit.amount:
                continue
            total += cap.amount.value
            if total > limit.amount.value:
                message = (
                    f"the children of {parent.name} have {section} {float(total):g} in sum, it has {limit.written}"
                )
                yield Hit(cap.entry.position, cap.path, message, f"{limit.written} or less in sum")
                break


def guarantee_over_pool(objects: Objects, context: Context) -> Iterator[Hit]:
    queues = _queues(objects)
    pool = _pool(context)
    children = {name: [q for q in queues.values() if _parent(q)[0] == name and q.name != name] for name in queues}
    for what, size in pool.items():
        total = 0
        for name, queue in queues.items():
            if _parent(queue)[0] not in (*_TOP, name) and _parent(queue)[0] in queues:
                continue  # counted with its parent
            amount, cap = _guaranteed(queue, what, children, context, (name,))
            total += amount
            if cap and amount and total > size:
                yield Hit(
                    cap.entry.position,
                    cap.path,
                    f"guarantees {total} in sum, the pool has {size}: nothing is left for queues without a guarantee, "
                    "their pods stay pending (up to Volcano 1.11 the scheduler panics)",
                    f"lower the guarantees well below {size} in sum",
                )
                break


def _guaranteed(
    queue: Manifest, what: What, children: dict[str, list[Manifest]], context: Context, seen: tuple[str, ...]
) -> tuple[int, Cap | None]:
    """What a queue and those below it are guaranteed: the greater of its own and its children's sum."""
    cap = _amounts(queue, "guarantee", context).get(context.names.name(what))
    own = cap.number or 0 if cap else 0
    below = [
        _guaranteed(child, what, children, context, (*seen, child.name))
        for child in children.get(queue.name, ())
        if child.name not in seen
    ]
    total = sum(amount for amount, _ in below)
    if total > own:
        return total, next((found for _, found in reversed(below) if found), cap)
    return own, cap


def _pool(context: Context) -> dict[What, int]:
    """The whole pool, for the resources whose size is known."""
    if context.nodes is None:
        return {}
    pool = {}
    units = pool_units(context)
    if units is not None:
        pool[What.MEMORY] = units
    if all(node.split for node in context.nodes):
        pool[What.NUMBER] = sum(node.cards * (node.split or 0) for node in context.nodes)
    return pool


def priority_default(objects: Objects, context: Context) -> Iterator[Hit]:
    first: Manifest | None = None
    for manifest in objects:
        entry = manifest.root.entry("globalDefault") if manifest.kind == "PriorityClass" else None
        if entry and isinstance(entry.value, Scalar) and entry.value.value is True:
            if first:
                yield Hit(
                    entry.position,
                    join(manifest.path, "globalDefault"),
                    f"{first.name} is the default already: the API server refuses a second one",
                    "keep one",
                )
            first = first or manifest


def same_name(objects: Objects, context: Context) -> Iterator[Hit]:
    seen: set[tuple[str, str, str]] = set()
    for manifest in objects:
        key = (manifest.kind, manifest.namespace, manifest.name)
        metadata = manifest.root.get("metadata")
        entry = metadata.entry("name") if isinstance(metadata, Mapping) else None
        if entry and manifest.name and key in seen:
            path = join(join(manifest.path, "metadata"), "name")
            yield Hit(entry.position, path, f"{manifest.title} is in the text already: the last one wins", "keep one")
        seen.add(key)
