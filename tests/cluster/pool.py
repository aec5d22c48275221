"""Loads a pool, a YAML file of Kubernetes objects with their status, into a bench."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import yaml

from .bench import Bench
from .client import CONNECTIONS, ApiError
from .resources import Resources

POOLS = Path(__file__).parent.parent / "pools"

Object = Mapping[str, Any]


def read(file: str | Path) -> list[Object]:
    """The objects of a pool file: a path, or the name of a file in tests/pools.

    Lists are unfolded; documents without content are left out.
    """
    documents = yaml.load_all((POOLS / file).read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return [item for document in documents if document for item in document.get("items", [document])]


@contextlib.contextmanager
def loaded(bench: Bench, file: str | Path) -> Iterator[list[Object]]:
    """A pool that is in the bench while inside, and gone afterwards."""
    objects = read(file)
    try:
        load(bench, objects)
        yield objects
    finally:
        remove(bench, objects)


def load(bench: Bench, objects: Sequence[Object]) -> None:
    """Brings the objects and their status into the bench; what is already so stays untouched.

    Namespaces that the objects name are made. Pods are bound by their nodeName: no scheduler runs.
    """
    resources = Resources(bench.client)
    named = {o["metadata"]["namespace"] for o in objects if "namespace" in o["metadata"]}
    named -= {o["metadata"]["name"] for o in objects if o["kind"] == "Namespace"}
    namespaces: list[Object] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in sorted(named)
    ]
    for item in [*namespaces, *(o for o in objects if o["kind"] == "Namespace")]:
        _wait_for_end(bench, item["metadata"]["name"])
    wide = [o for o in objects if not resources.namespaced(o)]
    inside = [o for o in objects if resources.namespaced(o)]
    with ThreadPoolExecutor(CONNECTIONS) as executor:

        def put(item: Object) -> None:
            path = resources.path(item)
            bench.client.apply(path, {k: v for k, v in item.items() if k != "status"})
            if "status" in item:
                status = {k: item[k] for k in ("apiVersion", "kind", "status")}
                bench.client.apply(f"{path}/status", status, manager="bench-status")

        for stage in (
            namespaces,
            wide,
            [o for o in inside if o["kind"] != "ResourceQuota"],
            # Last, as where a cap was lowered below what is in use.
            [o for o in inside if o["kind"] == "ResourceQuota"],
        ):
            list(executor.map(put, stage))


def remove(bench: Bench, objects: Sequence[Object]) -> None:
    """Takes the objects out, and clears their namespaces (but the cluster's own) of whatever else is there."""
    resources = Resources(bench.client)
    names = {o["metadata"]["namespace"] for o in objects if "namespace" in o["metadata"]}
    names |= {o["metadata"]["name"] for o in objects if o["kind"] == "Namespace"}
    own = {name for name in names if name != "default" and not name.startswith("kube-")}
    rest = [o for o in objects if o["kind"] != "Namespace" and o["metadata"].get("namespace") not in own]
    with ThreadPoolExecutor(CONNECTIONS) as executor:
        list(executor.map(lambda item: bench.client.delete(resources.path(item), grace=0), rest))
    resources.clear(own)


def _wait_for_end(bench: Bench, namespace: str) -> None:
    """Waits while a namespace is being deleted: until its end, nothing can be made in that name."""
    deadline = time.monotonic() + 60
    path = f"/api/v1/namespaces/{namespace}"
    with contextlib.suppress(ApiError):  # 404: it is gone
        while bench.client.get(path)["status"]["phase"] == "Terminating":
            if time.monotonic() > deadline:
                raise TimeoutError(f"namespace {namespace} does not end")
            time.sleep(0.2)
