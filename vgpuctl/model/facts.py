"""What is known of a host, a node, a pool: only Readings.

`Facts` has one field per part; a task loads the parts that it needs, the others stay missing with the reason
"not loaded". A part without permission is a missing Reading too, so the rest still works.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import Enum
from typing import Any

from vgpuctl.model import kube
from vgpuctl.model.card import Card, Driver
from vgpuctl.model.host import Host
from vgpuctl.model.reading import Reading, missing
from vgpuctl.model.region import RegionFile
from vgpuctl.model.shim import Shim

_NOT_LOADED = "not loaded"


class Part(str, Enum):
    """The parts of the facts; each is the name of a field of Facts."""

    HOST = "host"
    DRIVER = "driver"
    CARDS = "cards"
    REGIONS = "regions"
    SHIM = "shim"
    VERSION = "version"
    ACCESS = "access"
    NODES = "nodes"
    PODS = "pods"
    NAMESPACES = "namespaces"
    QUOTAS = "quotas"
    PRIORITIES = "priorities"
    QUEUES = "queues"
    PODGROUPS = "podgroups"
    CONFIGMAPS = "configmaps"
    DAEMONSETS = "daemonsets"
    DEPLOYMENTS = "deployments"
    EVENTS = "events"
    RUNTIMECLASSES = "runtimeclasses"
    WEBHOOKS = "webhooks"
    LOGS = "logs"
    METRICS = "metrics"


@dataclass(frozen=True)
class Facts:
    """host, driver, cards, regions and shim: this machine. The others: the cluster, each a list of objects.

    version: the API server's gitVersion. access: by the id of a Right, whether we have it. logs: by component
    ("scheduler", "plugin"), the newest lines. now: when the facts were read, Unix seconds. scope: what pods, quotas and
    PodGroups were narrowed to, in words ("namespace team-a"), "" when they are the whole cluster's.
    """

    source: str = ""
    now: float = 0.0
    scope: str = ""
    host: Reading[Host] = missing(_NOT_LOADED)
    driver: Reading[Driver] = missing(_NOT_LOADED)
    cards: Reading[tuple[Card, ...]] = missing(_NOT_LOADED)
    regions: Reading[tuple[RegionFile, ...]] = missing(_NOT_LOADED)
    shim: Reading[Shim] = missing(_NOT_LOADED)
    version: Reading[str] = missing(_NOT_LOADED)
    access: Reading[Mapping[str, bool]] = missing(_NOT_LOADED)
    nodes: Reading[tuple[kube.Node, ...]] = missing(_NOT_LOADED)
    pods: Reading[tuple[kube.Pod, ...]] = missing(_NOT_LOADED)
    namespaces: Reading[tuple[kube.Namespace, ...]] = missing(_NOT_LOADED)
    quotas: Reading[tuple[kube.ResourceQuota, ...]] = missing(_NOT_LOADED)
    priorities: Reading[tuple[kube.PriorityClass, ...]] = missing(_NOT_LOADED)
    queues: Reading[tuple[kube.Queue, ...]] = missing(_NOT_LOADED)
    podgroups: Reading[tuple[kube.PodGroup, ...]] = missing(_NOT_LOADED)
    configmaps: Reading[tuple[kube.ConfigMap, ...]] = missing(_NOT_LOADED)
    daemonsets: Reading[tuple[kube.Workload, ...]] = missing(_NOT_LOADED)
    deployments: Reading[tuple[kube.Workload, ...]] = missing(_NOT_LOADED)
    events: Reading[tuple[kube.Event, ...]] = missing(_NOT_LOADED)
    runtimeclasses: Reading[tuple[kube.RuntimeClass, ...]] = missing(_NOT_LOADED)
    webhooks: Reading[tuple[kube.WebhookConfiguration, ...]] = missing(_NOT_LOADED)
    logs: Reading[dict[str, str]] = missing(_NOT_LOADED)
    metrics: Reading[Any] = missing(_NOT_LOADED)

    def part(self, part: Part) -> Reading[Any]:
        reading: Reading[Any] = getattr(self, part.value)
        return reading

    def with_part(self, part: Part, reading: Reading[Any]) -> Facts:
        """The same facts with one part set."""
        values: dict[str, Any] = {part.value: reading}
        return replace(self, **values)


assert {part.value for part in Part} <= {field.name for field in fields(Facts)}
