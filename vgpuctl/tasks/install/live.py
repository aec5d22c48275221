"""The cluster as these tasks use it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from vgpuctl.model.change import Change, How, Target
from vgpuctl.model.install.manifests import target
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.sources.source import Source, Writer

Object = dict[str, Any]


class Live(Source, Writer, Protocol):
    """A live cluster."""

    def objects(self, kind: str, *, namespace: str = "", query: dict[str, str] | None = None) -> list[Object]: ...

    def may(self, verb: str, target: Target) -> tuple[str, bool]: ...


def read(cluster: Live, objects: Iterable[Object]) -> dict[Target, Object | None]:
    """The live objects of these names. Raises Problem."""
    return {one: cluster.get(one) for one in map(target, objects)}


def find(cluster: Live, one: Target) -> Object | None:
    """A live object; None too where the cluster does not know its kind (any more). Raises Problem."""
    try:
        return cluster.get(one)
    except Problem as problem:
        if problem.status != 404:
            raise
        return None


def selected_pods(cluster: Live, workload: Object) -> list[Object]:
    """The pods that a DaemonSet's or Deployment's selector names. Raises Problem."""
    labels = workload["spec"]["selector"].get("matchLabels") or {}
    query = {"labelSelector": ",".join(f"{key}={value}" for key, value in labels.items())}
    return cluster.objects("Pod", namespace=workload["metadata"].get("namespace", ""), query=query)


_VERBS = {
    How.APPLY: ("patch",),
    How.CREATE: ("create",),
    How.PATCH: ("patch",),
    How.MERGE: ("patch",),
    How.DELETE: ("delete",),
}


def check_rights(cluster: Live, changes: Iterable[Change]) -> None:
    """Raises Problem that names every right that the changes need and the user lacks; nothing is tried out."""
    asked: dict[tuple[str, Target], None] = {}
    for change in changes:
        verbs = _VERBS[change.how] + (("create",) if change.how is How.APPLY and change.before is None else ())
        one = change.target
        if change.routine or change.target.kind == "ConfigMap":  # many of a kind: one answer stands for all
            one = Target(one.kind, "", one.namespace, one.api_version)
        asked |= dict.fromkeys((verb, one) for verb in verbs)
    lacking: dict[str, dict[str, None]] = {}
    for verb, one in asked:
        what, allowed = cluster.may(verb, one)
        if not allowed:
            lacking.setdefault(what, {})[verb] = None
    if lacking:
        told = ", ".join(f"{' or '.join(verbs)} {what}" for what, verbs in lacking.items())
        raise Problem(
            "no permission: nothing was changed",
            f"you may not {told}",
            "ask an administrator for these rights, or name another user or --context",
            Exit.UNKNOWN,
        )


_MONITORS = ("PodMonitor", "ServiceMonitor")


def monitors(cluster: Live) -> str:
    """The kind by which a Prometheus operator in this cluster can find monitors, "" when there is none."""
    for kind in _MONITORS:
        try:
            cluster.may("get", Target(kind, "", "default", "monitoring.coreos.com/v1"))
        except Problem as problem:
            if problem.status != 404:
                raise
            continue
        return kind
    return ""
