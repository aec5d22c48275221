"""The parts of a vGPU pool as the API server shows them: nodes, scheduler, plugin, configuration.

Upstream's manifests name things; other installers (Helm, GitOps) rename them. So each is told by several signs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from vgpuctl.model import annotation, configmaps, kube
from vgpuctl.model.context import Context, PoolNode
from vgpuctl.model.document import Node, Scalar, find, read_yaml
from vgpuctl.model.facts import Facts
from vgpuctl.model.quantity import integer
from vgpuctl.model.reading import Missing
from vgpuctl.model.resource import ResourceNames, What
from vgpuctl.model.version_number import VersionNumber

_GPU_LABELS = ("nvidia.com/gpu.present", "feature.node.kubernetes.io/pci-10de.present", "nvidia.com/gpu.product")
_GEOMETRIES = re.compile(r"^\s*deviceshare\.KnownGeometriesCM(Name|Namespace)\s*:\s*[\"']?([\w.-]+)", re.MULTILINE)
ENDED = ("Succeeded", "Failed")
"""Phases of pods that hold nothing any more."""

T = TypeVar("T")


@dataclass(frozen=True)
class GpuNode:
    """A node with its cards as the plugin registered them; register None: the annotation is not there."""

    node: kube.Node
    register: annotation.Register | None

    @property
    def name(self) -> str:
        return self.node.metadata.name

    @property
    def cards(self) -> tuple[annotation.RegisteredCard, ...]:
        return self.register.cards if self.register else ()


def gpu_nodes(facts: Facts) -> list[GpuNode]:
    """The nodes that have, or should have, vGPUs, by name. Raises Missing."""
    names = resource_names(facts)
    found = []
    for node in facts.nodes.need():
        text = node.metadata.annotation(annotation.REGISTER)
        register = annotation.decode_register(text) if text is not None else None
        if register is not None or _looks_like_gpu(node, names):
            found.append(GpuNode(node, register))
    return sorted(found, key=lambda item: item.name)


def _looks_like_gpu(node: kube.Node, names: ResourceNames) -> bool:
    labels = node.metadata.labels or {}
    if any(labels.get(label, "false") != "false" for label in _GPU_LABELS):
        return True
    capacity = {**(node.status.capacity or {}), **(node.status.allocatable or {})}
    return any(name in capacity for name in (*names.all, "nvidia.com/gpu"))


def is_up(node: kube.Node) -> bool:
    """Its kubelet is heard of; a node without conditions is taken for up."""
    ready = next((item for item in node.status.conditions or () if item.type == "Ready"), None)
    return ready is None or ready.status == "True"


def amount(values: dict[str, str] | None, name: str) -> int:
    """A quantity of a node's allocatable or capacity as a whole number; 0 when it is absent or broken."""
    return integer((values or {}).get(name, 0)) or 0


def is_scheduler(pod: kube.PodSpec, metadata: kube.Metadata) -> bool:
    """Volcano's scheduler, by label, container or image."""
    return metadata.label("app") == "volcano-scheduler" or any(
        container.name == "volcano-scheduler" or image_name(container.image) == "vc-scheduler"
        for container in pod.containers
    )


def is_plugin(pod: kube.PodSpec, metadata: kube.Metadata) -> bool:
    """Upstream's vGPU device plugin, by label, container or image; its image with a command of its own is something
    else, such as the clean-up of the nodes."""
    return metadata.label("name") == "volcano-device-plugin" or any(
        container.name == "volcano-device-plugin"
        or (image_name(container.image) == "volcano-vgpu-device-plugin" and not _runs_another(container.command))
        for container in pod.containers
    )


def _runs_another(command: list[str] | None) -> bool:
    """A container's command is not the plugin's program."""
    return command is not None and "device-plugin" not in "".join(command[:1])


def scheduler_pods(facts: Facts) -> list[kube.Pod]:
    """The pods of Volcano's scheduler. Raises Missing."""
    return [pod for pod in facts.pods.need() if is_scheduler(pod.spec, pod.metadata) and alive(pod)]


def plugin_pods(facts: Facts) -> list[kube.Pod]:
    """The pods of the device plugin. Raises Missing."""
    return [pod for pod in facts.pods.need() if is_plugin(pod.spec, pod.metadata) and alive(pod)]


def plugin_daemonsets(facts: Facts) -> list[kube.Workload]:
    """The DaemonSets of the device plugin. Raises Missing."""
    return [item for item in facts.daemonsets.need() if runs_plugin(item)]


