"""A cluster in memory for tests of plans and of apply: it keeps what it is given, and counts quotas at once.

It shares no code with sources.cluster; what a real API server does is tested in tests/cluster.
"""

from __future__ import annotations

import copy
from typing import Any

import msgspec

from vgpuctl.model import kube
from vgpuctl.model.change import Change, How, Target
from vgpuctl.model.facts import Part
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.model.reading import Reading, known, missing

_TYPES = {
    Part.QUOTAS: ("ResourceQuota", kube.ResourceQuota),
    Part.QUEUES: ("Queue", kube.Queue),
    Part.NAMESPACES: ("Namespace", kube.Namespace),
    Part.PRIORITIES: ("PriorityClass", kube.PriorityClass),
    Part.PODS: ("Pod", kube.Pod),
    Part.NODES: ("Node", kube.Node),
    Part.CONFIGMAPS: ("ConfigMap", kube.ConfigMap),
    Part.DEPLOYMENTS: ("Deployment", kube.Workload),
}


def refused(status: int, what: str) -> Problem:
    problem = Problem(what, exit_code=Exit.FINDINGS)
    problem.status = status
    return problem


class MemoryCluster:
    """objects: by (kind, namespace, name). fail: a text that makes a write of that target fail. denied: parts that
    cannot be read. counts: quotas get their status. sent: the changes that came, dry runs included."""

    name = "memory"
    scope = ""

    def __init__(self, *objects: dict[str, Any]) -> None:
        self.objects_: dict[tuple[str, str, str], dict[str, Any]] = {}
        self.sent: list[tuple[Change, bool]] = []
        self.created: list[tuple[Target, dict[str, Any]]] = []
        self.fail: dict[str, Problem] = {}
        self.denied: set[Part] = set()
        self.counts = True
        for item in objects:
            metadata = item["metadata"]
            self.objects_[(item["kind"], metadata.get("namespace", ""), metadata["name"])] = copy.deepcopy(item)

    @property
    def parts(self) -> frozenset[Part]:
        return frozenset(_TYPES)

    def now(self) -> float:
        return 0.0

    def read(self, part: Part) -> Reading[Any]:
        if part in self.denied:
            return missing(f"no permission to list {part.value}", "memory", denied=True)
        kind, type_ = _TYPES[part]
        return known(tuple(msgspec.convert(item, type_) for item in self.objects(kind)), "memory")

    def objects(self, kind: str, *, namespace: str = "", query: dict[str, str] | None = None) -> list[dict[str, Any]]:
        wanted = (query or {}).get("fieldSelector", "").removeprefix("metadata.name=")
        return [item for (found, _, name), item in self.objects_.items() if found == kind and wanted in ("", name)]

    def get(self, target: Target) -> dict[str, Any] | None:
        return self.objects_.get((target.kind, target.namespace, target.name))

    def create(self, target: Target, body: dict[str, Any], *, dry_run: bool = False) -> dict[str, Any]:
        if target.kind == "SelfSubjectReview":
            return {"status": {"userInfo": {"username": "ana"}}}
        self._maybe_fail(target)
        self.created.append((target, body))
        if target.name:
            self.objects_[(target.kind, target.namespace, target.name)] = {"kind": target.kind, **copy.deepcopy(body)}
        return body

    def write(self, change: Change, *, dry_run: bool = False, force: bool = False) -> dict[str, Any]:
        self._maybe_fail(change.target)
        self.sent.append((change, dry_run))
        key = (change.target.kind, change.target.namespace, change.target.name)
        if dry_run:
            return {}
        if change.how is How.DELETE:
            self.objects_.pop(key, None)
            return {}
        if change.how is How.CREATE and key in self.objects_:
            raise refused(409, "it exists")
        if change.how is How.PATCH:
            return self._patch(key, change)
        item = {"kind": change.target.kind, **copy.deepcopy(change.after)}
        if change.target.kind == "ResourceQuota" and self.counts:
            item["status"] = {"hard": dict(item["spec"]["hard"]), "used": {}}
        self.objects_[key] = item
        return item

    def _patch(self, key: tuple[str, str, str], change: Change) -> dict[str, Any]:
        item = copy.deepcopy(self.objects_[key])
        for operation in change.after:
            *parents, last = (step.replace("~1", "/").replace("~0", "~") for step in operation["path"].split("/")[1:])
            place = item
            for step in parents:
                place = place[step]
            if operation["op"] == "test" and place.get(last) != operation["value"]:
                raise refused(422, "the test failed")
            if operation["op"] == "remove":
                del place[last]
            if operation["op"] in ("add", "replace"):
                place[last] = operation["value"]
        self.objects_[key] = item
        return item

    def _maybe_fail(self, target: Target) -> None:
        problem = self.fail.get(str(target))
        if problem:
            raise problem
