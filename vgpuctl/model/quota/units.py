"""From stated amounts to what the API server counts, and back, by the pool's names, factor and size."""

from __future__ import annotations

from dataclasses import dataclass

from vgpuctl.model.quantity import show_mib, size, units_for
from vgpuctl.model.quota.team import Amounts
from vgpuctl.model.reading import Missing
from vgpuctl.model.resource import ResourceNames, What


@dataclass(frozen=True)
class Pool:
    """What amounts are measured by. factor: MiB per memory unit. units: memory units of the whole pool. vgpus: how
    many it offers. Each is None when it is not known; why tells the reason."""

    names: ResourceNames = ResourceNames()
    factor: int | None = None
    units: int | None = None
    vgpus: int | None = None
    why: str = ""


@dataclass(frozen=True)
class Memory:
    """An amount of memory in units; note: what a bare number was taken to mean."""

    units: int
    note: str = ""


def memory_units(text: str, pool: Pool) -> Memory:
    """A stated size in memory units, rounded up. Raises ValueError for what is not understood, Missing when the pool's
    factor (or for a percentage its size) is needed and not known."""
    wanted = size(text)
    if wanted.units is not None:
        mib = wanted.units * pool.factor if pool.factor else None
        meaning = f" = {show_mib(mib)} (factor {pool.factor})" if mib is not None else ""
        return Memory(wanted.units, f"{text} was taken as {wanted.units} memory units{meaning}")
    if wanted.percent is not None:
        if pool.units is None:
            raise Missing(f"{text} is a part of the pool, whose size is not known: {pool.why}")
        return Memory(int(pool.units * wanted.percent / 100))
    if not pool.factor:
        raise Missing(f"{text} cannot be told in memory units, the pool's factor is not known: {pool.why}")
    assert wanted.mib is not None
    return Memory(units_for(wanted.mib, pool.factor))


def counts(amounts: Amounts, pool: Pool) -> dict[What, int]:
    """Amounts as the numbers that are counted. Raises as `memory_units`."""
    found = {What.NUMBER: amounts.number, What.CORES: amounts.cores}
    memory = memory_units(amounts.memory, pool).units if amounts.memory is not None else None
    whole = {What.NUMBER: found[What.NUMBER], What.MEMORY: memory, What.CORES: found[What.CORES]}
    return {what: number for what, number in whole.items() if number is not None}


def size_text(units: int, pool: Pool) -> str:
    """Memory units as a size that reads back to the same units: `200Gi`, `204809Mi`; the bare number without factor."""
    if not pool.factor:
        return str(units)
    mib = units * pool.factor
    return f"{mib // 1024}Gi" if mib % 1024 == 0 and mib else f"{mib}Mi"