def runs_plugin(item: kube.Workload) -> bool:
    """Whether a DaemonSet is the device plugin's."""
    return is_plugin(item.spec.template.spec, _template(item))


def _template(item: kube.Workload) -> kube.Metadata:
    """The template's metadata; the object's own name counts where the template has no labels."""
    metadata = item.spec.template.metadata
    return metadata if metadata.labels else kube.Metadata(labels={"name": item.metadata.name})


def image_name(image: str) -> str:
    """The last part of an image's name, without tag and digest."""
    return image.partition("@")[0].rpartition("/")[2].partition(":")[0]


def image_version(image: str) -> VersionNumber | None:
    """The version that an image's tag tells, None when it tells none."""
    tag = image.partition("@")[0].rpartition("/")[2].partition(":")[2]
    try:
        return VersionNumber(tag)
    except ValueError:
        return None


def volcano_version(facts: Facts) -> VersionNumber | None:
    """The scheduler's version by its image; None when no pod or Deployment that was read tells one."""
    specs = [pod.spec for pod in facts.pods.value or () if is_scheduler(pod.spec, pod.metadata)]
    specs += [
        item.spec.template.spec
        for item in facts.deployments.value or ()
        if is_scheduler(item.spec.template.spec, _template(item))
    ]
    versions = [
        version
        for spec in specs
        for container in spec.containers
        if container.name == "volcano-scheduler" or image_name(container.image) == "vc-scheduler"
        if (version := image_version(container.image))
    ]
    return min(versions, default=None)


def configmap(facts: Facts, namespace: str, name: str) -> kube.ConfigMap | None:
    """One ConfigMap, None when there is none. Raises Missing when that is not known."""
    return _or_unknown(
        facts,
        next(
            (
                item
                for item in facts.configmaps.need()
                if item.metadata.name == name and item.metadata.namespace == namespace
            ),
            None,
        ),
    )


def _or_unknown(facts: Facts, found: T | None) -> T | None:
    """What was found; where nothing was and not all ConfigMaps could be read, it is unknown: raises Missing."""
    if found is None and facts.configmaps.note:
        raise Missing(facts.configmaps.note, facts.configmaps.source)
    return found


@dataclass(frozen=True)
class Text:
    """A text inside a ConfigMap."""

    map: kube.ConfigMap
    key: str
    text: str

    @property
    def place(self) -> str:
        return f"ConfigMap {self.map.metadata.namespace}/{self.map.metadata.name}"


def text_in(item: kube.ConfigMap | None, key: str) -> Text | None:
    """The text under a key; None when there is no such map or key."""
    if item is None or key not in (item.data or {}):
        return None
    return Text(item, key, (item.data or {})[key])


def plugin_config(facts: Facts) -> Text | None:
    """The device configuration that the plugin reads. Raises Missing."""
    for namespace in configmaps.PLUGIN_NAMESPACES:
        found = text_in(configmap(facts, namespace, configmaps.DEVICE), configmaps.DEVICE_KEY)
        if found:
            return found
    return None


def scheduler_device_place(facts: Facts) -> tuple[str, str]:
    """Namespace and name of the ConfigMap that the scheduler reads as device configuration. Raises Missing."""
    text = scheduler_config(facts)
    named = dict(_GEOMETRIES.findall(text.text)) if text else {}
    return named.get("Namespace", configmaps.PLUGIN_NAMESPACES[0]), named.get("Name", configmaps.DEVICE)


def scheduler_device_config(facts: Facts) -> Text | None:
    """The device configuration that the scheduler reads. Raises Missing."""
    return text_in(configmap(facts, *scheduler_device_place(facts)), configmaps.DEVICE_KEY)


def node_config(facts: Facts) -> Text | None:
    """The node configuration that is mounted into the plugin; the usual one where its DaemonSet is not known, or mounts
    none. Raises Missing."""
    mounted = mounted_node_config(facts) if facts.daemonsets.known else None
    if mounted:
        return text_in(configmap(facts, mounted.namespace, mounted.name), mounted.key)
    for item in facts.configmaps.need():
        if item.metadata.name == configmaps.NODE and (found := text_in(item, configmaps.NODE_KEY)):
            return found
    return _or_unknown(facts, None)


