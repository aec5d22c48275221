"""A live cluster as a source of facts, and the way by which changes reach it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from vgpuctl.model import kube
from vgpuctl.model.access import RIGHTS
from vgpuctl.model.api import KINDS, Resource
from vgpuctl.model.change import Change, Target
from vgpuctl.model.delta import Delta
from vgpuctl.model.facts import Part
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.model.reading import Reading, known, missing
from vgpuctl.sources.cluster import logs, watch, write
from vgpuctl.sources.cluster.connection import Connection
from vgpuctl.sources.cluster.errors import Refused
from vgpuctl.sources.cluster.kubeconfig import Access
from vgpuctl.sources.cluster.listing import Listed, list_all
from vgpuctl.sources.cluster.resources import LISTS

SYSTEM = ("kube-system", "volcano-system")
"""The namespaces in which the scheduler, the plugin and their configuration live by default."""

_CONFIGMAPS = ("volcano-vgpu-device-config", "volcano-vgpu-node-config", "volcano-scheduler-configmap")
_GEOMETRIES = re.compile(r"deviceshare\.KnownGeometriesCM(Name|Namespace):\s*[\"']?([\w.-]+)")
_EVENTS = {"fieldSelector": "type=Warning"}


class Cluster:
    """Reads and writes through one API server.

    namespace: narrows pods, quotas, PodGroups and events to one namespace, "" for all. selector: narrows the pods by
    labels. The system's own objects (ConfigMaps, DaemonSets, Deployments, logs) are read whatever the namespace.
    """

    def __init__(self, access: Access, *, namespace: str = "", selector: str = "", timeout: float = 10.0) -> None:
        self.access = access
        self.namespace = namespace
        self.selector = selector
        self.connection = Connection(access, timeout)
        self._versions: dict[Part, str] = {}

    @property
    def name(self) -> str:
        return self.access.name

    @property
    def scope(self) -> str:
        """What the namespaced parts are narrowed to, in words; "" for the whole cluster."""
        words = (
            f"namespace {self.namespace}" if self.namespace else "",
            f"pods with {self.selector}" if self.selector else "",
        )
        return ", ".join(filter(None, words))

    @property
    def parts(self) -> frozenset[Part]:
        return frozenset((*LISTS, Part.VERSION, Part.ACCESS, Part.CONFIGMAPS, Part.WEBHOOKS, Part.LOGS))

    def now(self) -> float:
        return time.time()

    def read(self, part: Part) -> Reading[Any]:
        """One part; what the cluster does not give becomes a missing Reading with the reason."""
        special: dict[Part, Callable[[], Reading[Any]]] = {
            Part.VERSION: self._version,
            Part.ACCESS: self._access,
            Part.CONFIGMAPS: self._configmaps,
            Part.WEBHOOKS: self._webhooks,
            Part.LOGS: self._logs,
        }
        if part in special:
            return special[part]()
        if part not in LISTS:
            return missing(f"a cluster does not hold {part.value}", self.name)
        resource = LISTS[part]
        if part is Part.NAMESPACES and self.namespace:
            return self._attempt(resource, lambda: self._one(resource, self.namespace), self.namespace)
        return self._attempt(resource, lambda: self._list(part, resource), self._narrowed(part))

    def get(self, target: Target) -> dict[str, Any] | None:
        """An object as raw JSON, None when it does not exist. Raises Problem."""
        return write.get(self.connection, target)

    def objects(self, kind: str, *, namespace: str = "", query: dict[str, str] | None = None) -> list[dict[str, Any]]:
        """All objects of a kind as raw JSON. Raises Problem."""
        resource = KINDS[kind]
        return [
            msgspec.json.decode(raw)
            for raw in list_all(self.connection, resource, namespace, query, item=msgspec.Raw).items
        ]

    def whole(self, resource: Resource) -> Reading[tuple[dict[str, Any], ...]]:
        """Every object of a resource with all that is in it, its kind and apiVersion too; never raises."""

        def read() -> Listed:
            listed = list_all(self.connection, resource, item=msgspec.Raw)
            head = {"kind": resource.kind, "apiVersion": resource.api_version}
            return Listed([{**msgspec.json.decode(raw), **head} for raw in listed.items], "", listed.note)

        return self._attempt(resource, read, "")

    def write(self, change: Change, *, dry_run: bool = False, force: bool = False) -> dict[str, Any]:
        """Carries out one change on the cluster; the object afterwards. Raises Problem, see `write`."""
        return write.carry_out(self.connection, change, dry_run=dry_run, force=force)

    def create(self, target: Target, body: dict[str, Any], *, dry_run: bool = False) -> dict[str, Any]:
        """Creates an object, see `write.create`. Raises Problem."""
        return write.create(self.connection, target, body, dry_run=dry_run)

    def can(self, verb: str, plural: str, group: str = "", namespace: str = "", name: str = "") -> Reading[bool]:
        """Whether we may, as a SelfSubjectAccessReview says."""
        where = "SelfSubjectAccessReview"
        try:
            return known(write.can(self.connection, verb, plural, group, namespace, name), where, self.now())
        except Problem as problem:
            return missing("; ".join(problem.lines()), where, denied=problem.status == 403)

    def may(self, verb: str, target: Target) -> tuple[str, bool]:
        """What a right is on, in words, and whether we have it. Raises Problem."""
        return write.may(self.connection, verb, target)

    def follow(self, part: Part, stop: Callable[[], bool]) -> Iterator[list[Delta]]:
        """The changes of a part since it was last read, in bunches, until `stop()`; lists anew where it must."""
        return watch.follow(self, part, self.version_of(part), stop)

    def version_of(self, part: Part) -> str:
        """The resourceVersion of the last list of a part, "" when there is none."""
        return self._versions.get(part, "")

    def _narrowed(self, part: Part) -> str:
        return self.namespace if LISTS[part].namespaced and part not in (Part.DAEMONSETS, Part.DEPLOYMENTS) else ""

    def query(self, part: Part) -> dict[str, str]:
        """What narrows a list of this part, besides the namespace."""
        if part is Part.EVENTS:
            return _EVENTS
        return {"labelSelector": self.selector} if part is Part.PODS and self.selector else {}

    def path(self, part: Part) -> str:
        """The API path of a part's list."""
        return LISTS[part].path(self._narrowed(part))

    def _list(self, part: Part, resource: Resource) -> Listed:
        listed = list_all(self.connection, resource, self._narrowed(part), self.query(part))
        self._versions[part] = listed.version
        return listed

    def _one(self, resource: Resource, name: str) -> Listed:
        body = self.connection.request("GET", resource.path(name=name))
        return Listed([msgspec.json.decode(body, type=resource.type)], "", "")

    def _attempt(self, resource: Resource, read: Callable[[], Listed], namespace: str) -> Reading[tuple[Any, ...]]:
        path = resource.path(namespace)
        try:
            listed = read()
        except Refused as refused:
            return self._refused(refused, resource, namespace)
        except Problem as problem:
            return missing("; ".join(problem.lines()), path)
        return Reading(tuple(listed.items), path, self.now(), note=listed.note)

    def _refused(self, refused: Refused, resource: Resource, namespace: str) -> Reading[Any]:
        path = resource.path(namespace)
        if refused.status == 403:
            where = f"in namespace {namespace}" if namespace and resource.namespaced else "in the whole cluster"
            hint = "" if namespace or not resource.namespaced else " (-n NAMESPACE asks for one namespace)"
            group = f".{resource.group}" if resource.group else ""
            return missing(f"no permission to list {resource.plural}{group} {where}{hint}", path, denied=True)
        if refused.status == 404 and resource.owner != "Kubernetes":
            reason = f"{resource.owner} is not installed: the API server knows no {resource.plural}"
            return missing(reason, path, absent=True)
        if refused.status == 400 and self.selector and resource.kind == "Pod":
            return missing(f"the selector {self.selector!r} is not understood: {refused.what}", path)
        return missing("; ".join(refused.lines()), path)

    def _version(self) -> Reading[str]:
        try:
            body = self.connection.request("GET", "/version")
            return known(msgspec.json.decode(body, type=_Version).git_version, "/version", self.now())
        except Problem as problem:
            denied = problem.status == 403
            return missing("; ".join(problem.lines()), "/version", denied=denied)
        except (msgspec.MsgspecError, RecursionError):
            return missing(f"{self.access.server} is no Kubernetes API server: its /version is not JSON", "/version")

    def _access(self) -> Reading[dict[str, bool]]:
        allowed: dict[str, bool] = {}
        for right in RIGHTS:
            namespace = self.namespace if right.namespaced else ""
            reading = self.can(right.verb, right.resource, right.group, namespace)
            if reading.value is None:
                return reading.lost()
            allowed[right.id] = reading.value
        return known(allowed, "SelfSubjectAccessReview", self.now())

    def _configmaps(self) -> Reading[tuple[kube.ConfigMap, ...]]:
        """The ConfigMaps of the system's namespaces, our names anywhere, and the one that the scheduler names."""
        resource = KINDS["ConfigMap"]
        found: dict[tuple[str, str], kube.ConfigMap] = {}
        refusals: list[Reading[Any]] = []

        def collect(namespace: str, name: str = "") -> None:
            query = {"fieldSelector": f"metadata.name={name}"} if name else None
            try:
                items = list_all(self.connection, resource, namespace, query).items
            except Refused as refused:
                refusals.append(self._refused(refused, resource, namespace))
                return
            for item in items:
                found.setdefault((item.metadata.namespace, item.metadata.name), item)

        try:
            for namespace in SYSTEM:
                collect(namespace)
            for name in _CONFIGMAPS:
                collect("", name)
            text = "\n".join(text for item in found.values() for text in (item.data or {}).values())
            named = dict(_GEOMETRIES.findall(text))
            place = (named.get("Namespace", ""), named.get("Name", ""))
            if all(place) and place not in found:
                collect(*place)
        except Problem as problem:  # a server that is silent once is not asked four times more
            return missing("; ".join(problem.lines()), resource.path())
        unread = [reading for reading in refusals if reading.source != resource.path()]
        if not found and len(unread) >= len(SYSTEM):
            return unread[0]
        note = "; ".join(dict.fromkeys(reading.reason for reading in unread))
        return Reading(tuple(found.values()), resource.path(), self.now(), note=note)

    def _webhooks(self) -> Reading[tuple[kube.WebhookConfiguration, ...]]:
        items: list[kube.WebhookConfiguration] = []
        for kind in ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"):
            reading = self._plain(KINDS[kind])
            if reading.value is None:
                return reading
            items += reading.value
        return known(tuple(items), "/apis/admissionregistration.k8s.io", self.now())

    def _plain(self, resource: Resource) -> Reading[tuple[Any, ...]]:
        return self._attempt(resource, lambda: list_all(self.connection, resource), "")

    def _logs(self) -> Reading[dict[str, str]]:
        try:
            return known(logs.newest(self.connection), "pod logs", self.now())
        except Refused as refused:
            return missing("; ".join(refused.lines()), "pod logs", denied=refused.status == 403)
        except Problem as problem:
            return missing("; ".join(problem.lines()), "pod logs")


class _Version(msgspec.Struct, frozen=True, rename="camel"):
    git_version: str


def no_cluster() -> Problem:
    """What to say when a command needs a cluster and there is none."""
    return Problem(
        "no cluster is configured",
        "there is no kubeconfig with a current context, and this is not a pod",
        "name one with --kubeconfig FILE or KUBECONFIG, or look at a made-up pool with --demo",
        Exit.UNKNOWN,
    )
