"""What the pool's device configuration says that a table of use needs: the memory unit and the resource names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vgpuctl.model import kube
from vgpuctl.model.facts import Facts
from vgpuctl.model.quantity import integer
from vgpuctl.model.resource import ResourceNames

CONFIGMAP = "volcano-vgpu-device-config"
KEY = "device-config.yaml"
NAMESPACES = ("kube-system", "volcano-system")
"""Where the plugin looks for it, in this order."""


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
    maps = facts.configmaps.value
    if maps is None:
        return Names(None), (f"memory is in raw units: the device config is unknown ({facts.configmaps.reason})",)
    found = {
        item.metadata.namespace: (item.data or {}).get(KEY, "") for item in maps if item.metadata.name == CONFIGMAP
    }
    place = next((namespace for namespace in NAMESPACES if namespace in found), None)
    if place is None:
        return Names(None), (f"memory is in raw units: there is no ConfigMap {CONFIGMAP}",)
    section = _section(found[place])
    factor = section.get("gpuMemoryFactor")
    names = ResourceNames(
        **{
            field: str(section[key])
            for field, key in (
                ("number", "resourceCountName"),
                ("memory", "resourceMemoryName"),
                ("percentage", "resourceMemoryPercentageName"),
                ("cores", "resourceCoreName"),
            )
            if section.get(key)
        }
    )
    if isinstance(factor, bool) or not isinstance(factor, int) or factor < 1:
        return Names(None, names), (f"memory is in raw units: {place}/{CONFIGMAP} has no usable gpuMemoryFactor",)
    return Names(factor, names), ()


def _section(text: str) -> dict[str, Any]:
    import yaml

    try:
        content = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError:
        return {}
    section = content.get("nvidia") if isinstance(content, dict) else None
    return section if isinstance(section, dict) else {}