def scheduler_config(facts: Facts) -> Text | None:
    """The scheduler's configuration: of the ConfigMap that its Deployment mounts, else of the usual one.

    Raises Missing when ConfigMaps are not known.
    """
    mounted = mounted_config(facts)
    if mounted:
        return text_in(configmap(facts, mounted.namespace, mounted.name), mounted.key)
    usual = [item for item in facts.configmaps.need() if item.metadata.name.endswith(configmaps.SCHEDULER)]
    for item in usual:
        for key in sorted(item.data or {}, key=lambda key: key != configmaps.SCHEDULER_KEY):
            if key.endswith(".conf"):
                return text_in(item, key)
    return _or_unknown(facts, None)


@dataclass(frozen=True)
class Mounted:
    """The ConfigMap key that the scheduler reads. key "": its arguments name no --scheduler-conf."""

    deployment: str
    namespace: str
    name: str
    key: str


def mounted_config(facts: Facts) -> Mounted | None:
    """What the scheduler's Deployment mounts and names as its configuration; None when no Deployment is known."""
    for item in facts.deployments.value or ():
        spec = item.spec.template.spec
        if not is_scheduler(spec, _template(item)):
            continue
        volumes = {volume.name: volume for volume in spec.volumes or ()}
        for container in spec.containers:
            path = _argument(container, "--scheduler-conf")
            for mount in container.volume_mounts or ():
                volume = volumes.get(mount.name)
                if path and volume and volume.config_map and path.startswith(mount.mount_path.rstrip("/") + "/"):
                    name, key = str(volume.config_map.get("name", "")), path[len(mount.mount_path.rstrip("/")) + 1 :]
                    return Mounted(item.metadata.name, item.metadata.namespace, name, _source_key(volume, key))
        return Mounted(item.metadata.name, item.metadata.namespace, "", "")
    return None


_NODE_CONFIG_PATH = "/config"
"""Where the plugin looks for its node configuration."""


def mounted_node_config(facts: Facts) -> Mounted | None:
    """What the plugin's DaemonSet mounts as its node configuration; None when it mounts none. Raises Missing."""
    for item in plugin_daemonsets(facts):
        spec = item.spec.template.spec
        volumes = {volume.name: volume for volume in spec.volumes or ()}
        for container in spec.containers:
            for mount in container.volume_mounts or ():
                volume = volumes.get(mount.name)
                if mount.mount_path.rstrip("/") == _NODE_CONFIG_PATH and volume and volume.config_map:
                    name = str(volume.config_map.get("name", ""))
                    space = item.metadata.namespace
                    return Mounted(item.metadata.name, space, name, _source_key(volume, configmaps.NODE_KEY))
    return None


def _source_key(volume: kube.Volume, path: str) -> str:
    """The key behind a file of a mounted ConfigMap, whose `items` may rename it."""
    items = (volume.config_map or {}).get("items") or []
    return next((str(item.get("key")) for item in items if item.get("path") == path), path)


def _argument(container: kube.Container, flag: str) -> str:
    words = [word for text in (*(container.command or ()), *(container.args or ())) for word in text.split()]
    for index, word in enumerate(words):
        if word.startswith(f"{flag}="):
            return str(word[len(flag) + 1 :])
        if word == flag and index + 1 < len(words):
            return str(words[index + 1])
    return ""


@dataclass(frozen=True)
class Units:
    """What the device configuration says of the pool's units. factor: MiB per memory unit, None when it is not known or
    no positive number. names: the resource names in force."""

    factor: int | None = None
    names: ResourceNames = ResourceNames()


_NAMES = {
    What.NUMBER: "resourceCountName",
    What.MEMORY: "resourceMemoryName",
    What.PERCENTAGE: "resourceMemoryPercentageName",
    What.CORES: "resourceCoreName",
}


def units_in(text: str) -> Units:
    """The units of a device configuration; names that it lacks are the usual ones."""
    section = find(read_yaml(text)[0].root, "nvidia")
    factor, usual = _scalar(section, "gpuMemoryFactor"), ResourceNames()
    given = {what: _scalar(section, key) for what, key in _NAMES.items()}
    names = {
        what.value: value if isinstance(value, str) and value else usual.name(what) for what, value in given.items()
    }
    return Units(_whole(factor), ResourceNames(**names))


