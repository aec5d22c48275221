"""Which path of the API an object has, asked of the API server itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .client import ApiError, Client


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

    def erase(self, namespace: str) -> None:
        """Removes a namespace with all that is in it, at once.

        The namespace controller waits some seconds, and for ever where a pod is bound to a node without
        a kubelet.
        """
        path = f"/api/v1/namespaces/{namespace}"
        self._client.delete(path)
        for collection in self._collections(namespace):
            self._client.delete(collection, grace=0)
        while self._finalize(path):
            pass

    def _finalize(self, path: str) -> bool:
        """Tries to end a namespace; false once it is gone."""
        try:
            item = self._client.get(path)
            item["spec"]["finalizers"] = []
            self._client.request("PUT", f"{path}/finalize", item)
        except ApiError as error:
            if error.status not in (404, 409):
                raise
            return error.status == 409
        return True

    def _collections(self, namespace: str) -> Iterator[str]:
        groups = self._client.get("/apis")["groups"]
        for version in ["v1", *(group["preferredVersion"]["groupVersion"] for group in groups)]:
            for resource in self._kinds(version).values():
                if resource["namespaced"] and "deletecollection" in resource["verbs"]:
                    yield f"{_prefix(version)}/namespaces/{namespace}/{resource['name']}"

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
