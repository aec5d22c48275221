"""The objects of an installation, in the order in which they are applied.

Upstream's names are used, so that whoever looks for the plugin finds it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import msgspec

from vgpuctl import __version__, resources
from vgpuctl.model import kube
from vgpuctl.model.change import Target
from vgpuctl.model.config.generate import generated, plan
from vgpuctl.model.config.kind import DEVICE, NODE
from vgpuctl.model.context import Context
from vgpuctl.model.install import image, libraries, placed, template
from vgpuctl.model.install.options import SYSTEM_NAMESPACES, Options
from vgpuctl.model.install.template import Object, at, drop, put
from vgpuctl.model.quota.team import MANAGED_BY, MANAGER

PLUGIN: Final = "volcano-device-plugin"
"""The name of the plugin's DaemonSet, account, role and binding, and the value of its pods' label `name`."""
CLEANUP: Final = "vgpuctl-cleanup"
PART_OF: Final = "app.kubernetes.io/part-of"
VERSION: Final = "app.kubernetes.io/version"
SCRIPT: Final = "templates/install/place.sh"
TEMPLATE: Final = "vgpuctl.dev/template"
"""An annotation of the plugin's pods: the hash of the template that they were made from, by which an upgrade sees which
nodes are done."""
UPSTREAM_LIBRARY: Final = "/k8s-vgpu/lib/nvidia/libvgpu.so"
"""Where the plugin's image has a library of its own."""

_POD = ("spec", "template", "spec")


def manifests(
    options: Options,
    built: Mapping[str, bytes],
    context: Context | None = None,
    *,
    named: bool = False,
    digests: Mapping[str, str] | None = None,
) -> list[Object]:
    """All objects. built: architecture as `uname -m` says it → our library, not looked at for `shim: upstream`.
    context, named: what is known of the pool, for the configuration, as `config generate` takes them. digests: of
    libraries that are not at hand, instead of `built`; their ConfigMaps have no content then.

    Raises ValueError where our library is wanted and none is given: the image's must not come in its place.
    """
    found = {} if options.shim == "upstream" else built
    hashes = libraries.hashes(found) if digests is None else digests
    if options.shim == "vgpuctl" and not hashes:
        raise ValueError("our own library is to be placed, and none is given")
    objects = [
        *_namespace(options),
        *_configs(options, context or Context(), named),
        *_runtime_class(options),
        *_access(options),
        *_libraries(options, hashes, found),
        *_monitoring(options),
        _plugin(options, hashes),
    ]
    return [_labelled(item) for item in objects]


def cleanup(options: Options, nodes: Collection[str] = ()) -> list[Object]:
    """What takes the files off the nodes, or off these only. To be applied when no pod of the plugin is there, which
    would place them again; every node is done when all its pods are ready."""
    (item,) = template.load("cleanup")
    if nodes:
        options = msgspec.structs.replace(options, node_selector={})
        terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]} for name in nodes]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        at(item, *_POD)["affinity"] = {"nodeAffinity": required}
    parent, _, folder = options.hook_path.rpartition("/")
    put(options.namespace, item, "metadata", "namespace")
    _pod(item, options)
    put(f"/parent/{folder}", item, *_POD, "initContainers", "remove", "env", "HOOK_PATH", "value")
    put(parent, item, *_POD, "volumes", "parent", "hostPath", "path")
    return [_labelled(item)]


def images(options: Options) -> list[str]:
    """The images that nodes pull."""
    return [image.from_registry(options.image, options.registry)]


def kept(item: Object) -> bool:
    """The object is made where there is none, and is never changed: a configuration belongs to the administrator, a
    namespace or RuntimeClass may be others', and what is immutable is named by its content."""
    return (
        item["kind"] in ("Namespace", "RuntimeClass")
        or "immutable" in item
        or (item["kind"] == "ConfigMap" and any(key in item["data"] for key in (DEVICE.data_key, NODE.data_key)))
    )


def is_device(item: Object) -> bool:
    """The device configuration, which scheduler and plugin read once."""
    return item["kind"] == "ConfigMap" and DEVICE.data_key in item.get("data", {})


def is_part(item: Mapping[str, Any]) -> bool:
    """A live object that an installation made. What other commands of vgpuctl make (a team's namespace, a
    configuration) is managed by it too, but no part of an installation."""
    return ((item.get("metadata") or {}).get("labels") or {}).get(PART_OF) == MANAGER


def target(item: Object) -> Target:
    """What an object is called."""
    metadata = item["metadata"]
    return Target(item["kind"], metadata["name"], metadata.get("namespace", ""), item["apiVersion"])


def hash_of(template: Mapping[str, Any]) -> str:
    """A hash of a pod template, its own annotation left out."""
    bare = {**template, "metadata": {**template["metadata"], "annotations": {}}}
    return hashlib.sha256(json.dumps(bare, sort_keys=True).encode()).hexdigest()[:10]


def wanted_hashes(daemonset: Mapping[str, Any]) -> dict[str, str]:
    """`placed.wanted` of a DaemonSet that is not decoded."""
    return placed.wanted(msgspec.convert(daemonset, kube.Workload, strict=False))


