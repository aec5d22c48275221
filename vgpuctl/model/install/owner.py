"""Whose an object is: ours, that of a tool which would undo a change of it, or that of people with kubectl."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from vgpuctl.model.quota.team import MANAGED_BY, MANAGER


@dataclass(frozen=True)
class Owner:
    """name: in words. elsewhere: where the object is really written, so that a change of it here would be undone or
    would stand in the tool's way; "" when nowhere."""

    name: str
    elsewhere: str = ""


_Found = Callable[[Mapping[str, str], Mapping[str, str], Mapping[str, Any]], Owner | None]


def _helm(labels: Mapping[str, str], annotations: Mapping[str, str], metadata: Mapping[str, Any]) -> Owner | None:
    release = annotations.get("meta.helm.sh/release-name", "")
    if not release and labels.get(MANAGED_BY) != "Helm":
        return None
    space = annotations.get("meta.helm.sh/release-namespace", "")
    name = f"Helm release {release}" + (f" in {space}" if space else "") if release else "Helm"
    return Owner(name, "the values of that release" if release else "the chart's values")


def _argo(labels: Mapping[str, str], annotations: Mapping[str, str], metadata: Mapping[str, Any]) -> Owner | None:
    tracking = annotations.get("argocd.argoproj.io/tracking-id", "")
    application = tracking.partition(":")[0] or labels.get("argocd.argoproj.io/instance", "")
    if not application and any(manager.startswith("argocd") for manager in managers(metadata)):
        application = labels.get("app.kubernetes.io/instance", "?")
    return Owner(f"Argo CD application {application}", "the repository that it follows") if application else None


def _flux(labels: Mapping[str, str], annotations: Mapping[str, str], metadata: Mapping[str, Any]) -> Owner | None:
    for group, what in (("kustomize", "Kustomization"), ("helm", "HelmRelease")):
        name = labels.get(f"{group}.toolkit.fluxcd.io/name", "")
        if name:
            return Owner(f"Flux {what} {name}", "the repository that it follows")
    return None


def _controller(labels: Mapping[str, str], annotations: Mapping[str, str], metadata: Mapping[str, Any]) -> Owner | None:
    for reference in metadata.get("ownerReferences") or []:
        if reference.get("controller"):
            name = f"{reference.get('kind')} {reference.get('name')}"
            return Owner(name, f"that {reference.get('kind')}")
    return None


_SIGNS: tuple[_Found, ...] = (_helm, _argo, _flux, _controller)
"""Argo CD labels what it renders from charts too, but without Helm's annotations."""


def owner(item: Mapping[str, Any]) -> Owner | None:
    """Whose a live object is; None when it is ours alone."""
    metadata = item.get("metadata") or {}
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    found = next((one for sign in _SIGNS if (one := sign(labels, annotations, metadata))), None)
    if found or labels.get(MANAGED_BY) == MANAGER:
        return found
    others = managers(metadata)
    return Owner(", ".join(others) or "somebody else")


def managers(metadata: Mapping[str, Any]) -> list[str]:
    """Who wrote fields of an object, controllers that only report its status left out."""
    found = [
        str(entry.get("manager"))
        for entry in metadata.get("managedFields") or []
        if entry.get("manager") and not entry.get("subresource")
    ]
    return list(dict.fromkeys(found))
