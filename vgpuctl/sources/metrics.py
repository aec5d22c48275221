"""What upstream's monitor on a node answers at /metrics (port 9394), read into a Scrape.

Two families of names are known: the Volcano plugin's own and those of HAMi 2.9 and later. A figure that cannot be
true (not a number, negative, more than the card has) is left out with a reason; lines that are no metrics are skipped.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from vgpuctl.model.usage.sample import UUID_LENGTH, CardSample, Scrape, VgpuSample

PORT = 9394
PATH = "/metrics"
_LARGEST = 1 << 50  # bytes; no card comes near, wrapped counters lie far above
_NEVER = 10 * 365 * 86400  # a container without a launch counts from 1970


@dataclass(frozen=True)
class _Metric:
    """Where a metric goes: a field of the card's or of the vGPU's sample, and the factor to its unit."""

    of_card: bool
    field: str
    factor: float = 1.0


_METRICS = {
    # the Volcano plugin's monitor, and HAMi up to 2.8
    "HostGPUMemoryUsage": _Metric(True, "memory_used"),
    "HostCoreUtilization": _Metric(True, "busy", 0.01),
    "vGPU_device_memory_usage_in_bytes": _Metric(False, "memory_used"),
    "vGPU_device_memory_limit_in_bytes": _Metric(False, "memory_limit"),
    "Device_utilization_desc_of_container": _Metric(False, "cores_used", 0.01),
    "Device_last_kernel_of_container": _Metric(False, "last_kernel"),
    # HAMi 2.9 and later
    "hami_host_gpu_memory_used_bytes": _Metric(True, "memory_used"),
    "hami_host_gpu_utilization_ratio": _Metric(True, "busy", 0.01),
    "hami_vgpu_memory_used_bytes": _Metric(False, "memory_used"),
    "hami_vgpu_memory_limit_bytes": _Metric(False, "memory_limit"),
    "hami_container_device_utilization_ratio": _Metric(False, "cores_used", 0.01),
    "hami_container_last_kernel_elapsed_seconds": _Metric(False, "last_kernel"),
}

_LABELS = {
    "namespace": ("podnamespace", "namespace"),
    "pod": ("podname", "pod"),
    "container": ("ctrname", "container"),
    "uuid": ("deviceuuid", "device_uuid"),
}
"""What a label means → its names in the two families."""


def scrape(text: str, node: str, at: float) -> Scrape:
    """What a monitor's answer says of its node, read at Unix time `at`.

    An answer without one known metric gives a Scrape with that reason.
    """
    cards: dict[str, dict[str, float]] = {}
    vgpus: dict[tuple[str, ...], dict[str, float]] = {}
    broken: dict[tuple[str, ...], str] = {}
    found = False
    for name, labels, value in _samples(text):
        metric = _METRICS[name]
        found = True
        named = {meaning: next((labels[n] for n in names if n in labels), "") for meaning, names in _LABELS.items()}
        uuid = named["uuid"][:UUID_LENGTH]
        place = (named["namespace"], named["pod"], named["container"], uuid)
        if not uuid or (not metric.of_card and not named["pod"]):
            continue
        if not math.isfinite(value) or value < 0 or value >= _LARGEST:
            broken[place] = f"the monitor's {name} is {value:g}"
            continue
        fields = cards.setdefault(uuid, {}) if metric.of_card else vgpus.setdefault(place, {})
        fields[metric.field] = value * metric.factor
    return Scrape(
        node=node,
        at=at,
        cards=tuple(_card(uuid, fields) for uuid, fields in cards.items()),
        vgpus=tuple(
            _vgpu(place, vgpus.get(place, {}), broken.get(place, ""), at) for place in vgpus | broken if place[1]
        ),
        reason="" if found else "the monitor's answer holds no metric that is known here",
    )


def _samples(text: str) -> Iterator[tuple[str, dict[str, str], float]]:
    """The samples of known metrics; a line that does not parse is skipped, its neighbours are not."""
    from prometheus_client.parser import text_string_to_metric_families

    for line in text.split("\n"):
        name = line.partition("{")[0].partition(" ")[0]
        if name not in _METRICS:
            continue
        try:
            for family in text_string_to_metric_families(line.rstrip("\r") + "\n"):
                for sample in family.samples:
                    yield sample.name, sample.labels, float(sample.value)
        except (ValueError, KeyError, IndexError, TypeError):
            continue


def _card(uuid: str, fields: dict[str, float]) -> CardSample:
    used = fields.get("memory_used")
    busy = fields.get("busy")
    return CardSample(uuid, None if used is None else int(used), None if busy is None else min(busy, 1.0))


def _vgpu(place: tuple[str, ...], fields: dict[str, float], reason: str, at: float) -> VgpuSample:
    namespace, pod, container, uuid = place
    used, limit = fields.get("memory_used"), fields.get("memory_limit")
    cores, ago = fields.get("cores_used"), fields.get("last_kernel")
    if cores is not None and cores > 1.0:
        # Slots of processes that are gone still count there.
        cores, reason = 1.0, reason or f"the monitor's utilisation is {cores:.0%} of one card"
    return VgpuSample(
        namespace=namespace,
        pod=pod,
        container=container,
        uuid=uuid,
        memory_used=None if used is None else int(used),
        memory_limit=int(limit) if limit else None,
        cores_used=cores,
        last_kernel=None if ago is None else 0.0 if ago > _NEVER else at - ago,
        reason=reason,
    )
