"""Which path of the API an object has, asked of the API server itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .client import MERGE, Client


class Resources:
    """What the API server serves; each group is asked once."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._groups: dict[str, dict[str, Any]] = {}

    def path(self, item: Mapping[str, Any]) -> str:
        """The path of an object by its apiVersion, kind, namespace ("default" if absent) and name."""
        metadata, resource = item["metadata"], self._resource(item)
        namespace = f"namespaces/{metadata.get('namespace', 'default')}/" if resource["namespaced"] else ""
        return f"{_prefix(item['apiVersion'])}/{namespace}{resource['name']}/{metadata['name']}"

    def namespaced(self, item: Mapping[str, Any]) -> bool:
        return bool(self._resource(item)["namespaced"])

    def clear(self, namespaces: set[str]) -> None:
        """Removes all that is in these namespaces, at once, and their labels and annotations.

        The namespaces stay: their controller takes seconds to end one, for ever where a pod is bound to a
        node without a kubelet, and it would still be emptying it when the same name is in use again.
        """
        for prefix, name in self._collections():
            items = self._client.get(f"{prefix}/{name}")["items"]
            for namespace in {item["metadata"]["namespace"] for item in items} & namespaces:
                self._client.delete(f"{prefix}/namespaces/{namespace}/{name}", grace=0)
        for namespace in namespaces:
            plain = {"metadata": {"labels": None, "annotations": None}}
            self._client.request("PATCH", f"/api/v1/namespaces/{namespace}", plain, content_type=MERGE)

    def _collections(self) -> Iterator[tuple[str, str]]:
        groups = self._client.get("/apis")["groups"]
        # Pods come last, after the workloads whose controllers would make them anew.
        for version in [*(group["preferredVersion"]["groupVersion"] for group in groups), "v1"]:
            for resource in self._kinds(version).values():
                if resource["namespaced"] and {"list", "deletecollection"} <= set(resource["verbs"]):
                    yield _prefix(version), resource["name"]

    def _resource(self, item: Mapping[str, Any]) -> dict[str, Any]:
        version, kind = item["apiVersion"], item["kind"]
        try:
            resource: dict[str, Any] = self._kinds(version)[kind]
        except KeyError:
            raise LookupError(f"the bench serves no {kind} of {version}") from None
        return resource

    def _kinds(self, version: str) -> dict[str, Any]:
        if version not in self._groups:
            resources = self._client.get(_prefix(version))["resources"]
            self._groups[version] = {r["kind"]: r for r in resources if "/" not in r["name"]}
        return self._groups[version]


def _prefix(version: str) -> str:
    return f"/apis/{version}" if "/" in version else f"/api/{version}"
