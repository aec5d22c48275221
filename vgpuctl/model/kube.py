"""Kubernetes objects, decoded only as far as vgpuctl needs them.

Field names follow the API (camelCase in JSON). Unknown fields are skipped by the decoder, absent ones get the
default, so one type serves every version from 1.20 on. Times stay RFC 3339 text. Some fields (securityContext,
globalDefault, preemptionPolicy) are read by the rules of lint only, in the text that `plain` makes.
"""

from __future__ import annotations

from typing import Any

import msgspec


class Struct(msgspec.Struct, frozen=True, rename="camel", kw_only=True, gc=False):
    """Base: immutable, no cycle collection (fast to decode by the ten thousand)."""


def plain(kind: str, api_version: str, item: Struct) -> dict[str, Any]:
    """An object as the API would give it, as JSON data; what is empty, and so may only be a default, is left out."""
    return {"apiVersion": api_version, "kind": kind, **_present(msgspec.to_builtins(item))}


def _present(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {key: _present(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item not in (None, "", [], {}, False)}
    return [_present(item) for item in value] if isinstance(value, list) else value


class OwnerReference(Struct, frozen=True):
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class Metadata(Struct, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[OwnerReference] | None = None

    def label(self, key: str) -> str | None:
        return (self.labels or {}).get(key)

    def annotation(self, key: str) -> str | None:
        return (self.annotations or {}).get(key)


class Condition(Struct, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class Taint(Struct, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(Struct, frozen=True):
    unschedulable: bool = False
    taints: list[Taint] | None = None


class NodeInfo(Struct, frozen=True):
    kubelet_version: str = ""
    container_runtime_version: str = ""


class NodeStatus(Struct, frozen=True):
    allocatable: dict[str, str] | None = None
    capacity: dict[str, str] | None = None
    conditions: list[Condition] | None = None
    node_info: NodeInfo = NodeInfo()


class Node(Struct, frozen=True):
    metadata: Metadata = Metadata()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class EnvVar(Struct, frozen=True):
    name: str = ""
    value: str | None = None


class Resources(Struct, frozen=True):
    limits: dict[str, Any] | None = None
    requests: dict[str, Any] | None = None


class SecurityContext(Struct, frozen=True):
    privileged: bool | None = None


class VolumeMount(Struct, frozen=True):
    name: str = ""
    mount_path: str = ""
    sub_path: str = ""


class Container(Struct, frozen=True):
    name: str = ""
    image: str = ""
    command: list[str] | None = None
    args: list[str] | None = None
    env: list[EnvVar] | None = None
    resources: Resources = Resources()
    security_context: SecurityContext | None = None
    volume_mounts: list[VolumeMount] | None = None


class HostPath(Struct, frozen=True):
    path: str = ""


class Volume(Struct, frozen=True):
    name: str = ""
    host_path: HostPath | None = None
    config_map: dict[str, Any] | None = None


class PodSpec(Struct, frozen=True):
    node_name: str = ""
    scheduler_name: str = ""
    runtime_class_name: str | None = None
    priority_class_name: str = ""
    containers: list[Container] = []
    init_containers: list[Container] | None = None
    volumes: list[Volume] | None = None


class ContainerState(Struct, frozen=True):
    reason: str = ""
    message: str = ""
    exit_code: int | None = None
    started_at: str | None = None


class ContainerStatus(Struct, frozen=True):
    name: str = ""
    restart_count: int = 0
    state: dict[str, ContainerState | None] | None = None


class PodStatus(Struct, frozen=True):
    phase: str = ""
    reason: str = ""
    message: str = ""
    start_time: str | None = None
    conditions: list[Condition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None


class Pod(Struct, frozen=True):
    metadata: Metadata = Metadata()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class ManagedField(Struct, frozen=True):
    """Who changed which fields when; fieldsV1 is the set of fields."""

    manager: str = ""
    time: str | None = None
    fields: dict[str, Any] | None = msgspec.field(name="fieldsV1", default=None)


class ManagedMetadata(Metadata, frozen=True):
    managed_fields: list[ManagedField] | None = None


class ConfigMap(Struct, frozen=True):
    metadata: ManagedMetadata = ManagedMetadata()
    data: dict[str, str] | None = None


class Namespace(Struct, frozen=True):
    metadata: Metadata = Metadata()
    status: dict[str, Any] | None = None


class ScopeSelector(Struct, frozen=True):
    match_expressions: list[dict[str, Any]] | None = None


class QuotaSpec(Struct, frozen=True):
    hard: dict[str, str] | None = None
    scopes: list[str] | None = None
    scope_selector: ScopeSelector | None = None


class QuotaStatus(Struct, frozen=True):
    hard: dict[str, str] | None = None
    used: dict[str, str] | None = None


class ResourceQuota(Struct, frozen=True):
    metadata: Metadata = Metadata()
    spec: QuotaSpec = QuotaSpec()
    status: QuotaStatus = QuotaStatus()


class PriorityClass(Struct, frozen=True):
    metadata: Metadata = Metadata()
    value: int = 0
    global_default: bool = False
    preemption_policy: str | None = None


class QueueSpec(Struct, frozen=True):
    weight: int | None = None
    capability: dict[str, Any] | None = None
    deserved: dict[str, Any] | None = None
    guarantee: dict[str, Any] | None = None
    reclaimable: bool | None = None
    parent: str = ""
    type: str = ""


class QueueStatus(Struct, frozen=True):
    state: str = ""
    allocated: dict[str, Any] | None = None


class Queue(Struct, frozen=True):
    metadata: Metadata = Metadata()
    spec: QueueSpec = QueueSpec()
    status: QueueStatus = QueueStatus()


class PodGroupSpec(Struct, frozen=True):
    queue: str = ""


class PodGroupStatus(Struct, frozen=True):
    phase: str = ""
    conditions: list[Condition] | None = None


class PodGroup(Struct, frozen=True):
    metadata: Metadata = Metadata()
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


class PodTemplate(Struct, frozen=True):
    metadata: Metadata = Metadata()
    spec: PodSpec = PodSpec()


class WorkloadSpec(Struct, frozen=True):
    template: PodTemplate = PodTemplate()


class WorkloadStatus(Struct, frozen=True):
    desired_number_scheduled: int = 0
    number_ready: int = 0


class Workload(Struct, frozen=True):
    """A DaemonSet or a Deployment."""

    metadata: Metadata = Metadata()
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()


class ObjectReference(Struct, frozen=True):
    kind: str = ""
    namespace: str = ""
    name: str = ""


class Event(Struct, frozen=True):
    metadata: Metadata = Metadata()
    involved_object: ObjectReference = ObjectReference()
    type: str = ""
    reason: str = ""
    message: str = ""
    count: int | None = None
    last_timestamp: str | None = None


class RuntimeClass(Struct, frozen=True):
    metadata: Metadata = Metadata()
    handler: str = ""


class WebhookConfiguration(Struct, frozen=True):
    metadata: Metadata = Metadata()
    webhooks: list[dict[str, Any]] | None = None