def _labelled(item: Object) -> Object:
    """What is kept has no version: an upgrade does not change it."""
    labels = item["metadata"].setdefault("labels", {})
    labels.update({MANAGED_BY: MANAGER, PART_OF: MANAGER} | ({} if kept(item) else {VERSION: __version__}))
    return item


def _namespace(options: Options) -> Iterator[Object]:
    if options.namespace not in SYSTEM_NAMESPACES:
        (item,) = template.load("namespace")
        put(options.namespace, item, "metadata", "name")
        yield item


def _configs(options: Options, context: Context, named: bool) -> list[Object]:
    """The device configuration where plugin and scheduler look, the node configuration where the pods mount it."""
    known = replace(context, plugin_namespace=options.namespace)
    return generated(plan(options.profile, known, named=named), (DEVICE, NODE)).items


def _runtime_class(options: Options) -> Iterator[Object]:
    if options.runtime_class:
        (item,) = template.load("runtime-class")
        put(options.runtime_class, item, "metadata", "name")
        put(options.runtime_class, item, "handler")
        yield item


def _access(options: Options) -> list[Object]:
    account, role, binding = template.load("rbac")
    put(options.namespace, account, "metadata", "namespace")
    put(options.namespace, binding, "subjects", PLUGIN, "namespace")
    return [account, role, binding]


def _libraries(options: Options, digests: Mapping[str, str], built: Mapping[str, bytes]) -> Iterator[Object]:
    for architecture, digest in digests.items():
        (item,) = template.load("shim")
        put(libraries.name(architecture, digest), item, "metadata", "name")
        put(options.namespace, item, "metadata", "namespace")
        put(architecture, item, "metadata", "annotations", libraries.ARCHITECTURE)
        put(digest, item, "metadata", "annotations", libraries.SHA256)
        if architecture in built:
            put(libraries.packed(built[architecture]), item, "binaryData", libraries.KEY)
        yield item


def _monitoring(options: Options) -> list[Object]:
    objects = template.load(options.monitoring) if options.monitoring else []
    for item in objects:
        put(options.namespace, item, "metadata", "namespace")
        if item["kind"] == options.monitoring:
            put(dict(options.monitoring_labels), item, "metadata", "labels")
    return objects


def _plugin(options: Options, digests: Mapping[str, str]) -> Object:
    (item,) = template.load("plugin")
    put(options.namespace, item, "metadata", "namespace")
    number = options.max_unavailable
    put(int(number) if number.isdigit() else number, item, "spec", "updateStrategy", "rollingUpdate", "maxUnavailable")
    _pod(item, options)
    spec = at(item, *_POD)
    _put_or_drop([msgspec.to_builtins(one) for one in options.tolerations], spec, "tolerations")
    _put_or_drop(options.runtime_class, spec, "runtimeClassName")
    for kind, name, hook_path in (
        ("initContainers", "place", options.hook_path),
        ("containers", PLUGIN, options.hook_path),
        ("containers", "monitor", f"{options.hook_path}/vgpu"),
    ):
        put(hook_path, spec, kind, name, "env", "HOOK_PATH", "value")
        put(options.hook_path, spec, kind, name, "volumeMounts", "lib", "mountPath")
    put(options.hook_path, spec, "volumes", "lib", "hostPath", "path")
    put(f"{options.kubelet_root}/device-plugins", spec, "volumes", "device-plugins", "hostPath", "path")
    if digests:
        put(libraries.text(digests), spec, "initContainers", "place", "env", "LIBRARIES", "value")
        put([_source(*pair) for pair in digests.items()], spec, "volumes", "libraries", "projected", "sources")
    else:
        put(UPSTREAM_LIBRARY, spec, "initContainers", "place", "env", "SOURCE", "value")
        drop(spec, "initContainers", "place", "env", "LIBRARIES")
        drop(spec, "initContainers", "place", "volumeMounts", "libraries")
        drop(spec, "volumes", "libraries")
    put(hash_of(at(item, "spec", "template")), item, "spec", "template", "metadata", "annotations", TEMPLATE)
    return item


def _source(architecture: str, digest: str) -> Object:
    items = [{"key": libraries.KEY, "path": f"{architecture}/{libraries.KEY}"}]
    return {"configMap": {"name": libraries.name(architecture, digest), "items": items}}


def _pod(item: Object, options: Options) -> None:
    """What the pods of both DaemonSets have in common."""
    spec = at(item, *_POD)
    _put_or_drop([{"name": name} for name in options.image_pull_secrets], spec, "imagePullSecrets")
    _put_or_drop(dict(options.node_selector), spec, "nodeSelector")
    put(options.priority_class, spec, "priorityClassName")
    script = resources.text(SCRIPT)
    for container in [*spec["initContainers"], *spec["containers"]]:
        put(images(options)[0], container, "image")
        if "args" in container:
            container["args"][0] = script


def _put_or_drop(value: Any, where: Object, *path: str) -> None:
    """What is empty is left out: the API server does not keep it either."""
    if value:
        put(value, where, *path)
    else:
        drop(where, *path)
