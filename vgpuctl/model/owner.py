"""Who keeps an object as it is: vgpuctl, a package manager that would undo what others change, or people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vgpuctl.model.quota.team import MANAGED_BY, MANAGER

_RELEASE, _RELEASE_SPACE = "meta.helm.sh/release-name", "meta.helm.sh/release-namespace"
_ARGO, _ARGO_LABEL = "argocd.argoproj.io/tracking-id", "argocd.argoproj.io/instance"
_FLUX = "kustomize.toolkit.fluxcd.io/name"


@dataclass(frozen=True)
class Owner:
    """tool: `vgpuctl`, `Helm`, `Argo CD`, `Flux`, or "" for people and unknown tools. name: of the release or the
    application there."""

    tool: str = ""
    name: str = ""

    @property
    def ours(self) -> bool:
        return self.tool == MANAGER

    @property
    def keeps(self) -> bool:
        """It would undo what another one changes, sooner or later."""
        return bool(self.tool) and not self.ours

    def __str__(self) -> str:
        return f"{self.tool} ({self.name})" if self.name else self.tool


def owner(item: Mapping[str, Any] | None) -> Owner:
    """The owner of an object as the API gives it, by its labels and annotations."""
    metadata = (item or {}).get("metadata") or {}
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    release = annotations.get(_RELEASE)
    if release:
        space = annotations.get(_RELEASE_SPACE, "")
        return Owner("Helm", f"release {space}/{release}" if space else f"release {release}")
    if labels.get(MANAGED_BY) == "Helm":
        return Owner("Helm")
    if _ARGO in annotations:
        return Owner("Argo CD", f"application {annotations[_ARGO].partition(':')[0]}")
    if _ARGO_LABEL in labels:
        return Owner("Argo CD", f"application {labels[_ARGO_LABEL]}")
    if _FLUX in labels:
        return Owner("Flux", f"kustomization {labels[_FLUX]}")
    return Owner(MANAGER) if labels.get(MANAGED_BY) == MANAGER else Owner()
