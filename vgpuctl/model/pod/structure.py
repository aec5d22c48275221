"""Rules on structure: fields at a level that does not know them, and values of the wrong type."""

from __future__ import annotations

from collections.abc import Iterator

from vgpuctl.model.context import Context
from vgpuctl.model.document import Entry, Mapping, Node, Position, Scalar, Sequence
from vgpuctl.model.manifest import Manifest, entries, join, near
from vgpuctl.model.pod import fields, names
from vgpuctl.model.pod.ask import written_of
from vgpuctl.model.pod.template import Level, Template
from vgpuctl.model.rule import Hit

METADATA_PARTS = ("annotations", "labels")


def structure(template: Template, context: Context) -> Iterator[tuple[str, Hit]]:
    """Fields that the API server does not know at their level: (`field-misspelt` or `wrong-nesting`, place)."""
    for level in template.levels:
        told: set[str] = set()
        for entry in entries(level.node):
            if entry.name in level.fields:
                continue
            path = join(level.path, entry.name)
            right = _misspelt(entry.name, level)
            if right:
                yield (
                    "field-misspelt",
                    Hit(
                        entry.position,
                        path,
                        f"{level.kind} has no field {entry.name}: the API server drops or refuses it",
                        f"{right}:",
                    ),
                )
                continue
            home = _home(entry, level, context)
            if home and home not in told:
                told.add(home)
                yield "wrong-nesting", Hit(entry.position, path, f"{entry.name} has no effect in {level.kind}", home)
    yield from (("wrong-nesting", hit) for hit in _pod_level(template, context))


def _misspelt(name: str, level: Level) -> str:
    right = near(name, level.fields)
    return "" if right in level.node.names else right


def _home(entry: Entry, level: Level, context: Context) -> str:
    """Where a field that stands in the wrong place belongs; "" for one that is known nowhere."""
    name = entry.name
    if context.names.what(name):
        return "below the container: resources: / limits:"
    if level.fields is not fields.RESOURCES and name in ("limits", "requests"):
        return f"below the container: resources: / {name}:"
    if name == "resources":
        return "below the container" if _mentions_vgpu(entry.value, context) else ""
    if name in METADATA_PARTS:
        return f"metadata: / {name}:"
    if name == "queue":
        return f"the annotation {names.QUEUE} on the pod"
    if name in ("schedulerName", "nodeName", "containers", "runtimeClassName", "nodeSelector", "priorityClassName"):
        return f"the pod's spec: {name}:"
    if name in ("env", "securityContext", "volumeMounts", "image", "command", "args"):
        return f"below the container: {name}:"
    return "securityContext: / privileged:" if name == "privileged" else ""


def _pod_level(template: Template, context: Context) -> Iterator[Hit]:
    entry = template.spec.entry("resources")
    if entry and _mentions_vgpu(entry.value, context):
        path = join(join(template.path, "spec"), "resources")
        yield Hit(
            entry.position,
            path,
            "vGPU limits count per container only: the API server refuses them for a pod",
            "move it below the container",
        )


def _mentions_vgpu(node: Node, context: Context) -> bool:
    return any(context.names.what(e.name) or _mentions_vgpu(e.value, context) for e in entries(node))


def field_misspelt(template: Template, context: Context) -> Iterator[Hit]:
    yield from (hit for rule, hit in structure(template, context) if rule == "field-misspelt")


def wrong_nesting(template: Template, context: Context) -> Iterator[Hit]:
    yield from (hit for rule, hit in structure(template, context) if rule == "wrong-nesting")


def not_a_string(template: Template, context: Context) -> Iterator[Hit]:
    """Annotations, labels and variables are strings; YAML makes a number or a boolean of a bare word."""
    values: list[tuple[Position, str, Node | None, str]] = [
        (entry.position, path, entry.value, entry.name)
        for part in METADATA_PARTS
        for entry, path in (*template.annotations(part), *template.outer_annotations(part))
    ]
    for container in template.containers:
        for name, item, path in container.env:
            entry = item.entry("value")
            if entry:
                values.append((entry.value.position, join(path, "value"), entry.value, name))
    for position, path, node, name in values:
        wrong = isinstance(node, (Mapping, Sequence)) or (
            isinstance(node, Scalar) and node.value is not None and not isinstance(node.value, str)
        )
        if wrong:
            text = written_of(node) if node else ""
            yield Hit(position, path, f"{name} must be a string: the API server refuses the object", f'"{text}"')


_TYPED = {
    "replicas": int,
    "minAvailable": int,
    "parallelism": int,
    "completions": int,
    "maxRetry": int,
    "backoffLimit": int,
    "privileged": bool,
    "hostNetwork": bool,
    "hostPID": bool,
    "hostIPC": bool,
}


def quoted_number(template: Template, context: Context) -> Iterator[Hit]:
    yield from _quoted(template, int, "a number")


def quoted_bool(template: Template, context: Context) -> Iterator[Hit]:
    yield from _quoted(template, bool, "true or false")


def _quoted(template: Template, kind: type, wanted: str) -> Iterator[Hit]:
    for level in template.levels:
        for entry in entries(level.node):
            if _TYPED.get(entry.name) is kind and entry.name in level.fields and _is_text(entry.value):
                yield Hit(
                    entry.position,
                    join(level.path, entry.name),
                    f"{entry.name} must be {wanted}, not text: the API server refuses the object",
                    f"{entry.name}: {written_of(entry.value).strip()}, without quotes",
                )


def _is_text(node: Node) -> bool:
    return isinstance(node, Scalar) and isinstance(node.value, str)


_TEMPLATE_KINDS = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob", "ReplicationController")


def no_template(manifest: Manifest, context: Context) -> Iterator[Hit]:
    """A workload without a pod template: the containers stand somewhere else."""
    if manifest.kind not in _TEMPLATE_KINDS:
        return
    for entry, path in _containers(manifest.root, manifest.path):
        message = f"{entry.name} here is in no pod template: the API server drops or refuses it"
        yield Hit(entry.position, path, message, "spec: / template: / spec: / containers:")
        return


def _containers(node: Node, path: str) -> Iterator[tuple[Entry, str]]:
    for entry in entries(node):
        at = join(path, entry.name)
        if entry.name == "containers" and isinstance(entry.value, Sequence):
            yield entry, at
        yield from _containers(entry.value, at)
    if isinstance(node, Sequence):
        for index, item in enumerate(node):
            yield from _containers(item, join(path, index))
