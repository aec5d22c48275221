"""Rules on what lets a container out of its share: variables, mounts, privileges."""

from __future__ import annotations

import re
from collections.abc import Iterator

from vgpuctl.model.context import Context
from vgpuctl.model.document import Mapping, Scalar, find
from vgpuctl.model.manifest import items, join, text_of
from vgpuctl.model.pod import names
from vgpuctl.model.pod.ask import asks, wants_vgpu
from vgpuctl.model.pod.template import Container, Template
from vgpuctl.model.rule import Hit

_LIMIT_VARIABLE = re.compile(r"CUDA_DEVICE_(MEMORY_LIMIT(_\d+)?|SM_LIMIT(_\d+)?|MEMORY_SHARED_CACHE)")
_LIMITER_PATHS = ("/etc/ld.so.preload", "/usr/local/vgpu", "/tmp/vgpu", "/tmp/vgpulock")
_VISIBLE = "NVIDIA_VISIBLE_DEVICES"
_NO_CARD = ("", "none", "void")


def _has_vgpu(container: Container, context: Context) -> bool:
    return any(True for part in ("limits", "requests") for _ in asks(container, part, context))


def limiter_off(container: Container, context: Context) -> Iterator[Hit]:
    if container.init or not _has_vgpu(container, context):
        return
    for name, item, path in container.env:
        value = find(item, "value")
        text = str(value.value) if isinstance(value, Scalar) else ""
        if name == "CUDA_DISABLE_CONTROL":
            why = f"the plugin looks at the name only, even {text!r} removes the limiter: the whole card is seen"
            yield Hit(item.position, path, why, "remove the variable")
        elif name == "GPU_CORE_UTILIZATION_POLICY" and text.lower() == "disable":
            yield Hit(item.position, path, "this switches the core limit off", "remove the variable")
        elif _LIMIT_VARIABLE.fullmatch(name):
            message = f"{name} overrides what the plugin sets: the container sets its own limit"
            yield Hit(item.position, path, message, "remove the variable; the limits are in resources.limits")
    for index, mount in items(container.node.get("volumeMounts")):
        target = text_of(mount.get("mountPath")).rstrip("/")
        if target in _LIMITER_PATHS or target.startswith("/usr/local/vgpu/"):
            path = join(join(container.path, "volumeMounts"), index)
            yield Hit(mount.position, path, f"a mount over {target} hides the limiter's own", "mount it elsewhere")


def visible_devices(container: Container, context: Context) -> Iterator[Hit]:
    for name, item, path in container.env:
        value = item.get("value")
        if name != _VISIBLE or not isinstance(value, Scalar) or str(value.value or "").lower() in _NO_CARD:
            continue
        text = str(value.value)
        cards = "every card of the node" if text.lower() == "all" else f"the card {text}"
        remedy = (
            "remove the variable, the plugin sets it"
            if _has_vgpu(container, context)
            else f"request {context.names.number} instead"
        )
        yield Hit(item.position, path, f"{_VISIBLE}={text} uses {cards} outside all accounting", remedy)


def preload(container: Container, context: Context) -> Iterator[Hit]:
    if not container.init and _has_vgpu(container, context):
        for name, item, path in container.env:
            if name == "LD_PRELOAD":
                message = "a library of LD_PRELOAD is loaded before the limiter; one that wraps CUDA can go around it"
                yield Hit(item.position, path, message, "make sure that it does not touch CUDA")


def privileged(container: Container, context: Context) -> Iterator[Hit]:
    security = container.node.get("securityContext")
    entry = security.entry("privileged") if isinstance(security, Mapping) else None
    asked = entry and isinstance(entry.value, Scalar) and entry.value.value in (True, "true")
    if entry and asked and _concerns_gpus(container.template, context):
        yield Hit(
            entry.position,
            join(join(container.path, "securityContext"), "privileged"),
            "a privileged container sees every card of the node, uncounted",
            "privileged: false",
        )


def host_devices(template: Template, context: Context) -> Iterator[Hit]:
    if not wants_vgpu(template, context):
        return
    for index, volume in items(template.spec.get("volumes")):
        path = text_of(find(volume, "hostPath", "path"))
        if path.rstrip("/") == "/dev" or path.startswith("/dev/nvidia"):
            at = join(join(join(template.path, "spec"), "volumes"), index)
            yield Hit(volume.position, at, f"the host's {path} gives cards outside all accounting", "remove the volume")


def _concerns_gpus(template: Template, context: Context) -> bool:
    if wants_vgpu(template, context) or "nvidia" in text_of(template.spec.get("runtimeClassName")):
        return True
    if any(entry.name in (names.USE_TYPE, names.NO_USE_TYPE, names.MODE) for entry, _ in template.annotations()):
        return True
    return any(name.startswith(("NVIDIA_", "CUDA_")) for c in template.containers for name, _, _ in c.env)
