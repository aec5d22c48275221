"""The objects that vgpuctl reads or writes, as Kubernetes' API serves them; the same names are those of bundles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

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
    Part.NODES: (KINDS["Node"],),
    Part.PODS: (KINDS["Pod"],),
    Part.NAMESPACES: (KINDS["Namespace"],),
    Part.QUOTAS: (KINDS["ResourceQuota"],),
    Part.PRIORITIES: (KINDS["PriorityClass"],),
    Part.QUEUES: (KINDS["Queue"],),
    Part.PODGROUPS: (KINDS["PodGroup"],),
    Part.CONFIGMAPS: (KINDS["ConfigMap"],),
    Part.DAEMONSETS: (KINDS["DaemonSet"],),
    Part.DEPLOYMENTS: (KINDS["Deployment"],),
    Part.EVENTS: (KINDS["Event"],),
    Part.RUNTIMECLASSES: (KINDS["RuntimeClass"],),
    Part.WEBHOOKS: (KINDS["ValidatingWebhookConfiguration"], KINDS["MutatingWebhookConfiguration"]),
}
"""The parts of the facts that are objects, and of which kinds; the kinds of one part have one type."""

_JOBS, _FLOW = "batch.volcano.sh/v1alpha1", "flow.volcano.sh/v1alpha1"
TEMPLATES = (
    KINDS["Deployment"],
    KINDS["DaemonSet"],
    Resource("StatefulSet", "statefulsets", dict, "apps/v1"),
    Resource("ReplicaSet", "replicasets", dict, "apps/v1"),
    Resource("Job", "jobs", dict, "batch/v1"),
    Resource("CronJob", "cronjobs", dict, "batch/v1", owner="Kubernetes 1.21"),
    Resource("CronJob", "cronjobs", dict, "batch/v1beta1", owner="a Kubernetes before 1.25"),
    Resource("Job", "jobs", dict, _JOBS, owner="Volcano"),
    Resource("CronJob", "cronjobs", dict, _JOBS, owner="Volcano"),
    Resource("JobTemplate", "jobtemplates", dict, _FLOW, owner="Volcano"),
)
"""Kinds from which pods are made; read as they are, since templates stand at different places in them."""
CAPS = (KINDS["ResourceQuota"], Resource("LimitRange", "limitranges", dict), KINDS["Queue"])
"""Kinds that limit what pods may ask for."""
