"""What the pool's device configuration says that a table of use needs: the memory unit and the resource names."""

from __future__ import annotations

from dataclasses import dataclass

from vgpuctl.model import configmaps, kube, pool
from vgpuctl.model.facts import Facts
from vgpuctl.model.quantity import integer
from vgpuctl.model.reading import Missing
from vgpuctl.model.resource import ResourceNames


@dataclass(frozen=True)
class Names:
    """factor: MiB per memory unit, None when unknown. resources: the names in force."""

    factor: int | None
    resources: ResourceNames = ResourceNames()

    def bytes(self, units: int) -> int | None:
        """Memory units as bytes."""
        return None if self.factor is None else units * self.factor << 20

    def asked(self, container: kube.Container) -> int:
        """How many vGPUs a container asks for."""
        limits = container.resources.limits
        amount = limits.get(self.resources.number) if limits else None
        if isinstance(amount, str) and amount.isdecimal():  # nearly always; thousands of pods are read
            return int(amount)
        return integer(amount) or 0 if amount is not None else 0


def names_of(facts: Facts) -> tuple[Names, tuple[str, ...]]:
    """The names, and why the unit is unknown, if it is."""
    raw = "memory is in raw units:"
    try:
        config = pool.plugin_config(facts)
    except Missing as missing:
        return Names(None), (f"{raw} the device config is unknown ({missing.reason})",)
    if config is None:
        return Names(None), (f"{raw} there is no ConfigMap {configmaps.DEVICE}",)
    units = pool.units_in(config.text)
    unusable = () if units.factor else (f"{raw} {pool.full_name(config.map.metadata)} has no usable gpuMemoryFactor",)
    return Names(units.factor, units.names), unusable
