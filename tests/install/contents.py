"""All that is in a cluster: every object of every resource that the API server serves, and how two moments differ.

Compared are spec, data, labels, annotations and whatever else an object holds; not its status and not what the API
server keeps of it (uid, versions, times, managed fields). Left out are events, leases, and objects that a controller
made of another one that is still there: they follow from it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from tests.cluster.client import ApiError, Client

Contents = Mapping[str, Mapping[str, Any]]
"""Path of the API → the object, as far as it is compared."""

_LEFT_OUT = ("events", "leases", "componentstatuses")
_COUNTS = ("deployment.kubernetes.io/revision", "deprecated.daemonset.template.generation")
"""Annotations by which Kubernetes counts the templates that a workload had."""
_HANDSHAKE = "volcano.sh/node-vgpu-handshake"


def read(client: Client) -> Contents:
    """All of it, as it is now."""
    found = [(path, item) for collection in _collections(client) for path, item in _items(client, collection)]
    uids = {item["metadata"]["uid"] for _, item in found}
    return {path: _compared(item) for path, item in found if _owner(item) not in uids}


def differences(before: Contents, after: Contents, ignore: str = "") -> list[str]:
    """What came, went and changed, one line each; without objects whose path fits a regular expression."""
    told = []
    for path in sorted({*before, *after}):
        if (ignore and re.search(ignore, path)) or before.get(path) == after.get(path):
            continue
        if path not in after:
            told.append(f"gone: {path}")
        elif path not in before:
            told.append(f"new: {path}")
        else:
            told += [f"changed: {path} {line}" for line in _changes(before[path], after[path])]
    return told


def restore(client: Client, wanted: Contents) -> None:
    """Removes what is not in `wanted`, brings back what went, and undoes what changed."""
    now = read(client)
    for path in now.keys() - wanted.keys():
        client.delete(path, grace=0, propagationPolicy="Background")
    for path, item in wanted.items():
        if now.get(path) == item:
            continue
        try:
            live = client.get(path)
        except ApiError as error:
            if error.status != 404:
                raise
            client.post(path.rpartition("/")[0], {**item, "metadata": {**item["metadata"], "name": _name(path)}})
            continue
        # Without its version: whatever was written meanwhile is to be undone too.
        kept = {key: live["metadata"][key] for key in ("name", "namespace", "uid") if key in live["metadata"]}
        body = {**item, "metadata": {**kept, **item["metadata"]}}
        client.request("PUT", path, {**body, **({"status": live["status"]} if "status" in live else {})})


def _collections(client: Client) -> Iterator[str]:
    groups = client.get("/apis")["groups"]
    for base in ("/api/v1", *(f"/apis/{group['preferredVersion']['groupVersion']}" for group in groups)):
        for resource in client.get(base)["resources"]:
            if "list" in resource["verbs"] and resource["name"] not in _LEFT_OUT:
                yield f"{base}/{resource['name']}"


def _items(client: Client, collection: str) -> Iterator[tuple[str, dict[str, Any]]]:
    base, _, plural = collection.rpartition("/")
    answer = client.get(collection)
    for item in answer["items"]:
        metadata = item["metadata"]
        space = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
        kind = {"apiVersion": answer["apiVersion"], "kind": answer["kind"].removesuffix("List")}
        yield f"{base}{space}/{plural}/{metadata['name']}", {**kind, **item}


def _owner(item: Mapping[str, Any]) -> str:
    """The uid of the object whose controller made it, "" for none."""
    owners = item["metadata"].get("ownerReferences", [])
    return next((owner["uid"] for owner in owners if owner.get("controller")), "")


def _compared(item: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {key: dict(item["metadata"].get(key, {})) for key in ("labels", "annotations")}
    for name in _COUNTS:
        metadata["annotations"].pop(name, None)
    if _HANDSHAKE in metadata["annotations"]:
        metadata["annotations"][_HANDSHAKE] = metadata["annotations"][_HANDSHAKE].split(" ")[0]
    return {**{key: value for key, value in item.items() if key not in ("metadata", "status")}, "metadata": metadata}


def _changes(before: Any, after: Any, path: str = "") -> Iterator[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted({*before, *after}):
            yield from _changes(before.get(key), after.get(key), f"{path}.{key}" if path else key)
    elif before != after:
        yield f"{path}: {json.dumps(before)[:200]} → {json.dumps(after)[:200]}"


def _name(path: str) -> str:
    return path.rpartition("/")[2]