def _whole(value: object) -> int | None:
    """A number from 1 on that a loader can hold, cut to a whole one; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return int(value) if 1 <= value < 1 << 63 else None


def units(facts: Facts) -> Units:
    """The units in force, as far as the device configuration is known."""
    try:
        found = plugin_config(facts)
    except Missing:
        return Units()
    return units_in(found.text) if found else Units()


def resource_names(facts: Facts) -> ResourceNames:
    """The resource names in force."""
    return units(facts).names


def memory_factor(facts: Facts) -> int | None:
    """MiB per memory unit."""
    return units(facts).factor


def _scalar(section: Node | None, key: str) -> object:
    """The value of a key that is a plain value; None for anything else."""
    node = find(section, key)
    return node.value if isinstance(node, Scalar) else None


def alive(pod: kube.Pod) -> bool:
    """Neither ended nor being deleted."""
    return pod.status.phase not in ENDED and not pod.metadata.deletion_timestamp


def limits(container: kube.Container, names: ResourceNames) -> dict[What, object]:
    """What a container asks for of the pool, from its limits (the scheduler reads nothing else)."""
    found = {names.what(name): value for name, value in (container.resources.limits or {}).items()}
    return {what: value for what, value in found.items() if what is not None}


def is_vgpu_pod(pod: kube.Pod, names: ResourceNames) -> bool:
    """Volcano's deviceshare looks at it: a main container has number or memory in its limits."""
    return any(
        What.NUMBER in asked or What.MEMORY in asked
        for asked in (limits(container, names) for container in pod.spec.containers)
    )


def vgpu_pods(facts: Facts) -> Iterator[kube.Pod]:
    """The vGPU pods that have not ended. Raises Missing."""
    names = resource_names(facts)
    return (pod for pod in facts.pods.need() if alive(pod) and is_vgpu_pod(pod, names))


def allocations(pod: kube.Pod) -> annotation.Allocations | None:
    """The vGPUs that the scheduler gave a pod; None when the annotation is absent."""
    text = pod.metadata.annotation(annotation.IDS)
    return None if text is None else annotation.decode_allocations(text)


def full_name(metadata: kube.Metadata) -> str:
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name


def started(pod: kube.Pod, container: str = "") -> float | None:
    """When a pod's container (the named one, else the one that started last) began to run, Unix seconds."""
    times = []
    for status in pod.status.container_statuses or ():
        running = (status.state or {}).get("running")
        if running and running.started_at and (not container or status.name == container):
            times.append(annotation.decode_time(running.started_at))
    known = [time for time in times if time is not None]
    if known:
        return max(known)
    return annotation.decode_time(pod.status.start_time or "")


def data_changed(item: kube.ConfigMap, keys: Iterable[str] = ()) -> float | None:
    """When a ConfigMap's data was last changed, Unix seconds; None when it does not tell."""
    times = []
    for entry in item.metadata.managed_fields or ():
        data = (entry.fields or {}).get("f:data")
        touched = entry.fields is None or (
            isinstance(data, dict) and (not keys or any(f"f:{key}" in data for key in keys))
        )
        if touched and entry.time:
            times.append(annotation.decode_time(entry.time))
    known = [time for time in times if time is not None]
    return max(known) if known else annotation.decode_time(item.metadata.creation_timestamp or "")


def context(facts: Facts) -> Context:
    """What the rules of validate and lint may know of this pool; parts that are missing stay unknown."""
    known = units(facts)
    factor = known.factor
    nodes = None
    resources = None
    if facts.nodes.value is not None:
        cards = [node for node in gpu_nodes(facts) if node.cards]
        nodes = tuple(pool_node for node in cards for pool_node in _pool_nodes(node, factor)) if factor else None
        offered = {name for node in facts.nodes.value for name in node.status.allocatable or {} if "/" in name}
        resources = frozenset(offered) if cards else None
    try:
        config = scheduler_config(facts)
    except Missing:
        config = None
    return Context(
        volcano=volcano_version(facts),
        factor=factor,
        nodes=nodes or None,
        resources=resources,
        names=known.names,
        queues=frozenset(queue.metadata.name for queue in facts.queues.value)
        if facts.queues.value is not None
        else None,
        scheduler_namespace=config.map.metadata.namespace if config else "",
        scheduler_configmap=config.map.metadata.name if config else "",
    )


def _pool_nodes(gpu: GpuNode, factor: int) -> Iterator[PoolNode]:
    """A node as the rules take it: once for each kind of card in it."""
    kinds: dict[tuple[str, int, int], list[str]] = {}
    for card in gpu.cards:
        kinds.setdefault((card.model, card.memory, card.count), []).append(card.uuid)
    mode = gpu.register.mode if gpu.register else ""
    for (model, memory, split), uuids in kinds.items():
        yield PoolNode(gpu.name, len(uuids), model, memory * factor, mode, split, tuple(uuids))
