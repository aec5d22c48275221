"""Checks of where the plugin's things lie: sockets, the monitor's directory, filtered cards, rival plugins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from vgpuctl.checks import mend, share
from vgpuctl.checks.check import Check, Evidence, Options, Result, Skip, Status, Where
from vgpuctl.model import kube, pool
from vgpuctl.model.change import Change
from vgpuctl.model.document import Document, read_json
from vgpuctl.model.facts import Facts, Part
from vgpuctl.model.host import Host, Sockets
from vgpuctl.model.manifest import near
from vgpuctl.model.pool import GpuNode

_PLUGIN_DIRECTORY = "/var/lib/kubelet/device-plugins"
"""Where the plugin looks inside its container (k8s.io/kubelet/pkg/apis/deviceplugin)."""
_RIVALS = (
    ("k8s-device-plugin", "NVIDIA's device plugin"),
    ("nvidia-device-plugin", "NVIDIA's device plugin"),
    ("hami", "HAMi's device plugin"),
    ("gpushare-device-plugin", "Aliyun's gpushare plugin"),
)
"""Image names of plugins that hand out the same cards."""
_RIVAL_RESOURCES = ("nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/gpumem", "nvidia.com/gpucores")


def socket_directory(facts: Facts, options: Options) -> Iterator[Result]:
    host = facts.host.value
    if host is None or host.sockets.value is None:
        raise Skip("the kubelet's sockets can be read on a node only")
    kubelet = _kubelet_directory(host, host.sockets.value)
    if kubelet is None:
        raise Skip(f"no kubelet.sock in {share.some(item.path for item in host.sockets.value)}")
    for item in pool.plugin_daemonsets(facts):
        subject = f"DaemonSet {pool.full_name(item.metadata)}"
        path = _host_path(item.spec.template.spec, _PLUGIN_DIRECTORY)
        if path is None:
            yield Result(
                Status.FAIL,
                "its container does not see the kubelet's sockets",
                subject,
                (Evidence(subject, f"no volume is mounted on {_PLUGIN_DIRECTORY}"),),
                f"mount the hostPath {kubelet.path} on {_PLUGIN_DIRECTORY}",
            )
            continue
        real = next((found.real for found in host.sockets.value if found.path == path), path)
        evidence = (Evidence(subject, f"hostPath {path}"), Evidence(host.name, f"kubelet.sock lies in {kubelet.real}"))
        if real == kubelet.real:
            yield Result(Status.PASS, f"both use {kubelet.real}", subject, evidence)
            continue
        others = [found.real for found in host.sockets.value if found.real == real and found.names]
        yield Result(
            Status.FAIL,
            "the plugin and the kubelet use different directories: the plugin cannot register",
            subject,
            (*evidence, *(Evidence(host.name, f"the plugin's sockets lie in {other}") for other in others)),
            f"hostPath {kubelet.path} in the DaemonSet",
        )


def _kubelet_directory(host: Host, found: tuple[Sockets, ...]) -> Sockets | None:
    """Where kubelet.sock lies; where it was not recorded, the directory below the kubelet's root."""
    root = host.kubelet.map(lambda kubelet: f"{kubelet.root}/device-plugins").value
    seen = next((item for item in found if "kubelet.sock" in item.names), None)
    return seen or next((item for item in found if item.path == root), None)


def _host_path(spec: kube.PodSpec, inside: str) -> str | None:
    """The host path under which a directory of the container lies, "/" ends removed."""
    volumes = {volume.name: volume.host_path.path for volume in spec.volumes or () if volume.host_path}
    for container in spec.containers:
        for mount in sorted(container.volume_mounts or (), key=lambda mount: -len(mount.mount_path)):
            base = mount.mount_path.rstrip("/")
            if mount.name in volumes and (inside == base or inside.startswith(f"{base}/")):
                parts = (volumes[mount.name].rstrip("/"), mount.sub_path.strip("/"), inside[len(base) :].strip("/"))
                return "/".join(part for part in parts if part)
    return None


