"""Why a pod does not come up, in one line, from its object as the API gives it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_ON_THE_WAY = ("ContainerCreating", "PodInitializing")


@dataclass(frozen=True)
class Reason:
    """node: "" before the pod has one. text: what is in the way. hopeless: waiting alone does not help."""

    node: str
    text: str
    hopeless: bool = False

    def __str__(self) -> str:
        return f"{self.node}: {self.text}" if self.node else self.text


def is_ready(pod: Mapping[str, Any]) -> bool:
    """Running, ready, and not about to end."""
    conditions = pod.get("status", {}).get("conditions") or []
    ready = any(item.get("type") == "Ready" and item.get("status") == "True" for item in conditions)
    return ready and not pod["metadata"].get("deletionTimestamp")


def reason(pod: Mapping[str, Any]) -> Reason | None:
    """Why a pod is not ready; None when it is, when it ends, or when it is simply on its way."""
    if is_ready(pod) or pod["metadata"].get("deletionTimestamp"):
        return None
    status, node = pod.get("status", {}), str(pod.get("spec", {}).get("nodeName") or _bound_for(pod))
    if status.get("phase") == "Failed":
        return Reason(node, _said(status.get("reason") or "failed", status.get("message")), hopeless=True)
    for key in ("initContainerStatuses", "containerStatuses"):
        for container in status.get(key) or []:
            if found := _container(container, node, init=key.startswith("init")):
                return found
    for condition in status.get("conditions") or []:
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return Reason(node, _said("not scheduled", condition.get("message")))
    return None


def _container(container: Mapping[str, Any], node: str, *, init: bool) -> Reason | None:
    state, name = container.get("state") or {}, container.get("name", "")
    waiting, ended = state.get("waiting") or {}, state.get("terminated") or {}
    last = (container.get("lastState") or {}).get("terminated") or {}
    if waiting.get("reason") and waiting["reason"] not in _ON_THE_WAY:
        told = _ending(last) if last.get("message") else waiting.get("message")
        return Reason(node, _said(f"{name}: {waiting['reason']}", told), hopeless=True)
    if ended and (ended.get("exitCode") or not init):
        return Reason(node, f"{name}: {_ending(ended)}", hopeless=True)
    return None


def _ending(ended: Mapping[str, Any]) -> str:
    return _said(f"exit code {ended.get('exitCode')}", ended.get("message") or ended.get("reason"))


def _said(what: Any, more: Any) -> str:
    line = " ".join(str(more or "").split())
    return f"{what}: {line}" if line else str(what)


def _bound_for(pod: Mapping[str, Any]) -> str:
    """The node that a DaemonSet's pod is for, before it is bound: its controller writes it as an affinity."""
    affinity = (pod.get("spec", {}).get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in required.get("nodeSelectorTerms") or []:
        for field in term.get("matchFields") or []:
            if field.get("key") == "metadata.name" and field.get("values"):
                return str(field["values"][0])
    return ""


def told(reasons: Iterable[Reason], most: int = 3) -> str:
    """Reasons on one line, the same ones of several nodes together: `gpu-1, gpu-2: place: …`."""
    nodes: dict[str, list[str]] = {}
    for found in reasons:
        nodes.setdefault(found.text, []).append(found.node)
    lines = [_named(names, text) for text, names in nodes.items()]
    return "; ".join(lines[:most]) + (f"; and {len(lines) - most} more" if len(lines) > most else "")


def _named(names: list[str], text: str) -> str:
    known = [name for name in names if name]
    shown = ", ".join(known[:3]) + (f" and {len(known) - 3} more nodes" if len(known) > 3 else "")
    return f"{shown}: {text}" if known else text


def events(items: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Warnings, the newest first, each message once."""
    newest = sorted(items, key=lambda item: str(item.get("lastTimestamp") or item.get("eventTime") or ""), reverse=True)
    yield from dict.fromkeys(_said(item.get("reason"), item.get("message")) for item in newest)
