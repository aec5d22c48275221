"""Writes: one Change at a time, and what the API server says of our rights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from vgpuctl.model.api import KINDS, Resource
from vgpuctl.model.change import Change, How, Target, changed_meanwhile
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.sources.cluster.connection import Connection
from vgpuctl.sources.cluster.errors import Refused

MANAGER = "vgpuctl"
_APPLY, _JSON_PATCH, _MERGE = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
)
_DRY = {"dryRun": "All"}
_REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


def get(connection: Connection, target: Target) -> dict[str, Any] | None:
    """An object as raw JSON; None when it does not exist. Raises Problem (404: its kind is not served)."""
    try:
        resource = _resource(connection, target)
        return _json(connection.request("GET", resource.path(target.namespace, target.name)))
    except Refused as refused:
        if refused.status == 404:
            return None
        raise


def carry_out(connection: Connection, change: Change, *, dry_run: bool = False, force: bool = False) -> dict[str, Any]:
    """Carries out a change on the API server and gives the object afterwards ({} when it is gone).

    dry_run: the API server checks and answers, but keeps nothing. force: takes fields over from other managers.
    Raises Problem: a conflict, an invalid or refused object (exit 1), no permission or no answer (exit 3).
    """
    target = change.target
    resource = _resource(connection, target)
    path = resource.path(target.namespace, target.name)
    query = dict(_DRY) if dry_run else {}
    if change.how is How.APPLY:
        body = {"apiVersion": resource.api_version, "kind": resource.kind, **change.after}
        query |= {"fieldManager": MANAGER, "force": "true" if force else "false"}
        if change.resource_version:
            body["metadata"] = {**body["metadata"], "resourceVersion": change.resource_version}
        return _guarded(connection, change, 409, lambda: _send(connection, "PATCH", path, query, body, _APPLY))
    if change.how is How.CREATE:
        return create(connection, target, change.after, dry_run=dry_run)
    query["fieldManager"] = MANAGER
    if change.how is How.MERGE:
        return _send(connection, "PATCH", path, query, change.after, _MERGE)
    if change.how is How.PATCH:
        return _patch(connection, change, path, query)
    if change.how is How.STATUS:
        return _send(connection, "PATCH", f"{path}/status", query, change.after, _MERGE)
    if change.how is How.DELETE:
        return _delete(connection, change, path, dry_run=dry_run)
    raise ValueError(f"{change.how.value} is no change of a cluster")


def create(connection: Connection, target: Target, body: dict[str, Any], *, dry_run: bool = False) -> dict[str, Any]:
    """Creates an object; with `metadata.generateName` the API server names it. Raises Problem (409: it exists)."""
    resource = _resource(connection, target)
    query = {"fieldManager": MANAGER, **(_DRY if dry_run else {})}
    whole = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
    return _send(connection, "POST", resource.path(target.namespace), query, whole, "application/json")


def may(connection: Connection, verb: str, target: Target) -> tuple[str, bool]:
    """What a right is on, such as `daemonsets.apps in kube-system`, and whether we have it."""
    resource = _resource(connection, target)
    namespace = target.namespace if resource.namespaced else ""
    allowed = can(connection, verb, resource.plural, resource.group, namespace, target.name)
    kind = resource.plural + (f".{resource.group}" if resource.group else "")
    return kind + (f" in {namespace}" if namespace else ""), allowed


def can(connection: Connection, verb: str, plural: str, group: str, namespace: str, name: str) -> bool:
    """Whether the API server would allow it."""
    resource, _, subresource = plural.partition("/")
    attributes = {
        "verb": verb,
        "resource": resource,
        "subresource": subresource,
        "group": group,
        "namespace": namespace,
        "name": name,
    }
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {key: value for key, value in attributes.items() if value}},
    }
    answer = _send(connection, "POST", _REVIEW, {}, review, "application/json")
    return (answer.get("status") or {}).get("allowed") is True


def _patch(connection: Connection, change: Change, path: str, query: dict[str, str]) -> dict[str, Any]:
    operations = list(change.after)
    if change.resource_version:
        operations.insert(0, {"op": "test", "path": "/metadata/resourceVersion", "value": change.resource_version})
    body = _as_go_writes(operations)
    return _guarded(connection, change, 422, lambda: _json(connection.request("PATCH", path, query, body, _JSON_PATCH)))


def _guarded(connection: Connection, change: Change, status: int, send: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Sends a write that tests the resourceVersion. status: what the API server answers when the test fails."""
    try:
        return send()
    except Refused as refused:
        if refused.status != status or not change.resource_version:
            raise
        current = get(connection, change.target)
        if current is not None and current["metadata"].get("resourceVersion") == change.resource_version:
            raise
        raise changed_meanwhile(change.target) from None


def _as_go_writes(value: Any) -> bytes:
    """JSON as Go's encoder writes it: the API server compares the bytes of what a JSON patch tests."""
    data = msgspec.json.encode(value)
    for char in "<>&\u2028\u2029":
        data = data.replace(char.encode(), f"\\u{ord(char):04x}".encode())
    return data


def _delete(connection: Connection, change: Change, path: str, *, dry_run: bool) -> dict[str, Any]:
    options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions", **(change.after or {})}
    if dry_run:
        options["dryRun"] = ["All"]  # beside a body the API server ignores the query
    if change.resource_version:
        options["preconditions"] = {"resourceVersion": change.resource_version}
    try:
        _send(connection, "DELETE", path, {}, options, "application/json")
    except Refused as refused:
        if refused.status != 404:
            raise
    return {}


def _send(
    connection: Connection, method: str, path: str, query: dict[str, str], body: Any, content_type: str
) -> dict[str, Any]:
    return _json(connection.request(method, path, query, msgspec.json.encode(body), content_type))


def _json(body: bytes) -> dict[str, Any]:
    try:
        value: dict[str, Any] = msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Problem("the API server answered with something that is not an object", str(error)) from None
    return value


class _Served(msgspec.Struct, frozen=True):
    name: str
    kind: str
    namespaced: bool = True


class _ServedList(msgspec.Struct, frozen=True):
    resources: list[_Served] = []


def _resource(connection: Connection, target: Target) -> Resource:
    """Where a target's kind is served: from our table, else as the API server says. Raises Problem when it is not."""
    known = KINDS.get(target.kind)
    if known is not None and known.api_version == target.api_version:
        return known
    base = f"/apis/{target.api_version}" if "/" in target.api_version else f"/api/{target.api_version}"
    try:
        served = msgspec.json.decode(connection.request("GET", base), type=_ServedList).resources
    except Refused as refused:
        if refused.status != 404:
            raise
        served = []
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Problem(f"the API server answered GET {base} with something that is not a list", str(error)) from None
    for item in served:
        if item.kind == target.kind and "/" not in item.name:
            return Resource(item.kind, item.name, dict, target.api_version, item.namespaced)
    problem = Problem(
        f"the cluster knows no kind {target.kind} of {target.api_version}",
        remedy="is its custom resource installed?",
        exit_code=Exit.FINDINGS,
    )
    problem.status = 404
    raise problem