def monitor_path(facts: Facts, options: Options) -> Iterator[Result]:
    for item in pool.plugin_daemonsets(facts):
        spec = item.spec.template.spec
        monitor = next(
            (c for c in spec.containers if "monitor" in c.name or "vgpu-monitor" in " ".join(c.command or ())), None
        )
        plugin = next((container for container in spec.containers if container is not monitor), None)
        if monitor is None or plugin is None:
            continue
        subject = f"DaemonSet {pool.full_name(item.metadata)}"
        written = f"{_env(plugin, 'HOOK_PATH') or '/usr/local/vgpu'}/vgpu/containers"
        read = f"{_env(monitor, 'HOOK_PATH') or '/tmp/vgpu'}/containers"
        wanted = written.removesuffix("/containers")
        seen = _host_path(kube.PodSpec(containers=[monitor], volumes=spec.volumes), read)
        source = _host_path(kube.PodSpec(containers=[plugin], volumes=spec.volumes), written)
        if seen != (source or written):
            remedy = f"HOOK_PATH={wanted} in the monitor's container, with the same hostPath mounted"
            keeper = mend.keeper(item.metadata)
            told = f"the plugin writes {source or written}, the monitor reads {seen or f'{read} of its own'}"
            yield Result(
                Status.WARN,
                "the monitor reads where the plugin does not write: its metrics of containers stay empty",
                subject,
                (Evidence(subject, told),),
                f"{remedy}: set it in {keeper}, which keeps this object" if keeper else remedy,
                _mended(item, monitor, plugin, wanted) if source else (),
            )


def _mended(item: kube.Workload, monitor: kube.Container, plugin: kube.Container, hook_path: str) -> tuple[Change, ...]:
    """The change after which the monitor reads where the plugin writes."""
    volumes, written = item.spec.template.spec.volumes, f"{hook_path}/containers"
    source = _host_path(kube.PodSpec(containers=[plugin], volumes=volumes), written)
    if _host_path(kube.PodSpec(containers=[monitor], volumes=volumes), written) == source:
        return mend.monitor_path(item, monitor, hook_path, None)
    return mend.monitor_path(item, monitor, hook_path, _mount_of(plugin, written))


def _mount_of(container: kube.Container, inside: str) -> kube.VolumeMount | None:
    """The mount of a container under which a directory lies, the innermost one."""
    mounts = sorted(container.volume_mounts or (), key=lambda mount: -len(mount.mount_path))
    return next((mount for mount in mounts if f"{inside}/".startswith(f"{mount.mount_path.rstrip('/')}/")), None)


def _env(container: kube.Container, name: str) -> str:
    return next((item.value or "" for item in container.env or () if item.name == name), "").rstrip("/")


def rivals(facts: Facts, options: Options) -> Iterator[Result]:
    share.everything(facts)
    gpus = {gpu.name: gpu for gpu in pool.gpu_nodes(facts) if gpu.cards}
    if not gpus:
        raise Skip("no node has registered cards")
    for pod in facts.pods.need():
        other = rival(pod)
        if other and pod.spec.node_name in gpus and pool.alive(pod):
            yield Result(
                Status.FAIL,
                f"{other} runs beside the vGPU plugin and hands out the same cards",
                f"Node {pod.spec.node_name}",
                (Evidence(share.pod_subject(pod), ", ".join(container.image for container in pod.spec.containers)),),
                "keep one plugin per node, by nodeSelector or the label nvidia.com/gpu.deploy.device-plugin=false",
            )
    for gpu in gpus.values():
        have = {**(gpu.node.status.capacity or {}), **(gpu.node.status.allocatable or {})}
        for name in _RIVAL_RESOURCES:
            if name not in have:
                continue
            subject, evidence = share.node_subject(gpu), (Evidence(share.node_subject(gpu), f"{name}: {have[name]}"),)
            if pool.amount(have, name):
                yield Result(
                    Status.FAIL,
                    f"also offers {name}: the same cards are given out twice",
                    subject,
                    evidence,
                    "remove the other device plugin from this node",
                )
            else:
                yield Result(
                    Status.WARN,
                    f"still lists {name}, left behind by another plugin",
                    subject,
                    evidence,
                    "it goes with a restart of the kubelet, or by a patch of the node's status",
                )


