"""The newest log lines of the scheduler and of the device plugin."""

from __future__ import annotations

from vgpuctl.model import kube
from vgpuctl.model.api import KINDS
from vgpuctl.sources.cluster.connection import Connection
from vgpuctl.sources.cluster.errors import Refused
from vgpuctl.sources.cluster.listing import list_all

COMPONENTS = {"scheduler": "app=volcano-scheduler", "plugin": "name=volcano-device-plugin"}
"""Components by the pod label that upstream's manifests give them."""

_LINES, _BYTES, _PODS = 300, 1 << 18, 5


def newest(connection: Connection) -> dict[str, str]:
    """The logs by component, of a few pods each: those that are in trouble come first."""
    texts = {}
    for component, selector in COMPONENTS.items():
        pods: list[kube.Pod] = list_all(connection, KINDS["Pod"], "", {"labelSelector": selector}).items
        pods.sort(key=_restarts, reverse=True)
        parts = [_log(connection, pod, previous) for pod in pods[:_PODS] for previous in _which(pod)]
        text = "\n".join(part for part in parts if part)
        if text:
            texts[component] = text
    return texts


def _which(pod: kube.Pod) -> tuple[bool, ...]:
    return (True, False) if _restarts(pod) else (False,)


def _restarts(pod: kube.Pod) -> int:
    return sum(status.restart_count for status in pod.status.container_statuses or ())


def _log(connection: Connection, pod: kube.Pod, previous: bool) -> str:
    """The log of a pod's first container; "" where the kubelet does not give it."""
    query = {"tailLines": str(_LINES), "limitBytes": str(_BYTES)}
    if previous:
        query["previous"] = "true"
    if pod.spec.containers:
        query["container"] = pod.spec.containers[0].name
    path = KINDS["Pod"].path(pod.metadata.namespace, pod.metadata.name)
    try:
        return connection.request("GET", f"{path}/log", query).decode(errors="replace")
    except Refused as refused:
        if refused.status == 403:
            raise
        return ""
