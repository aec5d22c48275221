"""Whose an object is, by the marks that tools leave on what they keep."""

from __future__ import annotations

from typing import Any

import pytest

from vgpuctl.model.install.owner import owner


def item(managers: tuple[str, ...] = (), **metadata: Any) -> dict[str, Any]:
    fields = [{"manager": name, "operation": "Update"} for name in managers]
    return {"metadata": {"name": "x", "managedFields": fields, **metadata}}


OURS = {"app.kubernetes.io/managed-by": "vgpuctl"}


@pytest.mark.parametrize(
    ("found", "name", "elsewhere"),
    [
        (
            item(annotations={"meta.helm.sh/release-name": "gpu", "meta.helm.sh/release-namespace": "infra"}),
            "Helm release gpu in infra",
            True,
        ),
        (item(labels={"app.kubernetes.io/managed-by": "Helm"}), "Helm", True),
        (item(annotations={"argocd.argoproj.io/tracking-id": "pool:apps/DaemonSet:a/b"}), "application pool", True),
        (item(labels={"argocd.argoproj.io/instance": "pool"}), "application pool", True),
        (item(("argocd-controller",), labels={"app.kubernetes.io/instance": "pool"}), "application pool", True),
        (item(labels={"kustomize.toolkit.fluxcd.io/name": "pool"}), "Flux Kustomization pool", True),
        (item(labels={"helm.toolkit.fluxcd.io/name": "pool"}), "Flux HelmRelease pool", True),
        (
            item(ownerReferences=[{"kind": "ClusterPolicy", "name": "gpu", "controller": True}]),
            "ClusterPolicy gpu",
            True,
        ),
        (item(("kubectl-client-side-apply",)), "kubectl-client-side-apply", False),
        (item(("kubectl-create", "kubectl-edit", "kubectl-create")), "kubectl-create, kubectl-edit", False),
        (item(labels={"app.kubernetes.io/instance": "gpu"}), "somebody else", False),
        # what we export may be kept by a tool: then it is the tool's
        (item(labels={**OURS, "kustomize.toolkit.fluxcd.io/name": "pool"}), "Flux Kustomization pool", True),
    ],
)
def test_it_is_named(found: dict[str, Any], name: str, elsewhere: bool) -> None:
    whose = owner(found)
    assert whose is not None
    assert name in whose.name
    assert bool(whose.elsewhere) is elsewhere


@pytest.mark.parametrize("managers", [("vgpuctl",), ("vgpuctl", "kubectl-edit"), ()])
def test_ours_is_nobodys_else(managers: tuple[str, ...]) -> None:
    assert owner(item(managers, labels=OURS)) is None


def test_who_only_reports_a_status_owns_nothing() -> None:
    found = {"metadata": {"managedFields": [{"manager": "kube-controller-manager", "subresource": "status"}]}}
    whose = owner(found)
    assert whose is not None
    assert whose.name == "somebody else"