def rival(pod: kube.Pod) -> str:
    """The plugin that a pod is, if it is one that hands out the same cards, else ""."""
    if pool.is_plugin(pod.spec, pod.metadata):
        return ""
    for container in pod.spec.containers:
        name = pool.image_name(container.image)
        found = next((title for image, title in _RIVALS if name == image or name.startswith(f"{image}-")), "")
        if found and (
            found != "HAMi's device plugin" or "device-plugin" in " ".join((container.name, *(container.command or ())))
        ):
            return found
    return ""


def filter_devices(facts: Facts, options: Options) -> Iterator[Result]:
    """Compares what the node configuration filters out with what the plugin registered all the same."""
    config = pool.node_config(facts)
    if config is None:
        raise Skip("there is no node configuration")
    document = read_json(config.text)
    entries = _node_entries(document)
    if not entries:
        raise Skip("the node configuration names no node")
    gpus = {gpu.name: gpu for gpu in pool.gpu_nodes(facts)}
    known = {node.metadata.name for node in facts.nodes.need()}
    filtered = 0
    for entry in entries:
        name = str(_get(entry, "name") or "")
        key, value = _filter(entry)
        if not key:
            continue
        filtered += 1
        gpu = gpus.get(name)
        if name not in known:
            yield Result(
                Status.FAIL,
                "the filter has no effect: no node has this name",
                f"Node {name}",
                (Evidence(config.place, f"{name}: {key} {value}"), Evidence("Nodes", share.some(sorted(known)))),
                f"name it as the cluster does{f', {meant}' if (meant := near(name, known)) else ''}",
            )
            continue
        evidence: list[Evidence] = [Evidence(config.place, f"{name}: {key} {value}")]
        if gpu is not None:
            evidence.append(Evidence(share.node_subject(gpu), f"{share.count(len(gpu.cards), 'card')} registered"))
        trouble = _trouble(key, value, gpu, _physical(facts, gpu, len(gpus)) if gpu else None)
        if trouble:
            summary, remedy = trouble
            yield Result(
                Status.FAIL, summary, f"Node {name}", tuple(evidence), f"{remedy}; restart the plugin pod of that node"
            )
    if not filtered:
        yield Result(Status.PASS, "no cards are filtered out")


def _node_entries(document: Document) -> list[dict[str, Any]]:
    root = document.root.plain() if document.root is not None else None
    found = _get(root, "nodeconfig") if isinstance(root, dict) else None
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def _get(values: Mapping[str, Any], name: str) -> Any:
    """A key in any case, as encoding/json takes it; the last one wins."""
    return next((value for key, value in reversed(list(values.items())) if key.lower() == name), None)


def _filter(entry: Mapping[str, Any]) -> tuple[str, Any]:
    """The key that filters, or was meant to, and its value; "" when there is none."""
    keys = [key for key in entry if key.lower() == "filterdevices"] or [
        key for key in entry if near(key, ("filterdevices",)) or "filter" in key.lower()
    ]
    return (keys[-1], entry[keys[-1]]) if keys else ("", None)


