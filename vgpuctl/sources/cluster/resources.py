"""Where the parts of the facts, and the objects that we write, are in Kubernetes' API."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import quote

import msgspec

from vgpuctl.model import kube
from vgpuctl.model.facts import Part


@dataclass(frozen=True)
class Resource:
    """A kind as the API server serves it. owner: what is not installed when it is unknown there."""

    kind: str
    plural: str
    type: Any
    api_version: str = "v1"
    namespaced: bool = True
    owner: str = "Kubernetes"

    @property
    def group(self) -> str:
        """The API group; "" for the core."""
        return self.api_version.rpartition("/")[0]

    def path(self, namespace: str = "", name: str = "") -> str:
        """The path of the collection (of one namespace, where it is namespaced), or of one object in it."""
        base = f"/apis/{self.api_version}" if self.group else f"/api/{self.api_version}"
        if self.namespaced and namespace:
            base += f"/namespaces/{quote(namespace, safe='')}"
        return f"{base}/{self.plural}" + (f"/{quote(name, safe='')}" if name else "")


_VOLCANO = "scheduling.volcano.sh/v1beta1"
_ADMISSION = "admissionregistration.k8s.io/v1"

RESOURCES = (
    Resource("Node", "nodes", kube.Node, namespaced=False),
    Resource("Pod", "pods", kube.Pod),
    Resource("Namespace", "namespaces", kube.Namespace, namespaced=False),
    Resource("ResourceQuota", "resourcequotas", kube.ResourceQuota),
    Resource("ConfigMap", "configmaps", kube.ConfigMap),
    Resource("Event", "events", kube.Event),
    Resource("DaemonSet", "daemonsets", kube.Workload, "apps/v1"),
    Resource("Deployment", "deployments", kube.Workload, "apps/v1"),
    Resource("PriorityClass", "priorityclasses", kube.PriorityClass, "scheduling.k8s.io/v1", False),
    Resource("RuntimeClass", "runtimeclasses", kube.RuntimeClass, "node.k8s.io/v1", False),
    Resource("ValidatingWebhookConfiguration", "validatingwebhookconfigurations", kube.WebhookConfiguration,
             _ADMISSION, False),
    Resource("MutatingWebhookConfiguration", "mutatingwebhookconfigurations", kube.WebhookConfiguration,
             _ADMISSION, False),
    Resource("Queue", "queues", kube.Queue, _VOLCANO, False, "Volcano"),
    Resource("PodGroup", "podgroups", kube.PodGroup, _VOLCANO, True, "Volcano"),
)  # fmt: skip

KINDS = {resource.kind: resource for resource in RESOURCES}

PARTS = {
    Part.NODES: "Node",
    Part.PODS: "Pod",
    Part.QUOTAS: "ResourceQuota",
    Part.PRIORITIES: "PriorityClass",
    Part.QUEUES: "Queue",
    Part.PODGROUPS: "PodGroup",
    Part.DAEMONSETS: "DaemonSet",
    Part.DEPLOYMENTS: "Deployment",
    Part.RUNTIMECLASSES: "RuntimeClass",
    Part.NAMESPACES: "Namespace",
    Part.EVENTS: "Event",
}
"""The parts that are one list; ConfigMaps, webhooks and logs need more than one request."""


class ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    continue_: str = msgspec.field(name="continue", default="")
    resource_version: str = ""


@cache
def page_type(item: Any) -> Any:
    """The type of a page of a list of `item`."""
    return msgspec.defstruct(
        f"{item.__name__}Page",
        [("items", list[item] | None, None), ("metadata", ListMeta, ListMeta())],
        frozen=True,
        gc=False,
    )


@cache
def decoder(item: Any) -> msgspec.json.Decoder[Any]:
    """A reusable decoder; building one costs more than using it."""
    return msgspec.json.Decoder(item)
