"""Rules on the numbers: number, memory, percentage, cores, against the pool's factor, cards and slices."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from vgpuctl.model.config.mig import usual_profiles
from vgpuctl.model.context import Context
from vgpuctl.model.document import Mapping, Node, Sequence
from vgpuctl.model.finding import Severity
from vgpuctl.model.manifest import entries
from vgpuctl.model.pod.ask import Ask, ask, asks, candidates, in_mig_mode
from vgpuctl.model.pod.template import Container
from vgpuctl.model.quantity import GIB, MIB, int32, show_mib, size, units_for
from vgpuctl.model.resource import What
from vgpuctl.model.rule import Hit

SUFFIXED = re.compile(r"[+-]?\d+(\.\d+)?\s*([A-Za-z]+|%)")
HARMLESS = ("", "k", "Ki", "m", "u", "n")
"""Suffixes that a whole number of units may have: the API server itself writes 4000 as `4k`."""

CONTEXT_MIB = 256
"""Less than this holds no CUDA context with its libraries."""

_ABSURD = 1024 * 1024
"""Memory units that no card has at any factor: 1 TiB in MiB."""


def at(found: Ask, message: str, remedy: str = "", severity: Severity | None = None) -> Hit:
    return Hit(found.entry.position, found.path, message, remedy, severity)


def number_missing(container: Container, context: Context) -> Iterator[Hit]:
    if container.init or ask(container, What.NUMBER, context) or ask(container, What.NUMBER, context, "requests"):
        return
    if _mentions(container.node, context.names.number):
        return  # it is there, in a wrong place
    first = next(asks(container, "limits", context), None)
    if first is None:
        return
    name = context.names.number
    effect = (
        "the scheduler plans one card, but the kubelet asks the plugin for no vGPU: the container starts without a GPU"
        if ask(container, What.MEMORY, context)
        else "that alone is no vGPU request: the container starts without a GPU"
    )
    yield at(first, f"{first.entry.name} without {name}: {effect}", f"add {name}: 1")


def _mentions(node: Node, name: str) -> bool:
    if isinstance(node, Mapping):
        return any(entry.name == name or _mentions(entry.value, name) for entry in entries(node))
    return isinstance(node, Sequence) and any(_mentions(item, name) for item in node)


def number_zero(container: Container, context: Context) -> Iterator[Hit]:
    found = ask(container, What.NUMBER, context)
    if not container.init and found and found.number == 0:
        yield at(
            found,
            "0 vGPUs: the pod is scheduled without a card, and a phantom use is booked on one in that session",
            f"{context.names.number}: 1, or remove every vGPU line of this container",
        )


def not_whole(container: Container, context: Context) -> Iterator[Hit]:
    for part in ("limits", "requests"):
        for found in asks(container, part, context):
            if part == "requests" and ask(container, found.what, context):
                continue
            if found.amount is None and SUFFIXED.fullmatch(found.written.strip()):
                continue
            if found.amount is None or not found.amount.whole or found.amount.value < 0:
                why = "is no quantity" if found.amount is None else "is not a whole number from 0 on"
                yield at(
                    found,
                    f"{found.written} {why}: the API server refuses the pod, vGPU resources are whole numbers",
                    _whole_remedy(found, context),
                )


def _whole_remedy(found: Ask, context: Context) -> str:
    if found.amount is None or found.amount.value < 0:
        return "a whole number from 0 on"
    if found.what is What.MEMORY and context.factor:
        units = units_for(int(found.amount.value * 1024), context.factor)
        return f"{units} for {found.written} GiB with factor {context.factor}"
    if found.what is What.CORES and found.amount.value <= 1:
        return f"{int(found.amount.value * 100)} (percent of the card)"
    return str(found.amount.number)


def unit_suffix(container: Container, context: Context) -> Iterator[Hit]:
    if container.init:
        return
    for found in asks(container, "limits", context):
        if found.amount is None and SUFFIXED.fullmatch(found.written.strip()):
            refused = "is no quantity: the API server refuses the pod"
            yield at(found, f"{found.written} {refused}", suffix_remedy(found.written, found.what, context))
        elif found.amount and found.amount.suffix not in HARMLESS and not found.amount.suffix.startswith("e"):
            number = found.amount.number
            message = f"{found.written} means {number} memory units: no node fits"
            if found.what is not What.MEMORY:
                message = f"{found.written} means {number}: no node fits"
            elif context.volcano is None or context.before("1.13.0"):
                cut = int32(number)
                seen = "0, the whole card" if cut == 0 else f"{cut}"
                message += f" (before Volcano 1.13 it wraps to {seen})"
            yield at(found, message, suffix_remedy(found.written, found.what, context))


def suffix_remedy(written: str, what: What, context: Context) -> str:
    """The right value for one that was written with a unit."""
    if what is not What.MEMORY:
        return re.match(r"[+-]?\d*", written.strip()).group() or "a whole number"  # type: ignore[union-attr]
    try:
        wanted = size(written)
    except ValueError:
        return "a whole number of memory units"
    if wanted.percent is not None:
        cards = [context.units(node) for node in context.nodes or ()]
        units = max((card for card in cards if card), default=None)
        part = f"{int(units * wanted.percent / 100)}" if units else "the units of that part of the card"
        return f"{part} (percentages are not understood here)"
    assert wanted.mib is not None
    if context.factor:
        return f'"{units_for(wanted.mib, context.factor)}" (units of {context.factor} MiB)'
    return f'"{wanted.mib}" with gpuMemoryFactor 1; divide by the factor otherwise'


def number_over_cards(container: Container, context: Context) -> Iterator[Hit]:
    found = ask(container, What.NUMBER, context)
    nodes = candidates(container.template, context)
    if container.init or not found or not found.number or not nodes:
        return
    cards: Counter[str] = Counter()
    for node in nodes:
        cards[node.name] += node.cards
    most = max(cards.values())
    if found.number > most:
        yield at(
            found,
            f"each vGPU of a container needs a card of its own; the largest fitting node has {most}",
            f"{context.names.number}: {most} or less",
        )


def percentage(container: Container, context: Context) -> Iterator[Hit]:
    found = ask(container, What.PERCENTAGE, context)
    offered = context.resources is not None and context.names.percentage in context.resources
    if container.init or not found or not found.number or offered or context.before("1.13.0"):
        return
    severity = None if context.volcano else Severity.WARNING
    memory = ask(container, What.MEMORY, context)
    if memory:
        if context.volcano is None:
            return  # percentage_and_memory speaks
        remedy = f"remove it; {memory.entry.name}: {memory.written} says it already"
    else:
        remedy = _percentage_remedy(container, found.number, context)
    also = "; were it not, it would win over vgpu-memory" if memory else ""
    yield at(
        found,
        "since Volcano 1.13 this resource is part of the fit test, and no node offers it: the pod stays Pending" + also,
        remedy,
        severity,
    )


def _percentage_remedy(container: Container, percent: int, context: Context) -> str:
    name = context.names.memory
    for node in candidates(container.template, context):
        units = context.units(node)
        if units:
            return f"{name}: {units * percent // 100} ({percent} % of {units})"
    return f"{name}, in memory units of the card that is meant"


def percentage_and_memory(container: Container, context: Context) -> Iterator[Hit]:
    share, memory = (ask(container, what, context) for what in (What.PERCENTAGE, What.MEMORY))
    if container.init or not share or not memory or not share.number or context.since("1.13.0"):
        return
    effect = ""
    for node in candidates(container.template, context)[:1]:
        units = context.units(node)
        effect = f": {units * share.number // 100} units instead of {memory.written}" if units else ""
    yield at(share, f"the percentage wins over {memory.entry.name}{effect}", "keep one of the two")


def cores_over(container: Container, context: Context) -> Iterator[Hit]:
    found = ask(container, What.CORES, context)
    if not container.init and found and found.number is not None and found.number > 100:
        cards = -(-found.number // 100)
        yield at(
            found,
            f"{found.written}: cores are percent of each card, nothing above 100 ever fits",
            f"{context.names.cores}: 100 or less; for {found.number / 100:g} cards ask {context.names.number}: {cards}",
        )


def cores_as_count(container: Container, context: Context) -> Iterator[Hit]:
    cores, number = (ask(container, what, context) for what in (What.CORES, What.NUMBER))
    if container.init or not cores or not cores.number:
        return
    if 0 < cores.number < 10 and cores.number <= ((number.number if number else None) or 1):
        yield at(
            cores, f"cores are percent of the card: {cores.number} means {cores.number} %", '"100" for the whole card'
        )


def memory_over_card(container: Container, context: Context) -> Iterator[Hit]:
    found = ask(container, What.MEMORY, context)
    units = found.number if found else None
    if container.init or not found or not units or found.amount is None:
        return
    if found.amount.suffix not in HARMLESS and not found.amount.suffix.startswith("e"):
        return  # unit_suffix speaks
    most, card = _largest(container, context)
    if most is not None and units > most:
        meant = _in_mib(units, context)
        yield at(
            found,
            f"{units} units{meant} are more than any card that fits has: {card}",
            f"{context.names.memory}: {most}",
        )
    elif most is None and units > _ABSURD:
        bytes_meant = f"; {units} bytes would be {units // MIB} MiB" if units >= GIB // 8 else ""
        yield at(found, f"{units} memory units are more than any card has{bytes_meant}", "memory units, not bytes")


def _largest(container: Container, context: Context) -> tuple[int | None, str]:
    """The most units that one card (or slice) of the nodes left has, and that card in words."""
    best: tuple[int | None, str] = (None, "")
    for node in candidates(container.template, context) if context.factor else ():
        assert context.factor
        units, text = node.memory // context.factor, f"{node.memory} MiB = {node.memory // context.factor} units"
        cut = usual_profiles(node.model) if node.mode == "mig" else ()
        if cut:
            largest = max(cut, key=lambda one: one.counted)
            units = largest.counted // context.factor
            text = f"the slice {largest.name} has {largest.counted} MiB = {units} units"
        if context.factor > 1:
            text += f" of {context.factor} MiB"
        if best[0] is None or units > best[0]:
            best = units, text
    return best


def _in_mib(units: int, context: Context) -> str:
    return f" ({show_mib(units * context.factor)})" if context.factor and context.factor > 1 else ""


def memory_too_small(container: Container, context: Context) -> Iterator[Hit]:
    found = ask(container, What.MEMORY, context)
    units = found.number if found else None
    if container.init or not found or units is None or units < 0 or not context.factor:
        return
    if 0 < units * context.factor < CONTEXT_MIB:
        yield at(
            found,
            f"the unit is {context.factor} MiB: {units * context.factor} MiB is less than a CUDA context",
            f'"{units_for(units * 1024, context.factor)}" for {units} GiB',
        )


def memory_zero(container: Container, context: Context) -> Iterator[Hit]:
    found = ask(container, What.MEMORY, context)
    if not container.init and found and found.number == 0:
        yield at(found, "0 does not mean none: it gives the whole card", "leave it out to say so")


def memory_unit(container: Container, context: Context) -> Iterator[Hit]:
    """A round MiB figure in a pool whose unit is another."""
    found = ask(container, What.MEMORY, context)
    factor, units = context.factor or 0, (found.number if found else None) or 0
    if container.init or not found or factor < 2 or units < 1024 or units % 512:
        return
    yield at(
        found,
        f"{units} looks like MiB, but the unit is {factor} MiB: it gives {show_mib(units * factor)}",
        f'"{units_for(units, factor)}" if {show_mib(units)} are meant',
    )


def slice_size(container: Container, context: Context) -> Iterator[Hit]:
    found = ask(container, What.MEMORY, context)
    if container.init or not found or not found.number or not context.factor:
        return
    if not in_mig_mode(container.template, context):
        return
    asked = found.number * context.factor
    for node in candidates(container.template, context):
        cut = sorted(usual_profiles(node.model), key=lambda one: one.counted)
        missed = next((one for one in reversed(cut) if one.counted < asked <= one.nominal), None)
        taken = next((one for one in cut if one.counted >= asked), None)
        if missed and taken:
            yield at(
                found,
                f"{found.number} x {context.factor} = {asked} MiB is more than the {missed.name} slice "
                f"({missed.counted} MiB): it takes a {taken.name} slice",
                f'"{missed.counted // context.factor}"',
            )
            return


def slice_cores(container: Container, context: Context) -> Iterator[Hit]:
    found = ask(container, What.CORES, context)
    if not container.init and found and in_mig_mode(container.template, context):
        yield at(found, "in MIG mode the slice fixes the share of the cores", "remove it")


def requests_limits(container: Container, context: Context) -> Iterator[Hit]:
    if container.init:
        return
    whole, path, _ = container.resources("requests")
    limits = {found.what: found for found in asks(container, "limits", context)}
    wanted = list(asks(container, "requests", context))
    if wanted and whole and not limits:
        what = "vGPU resources need limits: the API server refuses the pod"
        yield Hit(whole.position, path, f"requests without limits: {what}", "limits: with the same values")
        return
    for found in wanted:
        limit = limits.get(found.what)
        if limit is None:
            yield at(found, f"{found.entry.name} has no limit: the API server refuses the pod", "the same in limits")
        elif limit.amount and found.amount and limit.amount.value != found.amount.value:
            yield at(
                found,
                f"the request is {found.written}, the limit {limit.written}: the API server wants them equal",
                f"{found.entry.name}: {limit.written}, or leave the request out",
            )


def init_container(container: Container, context: Context) -> Iterator[Hit]:
    first = next((found for part in ("limits", "requests") for found in asks(container, part, context)), None)
    if container.init and first:
        yield at(
            first,
            "init containers are not looked at: no card is planned, and the container fails at admission",
            "move the work into a main container",
        )
