"""Rules on the amounts of quotas and queues: names that count, and numbers that mean what was meant."""

from __future__ import annotations

from collections.abc import Iterator

from vgpuctl.model.context import Context
from vgpuctl.model.finding import Severity
from vgpuctl.model.pod.amounts import HARMLESS, SUFFIXED, suffix_remedy
from vgpuctl.model.quantity import show_mib, units_for
from vgpuctl.model.quota.cap import COUNTED, Cap, Group, foreign_cap
from vgpuctl.model.resource import What
from vgpuctl.model.rule import Hit

_FEW = 10
"""Fewer percent of the cores than this, for a whole team, are a count of cards."""


def _at(cap: Cap, message: str, remedy: str = "", severity: Severity | None = None) -> Hit:
    return Hit(cap.entry.position, cap.path, message, remedy, severity)


def prefix(group: Group, context: Context) -> Iterator[Hit]:
    if group.queue:
        yield from (
            _at(cap, f"a queue names resources without {cap.prefix}: nothing has this name", _name(cap, context))
            for cap in group.caps
            if cap.what and cap.prefix
        )
        return
    counted = {cap.base for cap in group.caps if cap.prefix == COUNTED}
    for cap in group.caps:
        if not cap.extended or cap.prefix == COUNTED:
            continue
        right = _name(cap, context)
        redundant = right in counted or cap.base in counted or foreign_cap(cap, context)
        how = f"with {cap.prefix}" if cap.prefix else f"without {COUNTED}"
        yield _at(
            cap,
            f"an extended resource {how} is accepted and never counted: this limits nothing",
            "remove it" if redundant else f'{COUNTED}{right}: "{cap.written}"',
        )


def _name(cap: Cap, context: Context) -> str:
    return context.names.name(cap.what) if cap.what else cap.base


def misspelt(group: Group, context: Context) -> Iterator[Hit]:
    for cap in group.caps:
        counted = group.queue or cap.prefix == COUNTED
        if cap.what and cap.misspelt and counted:
            right = _name(cap, context)
            yield _at(
                cap,
                f"there is no resource {cap.base}: nothing is counted",
                right if group.queue else f"{COUNTED}{right}",
            )


def foreign_resource(group: Group, context: Context) -> Iterator[Hit]:
    ours = any(cap.what and (group.queue or cap.prefix == COUNTED) for cap in group.caps)
    unknown_pool = context.resources is None and context.nodes is None
    for cap in group.caps:
        if not foreign_cap(cap, context) or not (group.queue or cap.prefix == COUNTED):
            continue
        if ours or (cap.amount and cap.amount.value == 0):
            continue  # a whole card is refused, or vGPUs are counted beside it
        another = (
            unknown_pool and cap.base.startswith(("nvidia.com/gpu", "nvidia.com/mig-")) and "gpumem" not in cap.base
        )
        start = "" if group.queue else COUNTED
        yield _at(
            cap,
            f"this counts {cap.base} only: vGPU pods are not limited",
            f"add {start}{context.names.number} and {start}{context.names.memory}",
            Severity.INFO if another and "gpucores" not in cap.base else None,
        )


def percentage(group: Group, context: Context) -> Iterator[Hit]:
    cap = group.cap(What.PERCENTAGE)
    if cap and not cap.misspelt and (group.queue or cap.prefix == COUNTED):
        start = "" if group.queue else COUNTED
        yield _at(
            cap,
            "it adds up percentages of different cards, and pods that ask in memory units are not counted",
            f"{start}{context.names.memory}",
        )


def not_whole(group: Group, context: Context) -> Iterator[Hit]:
    for cap in group.caps:
        if not cap.what or cap.entry.value is None or (cap.amount and cap.amount.whole and cap.amount.value >= 0):
            continue
        if cap.amount is None and (SUFFIXED.fullmatch(cap.written.strip()) or cap.written == "…"):
            continue
        if cap.amount is None:
            yield _at(cap, f"{cap.written} is no quantity: the API server refuses it", "a whole number")
        elif cap.amount.value < 0:
            yield _at(cap, f"{cap.written} is negative: the API server refuses it", "a whole number from 0 on")
        else:
            yield _at(
                cap, f"{cap.written}: extended resources are whole numbers", _whole(cap.amount.number, cap, context)
            )


def _whole(number: int, cap: Cap, context: Context) -> str:
    if cap.what is What.MEMORY and context.factor and cap.amount:
        units = units_for(int(cap.amount.value * 1024), context.factor)
        return f'"{units}" for {cap.written} GiB with factor {context.factor}'
    return str(number)


def unit_suffix(group: Group, context: Context) -> Iterator[Hit]:
    for cap in group.caps:
        if not cap.what:
            continue
        if cap.amount is None and SUFFIXED.fullmatch(cap.written.strip()):
            remedy = suffix_remedy(cap.written, cap.what, context)
            yield _at(cap, f"{cap.written} is no quantity: the API server refuses it", remedy)
        elif cap.amount and cap.amount.suffix not in HARMLESS and not cap.amount.suffix.startswith("e"):
            unit = f"{context.factor or 'gpuMemoryFactor'} MiB"
            what = f"units of {unit}" if cap.what is What.MEMORY else cap.what.value
            yield _at(
                cap,
                f"{cap.written} means {cap.amount.number} {what}: that is no limit at all",
                suffix_remedy(cap.written, cap.what, context),
            )


def as_count(group: Group, context: Context) -> Iterator[Hit]:
    cores, number = group.cap(What.CORES), group.cap(What.NUMBER)
    if not cores or not cores.number or cores.number < 0:
        return
    vgpus = (number.number if number else None) or 0
    if cores.number < _FEW or cores.number <= vgpus:
        yield _at(
            cores,
            f"cores are percent of a card: {cores.number} means {cores.number} % of one card",
            f'"{cores.number * 100}" for {cores.number} cards' if cores.number > 1 else '"100" for one card',
        )


def over_pool(group: Group, context: Context) -> Iterator[Hit]:
    """MiB figures in a pool with another unit: a cap above the whole pool limits nothing."""
    if group.section == "guarantee":
        return  # guarantee_over_pool speaks
    cap, pool = group.cap(What.MEMORY), pool_units(context)
    plain = cap and cap.amount and (cap.amount.suffix in HARMLESS or cap.amount.suffix.startswith("e"))
    if not cap or not plain or not cap.number or pool is None or not context.factor or cap.number <= pool:
        return
    yield _at(
        cap,
        f"with factor {context.factor} the pool has {pool} units ({show_mib(pool * context.factor)}): "
        f"{cap.written} limits nothing",
        f'"{pool}" or less',
        None if context.factor > 1 else Severity.INFO,
    )


def pool_units(context: Context) -> int | None:
    """The memory units of all cards."""
    if context.nodes is None or not context.factor:
        return None
    return sum(node.cards * (node.memory // context.factor) for node in context.nodes)


def cap_ignored(group: Group, context: Context) -> Iterator[Hit]:
    if group.queue and context.before("1.13.0"):
        for cap in group.caps:
            if cap.what in (What.MEMORY, What.CORES, What.PERCENTAGE):
                yield _at(
                    cap,
                    f"Volcano {context.volcano} leaves {cap.base} out of all queue arithmetic: it is not enforced",
                    f"upgrade to Volcano 1.13, or cap by {context.names.number}",
                )