def _trouble(key: str, value: Any, gpu: GpuNode | None, total: int | None) -> tuple[str, str] | None:
    """Why a filter has no effect, and what to write."""
    if key.lower() != "filterdevices":
        return f"the filter has no effect: {key} is not a key that is read", f'write "filterdevices": {_plain(value)}'
    if not isinstance(value, dict):
        return "the filter has no effect: it is no mapping, and the whole file is dropped", '{"uuid": [], "index": []}'
    unknown = [name for name in value if name.lower() not in ("uuid", "index")]
    uuids, indexes = _get(value, "uuid") or [], _get(value, "index") or []
    if not _all(uuids, str) or not _all(indexes, int) or any(index < 0 for index in indexes):
        return (
            "the filter has no effect: uuid takes texts and index numbers, and the whole file is dropped",
            f"write {_plain(value)}",
        )
    if unknown and not uuids and not indexes:
        return f"the filter has no effect: {unknown[0]} is not a key that is read", "use uuid or index"
    if gpu is None or gpu.register is None:
        return None
    registered = {card.uuid for card in gpu.cards}
    still = [uuid for uuid in uuids if uuid in registered]
    if still:
        return f"{share.some(still)} is filtered out, but still registered", "the filter is newer than the plugin"
    out = {index for index in indexes if total is not None and 0 <= index < total}
    if total is not None and out and len(gpu.cards) > total - len(out):
        return "cards are filtered out, but all are still registered", "the filter is newer than the plugin"
    wrong = [str(index) for index in indexes if total is not None and index >= total]
    wrong += [uuid for uuid in uuids if not uuid.startswith(("GPU-", "MIG-"))]
    if wrong:
        return (
            f"the filter names {share.some(wrong)}, which is no card of this node",
            "name cards as nvidia-smi -L does",
        )
    return None


def _all(values: Any, kind: type) -> bool:
    return isinstance(values, list) and all(type(value) is kind for value in values)


def _physical(facts: Facts, gpu: GpuNode, nodes: int) -> int | None:
    """The number of cards in a node, where the machine itself or NVIDIA's feature discovery tells it."""
    host = facts.host.value
    if host is not None and host.uuids.value and (host.name == gpu.name or nodes == 1):
        return len(host.uuids.value)
    text = gpu.node.metadata.label("nvidia.com/gpu.count") or ""
    return int(text) if text.isdigit() else None


def _plain(value: Any) -> str:
    """A filter as it should be written: indexes as numbers."""
    if not isinstance(value, dict):
        return '{"index": [0]}'
    indexes = [int(item) for item in value.get("index") or () if str(item).isdigit()]
    uuids = [str(item) for item in value.get("uuid") or ()]
    parts = [f'"uuid": {uuids}'.replace("'", '"')] if uuids else []
    parts += [f'"index": {indexes}'] if indexes else []
    return "{" + ", ".join(parts) + "}"


CHECKS = (
    Check(
        "rival-plugin",
        "No other plugin hands out the same cards",
        "plugin",
        Status.FAIL,
        (Part.NODES, Part.PODS),
        (Where.API,),
        rivals,
        also=(Part.CONFIGMAPS,),
    ),
    Check(
        "filter-devices",
        "Cards that the node configuration filters out are not registered",
        "plugin",
        Status.FAIL,
        (Part.NODES, Part.CONFIGMAPS),
        (Where.API,),
        filter_devices,
        also=(Part.HOST,),
        explain="A misspelt key or a wrong type in filterdevices is ignored without a message.",
    ),
    Check(
        "socket-directory",
        "The plugin's sockets and kubelet.sock lie in one directory",
        "plugin",
        Status.FAIL,
        (Part.DAEMONSETS, Part.HOST),
        (Where.API, Where.MACHINE),
        socket_directory,
        explain="With a moved kubelet root (k3s, --root-dir) the plugin waits for a kubelet that never hears of it: "
        "`could not register device plugin: context deadline exceeded`.",
    ),
    Check(
        "monitor-path",
        "The monitor reads where the plugin writes",
        "plugin",
        Status.WARN,
        (Part.DAEMONSETS,),
        (Where.API,),
        monitor_path,
        fixable=True,
        explain="Upstream's manifest has HOOK_PATH=/tmp/vgpu in the monitor; the plugin writes under /usr/local.",
    ),
)
