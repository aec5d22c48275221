"""Restarts what reads its configuration once, and watches it come up."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

from vgpuctl.model.change import Change, How, Line, Target
from vgpuctl.sources.source import Objects
from vgpuctl.tasks.apply import Wait

RESTARTED: Final = "vgpuctl.dev/restarted"
"""Annotation of a pod template: a new value makes its pods anew."""
_APPS: Final = "apps/v1"
_SHOWN: Final = 3


def restart(workload: Mapping[str, Any], now: float, why: str) -> Change:
    """Makes the pods of a DaemonSet or Deployment anew, as its strategy does it. workload: as the API gives it, with
    its kind. now: Unix seconds."""
    metadata, template = workload["metadata"], workload["spec"]["template"]
    annotations = (template.get("metadata") or {}).get("annotations") or {}
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
    body = {"spec": {"template": {"metadata": {"annotations": {RESTARTED: moment}}}}}
    lines = (Line(RESTARTED, annotations.get(RESTARTED), moment),)
    target = Target(workload["kind"], metadata["name"], metadata["namespace"], _APPS)
    return Change(target, How.MERGE, body, workload, lines, why=why)


def replace_pod(pod: Mapping[str, Any], why: str) -> Change:
    """Deletes one pod, which its controller makes anew."""
    metadata = pod["metadata"]
    node = str(pod.get("spec", {}).get("nodeName", ""))
    lines = (Line(f"plugin pod on {node}", metadata["name"], "a new one"),)
    return Change(Target("Pod", metadata["name"], metadata["namespace"]), How.DELETE, None, dict(pod), lines, why=why)


def rolled_out(cluster: Objects, target: Target) -> Wait:
    """Until every pod of a DaemonSet or Deployment is of its newest template and ready."""
    return Wait(
        f"{target} runs with it everywhere",
        lambda: _done(cluster.get(target) or {}),
        lambda: "; ".join(hindrances(cluster, target)),
    )


def _done(workload: Mapping[str, Any]) -> bool:
    metadata, status = workload.get("metadata") or {}, workload.get("status") or {}
    if status.get("observedGeneration", 0) < metadata.get("generation", 0):
        return False
    if workload.get("kind") == "DaemonSet":
        wanted = status.get("desiredNumberScheduled", 0)
        return bool(status.get("updatedNumberScheduled", 0) == status.get("numberReady", 0) == wanted)
    wanted = (workload.get("spec") or {}).get("replicas", 1)
    return bool(
        status.get("updatedReplicas", 0) == status.get("replicas", 0) == status.get("readyReplicas", 0) == wanted
    )


def hindrances(cluster: Objects, target: Target) -> list[str]:
    """Why pods of a DaemonSet or Deployment do not come up, a few of them in words."""
    workload = cluster.get(target) or {}
    labels = ((workload.get("spec") or {}).get("selector") or {}).get("matchLabels") or {}
    query = {"labelSelector": ",".join(f"{key}={value}" for key, value in labels.items())}
    pods = cluster.objects("Pod", namespace=target.namespace, query=query) if labels else []
    told = [reason for pod in pods if (reason := trouble(pod))]
    if not told:
        told = [f"{target}: {message}" for message in _refused(cluster, target)]
    return told[:_SHOWN] + ([f"and {len(told) - _SHOWN} more pods"] if len(told) > _SHOWN else [])


def trouble(pod: Mapping[str, Any]) -> str:
    """Why a pod does not run, "" when it does."""
    metadata, status = pod.get("metadata") or {}, pod.get("status") or {}
    name = f"pod {metadata.get('name')} on {(pod.get('spec') or {}).get('nodeName') or 'no node'}"
    for one in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        waiting = (one.get("state") or {}).get("waiting") or {}
        ended = (one.get("lastState") or {}).get("terminated") or (one.get("state") or {}).get("terminated") or {}
        if waiting and waiting.get("reason") not in ("PodInitializing", "ContainerCreating"):
            words = (waiting.get("reason"), ended.get("message") or waiting.get("message"))
            return f"{name}: " + ": ".join(filter(None, words))
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return f"{name}: {condition.get('message') or condition.get('reason')}"
    return "" if ready(pod) else f"{name}: {status.get('phase', 'not started')}, not ready"


def ready(pod: Mapping[str, Any]) -> bool:
    """A pod that serves, and is not being deleted."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return not (pod.get("metadata") or {}).get("deletionTimestamp") and any(
        one.get("type") == "Ready" and one.get("status") == "True" for one in conditions
    )


def _refused(cluster: Objects, target: Target) -> Iterator[str]:
    """What its controller was told when it made pods: by quotas, webhooks, Pod Security."""
    query = {"fieldSelector": f"involvedObject.name={target.name},reason=FailedCreate"}
    events = cluster.objects("Event", namespace=target.namespace, query=query)
    yield from dict.fromkeys(str(event.get("message")) for event in events if event.get("message"))
