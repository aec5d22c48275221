"""Finds the pod templates of an object, and shows each with what surrounds it.

The known workloads have their templates at known places; in any other object every `spec` that holds a list of
containers counts, so operators' own workloads (a PyTorchJob, a RayCluster) are covered too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from vgpuctl.model.document import Entry, Mapping, Node, Position, Scalar, Sequence, find
from vgpuctl.model.manifest import Manifest, entries, items, join, text_of
from vgpuctl.model.pod import fields

_PLACES: dict[str, tuple[str, ...]] = {
    "Pod": (),
    "PodTemplate": ("template",),
    "Deployment": ("spec", "template"),
    "ReplicaSet": ("spec", "template"),
    "ReplicationController": ("spec", "template"),
    "StatefulSet": ("spec", "template"),
    "DaemonSet": ("spec", "template"),
    "Job": ("spec", "template"),
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
}
_TASK_PLACES: dict[str, tuple[str, ...]] = {
    "Job": ("spec", "tasks"),
    "JobTemplate": ("spec", "tasks"),
    "CronJob": ("spec", "jobTemplate", "spec", "tasks"),
}
_VOLCANO = ("batch.volcano.sh", "flow.volcano.sh")


@dataclass(frozen=True)
class Level:
    """A mapping whose field names are known. kind: what it is, for the message."""

    kind: str
    node: Mapping
    path: str
    fields: frozenset[str]


@dataclass(frozen=True)
class Container:
    """One container. init: it is an init container, which the vGPU scheduler does not look at."""

    template: Template
    node: Mapping
    path: str
    init: bool

    @property
    def name(self) -> str:
        return text_of(self.node.get("name"))

    def resources(self, part: str) -> tuple[Entry | None, str, list[Entry]]:
        """The entry `limits` or `requests`, its path, and the amounts in it."""
        path = join(join(self.path, "resources"), part)
        block = self.node.get("resources")
        entry = block.entry(part) if isinstance(block, Mapping) else None
        return entry, path, list(entries(entry.value if entry else None))

    @property
    def env(self) -> Iterator[tuple[str, Mapping, str]]:
        """Name, entry and path of each environment variable."""
        for index, item in items(self.node.get("env")):
            yield text_of(item.get("name")), item, join(join(self.path, "env"), index)


@dataclass(frozen=True)
class Template:
    """A pod template. metadata: the pod's own. outer: metadata of the objects around it, nearest first.
    job: the spec of the Volcano Job that it is a task of. known: its kind of workload is known."""

    manifest: Manifest
    path: str
    spec: Mapping
    spec_at: Position
    metadata: Mapping | None = None
    outer: tuple[tuple[str, Mapping], ...] = ()
    job: Mapping | None = None
    job_path: str = ""
    known: bool = True
    task: str = ""
    levels: tuple[Level, ...] = field(default=(), compare=False)

    @property
    def live(self) -> bool:
        """A pod as the API server holds it, not one that a person wrote."""
        return self.manifest.live and self.manifest.kind == "Pod"

    @property
    def title(self) -> str:
        return f"{self.manifest.title} task {self.task}" if self.task else self.manifest.title

    @cached_property
    def containers(self) -> tuple[Container, ...]:
        """The main containers, then the init containers."""
        base = join(self.path, "spec")
        return tuple(
            Container(self, node, join(join(base, part), index), init)
            for part, init in (("containers", False), ("initContainers", True))
            for index, node in items(self.spec.get(part))
        )

    @property
    def main(self) -> tuple[Container, ...]:
        return tuple(container for container in self.containers if not container.init)

    def annotations(self, part: str = "annotations") -> Iterator[tuple[Entry, str]]:
        """The pod's own annotations (or labels) and their paths."""
        base = join(join(self.path, "metadata"), part)
        for entry in entries(find(self.metadata, part)):
            yield entry, join(base, entry.name)

    def outer_annotations(self, part: str = "annotations") -> Iterator[tuple[Entry, str]]:
        """Those of the objects around the pod."""
        for path, metadata in self.outer:
            for entry in entries(metadata.get(part)):
                yield entry, join(join(path, part), entry.name)

    def annotation(self, key: str) -> str | None:
        """The value of one of the pod's own annotations; None when it is not there."""
        node = find(self.metadata, "annotations", key)
        return str(node.value) if isinstance(node, Scalar) else None


def templates(manifest: Manifest) -> Iterator[Template]:
    """The pod templates of an object, in order of appearance."""
    kind, root = manifest.kind, manifest.root
    if manifest.group in _VOLCANO or (kind == "Job" and isinstance(find(root, "spec", "tasks"), Sequence)):
        place = _TASK_PLACES.get(kind)
        if place:
            yield from _tasks(manifest, place)
        return
    if kind in _PLACES and not (kind == "Job" and manifest.group not in ("batch", "extensions", "")):
        yield from _at(manifest, _PLACES[kind])
        return
    yield from _anywhere(manifest, root, manifest.path)


def _tasks(manifest: Manifest, place: tuple[str, ...]) -> Iterator[Template]:
    job = find(manifest.root, *place[:-1])
    path = _path(manifest.path, place)
    outer = tuple(_metadata_on(manifest, place))
    levels = [*_levels(manifest, "Volcano Job", fields.WORKLOAD_SPECS["VolcanoJob"], place[:-1])]
    for index, task in items(find(manifest.root, *place)):
        here = join(path, index)
        entry = task.entry("template")
        template = _template(manifest, entry.value if entry else None, join(here, "template"))
        if template:
            yield replace(
                template,
                outer=outer,
                job=job if isinstance(job, Mapping) else None,
                job_path=path.rpartition(".")[0],
                task=text_of(task.get("name")),
                levels=(*levels, Level("task", task, here, fields.TASK), *template.levels),
            )


def _at(manifest: Manifest, place: tuple[str, ...]) -> Iterator[Template]:
    template = _template(manifest, find(manifest.root, *place), _path(manifest.path, place))
    if template:
        outer = tuple(_metadata_on(manifest, place)) if place else ()
        known = fields.WORKLOAD_SPECS.get(manifest.kind)
        levels = tuple(_levels(manifest, manifest.kind, known, ("spec",))) if known else ()
        yield replace(template, outer=outer, levels=(*levels, *template.levels))


def _levels(manifest: Manifest, kind: str, known: frozenset[str], place: tuple[str, ...]) -> Iterator[Level]:
    yield Level(kind, manifest.root, manifest.path, fields.OBJECT)
    metadata = manifest.root.get("metadata")
    if isinstance(metadata, Mapping):
        yield Level("metadata", metadata, join(manifest.path, "metadata"), fields.METADATA)
    spec = find(manifest.root, *place)
    if isinstance(spec, Mapping):
        yield Level(f"the {kind}'s spec", spec, _path(manifest.path, place), known)


def _metadata_on(manifest: Manifest, place: tuple[str, ...]) -> Iterator[tuple[str, Mapping]]:
    for depth in range(len(place) - 1, -1, -1):
        metadata = find(manifest.root, *place[:depth], "metadata")
        if isinstance(metadata, Mapping):
            yield join(_path(manifest.path, place[:depth]), "metadata"), metadata


def _path(base: str, place: tuple[str, ...]) -> str:
    for key in place:
        base = join(base, key)
    return base


def _template(manifest: Manifest, node: Node | None, path: str) -> Template | None:
    if not isinstance(node, Mapping):
        return None
    entry = node.entry("spec")
    if entry is None or not isinstance(entry.value, Mapping):
        return None
    metadata = node.get("metadata")
    own = metadata if isinstance(metadata, Mapping) else None
    template = Template(manifest, path, entry.value, entry.position, own)
    return replace(template, levels=tuple(_pod_levels(template, node)))


def _pod_levels(template: Template, node: Mapping) -> Iterator[Level]:
    path = template.path
    top = fields.OBJECT if node is template.manifest.root else fields.TEMPLATE
    yield Level("the pod", node, path, top)
    if template.metadata:
        yield Level("metadata", template.metadata, join(path, "metadata"), fields.METADATA)
    yield Level("the pod's spec", template.spec, join(path, "spec"), fields.POD_SPEC)
    for container in template.containers:
        yield Level("a container", container.node, container.path, fields.CONTAINER)
        for key, known in (("resources", fields.RESOURCES), ("securityContext", fields.SECURITY)):
            inner = container.node.get(key)
            if isinstance(inner, Mapping):
                yield Level(key, inner, join(container.path, key), known)
        for _, item, at in container.env:
            yield Level("a variable", item, at, fields.ENV)


def _anywhere(manifest: Manifest, node: Node, path: str) -> Iterator[Template]:
    if isinstance(node, Mapping):
        if isinstance(find(node, "spec", "containers"), Sequence):
            template = _template(manifest, node, path)
            if template:
                outer = manifest.root.get("metadata")
                around = ((join(manifest.path, "metadata"), outer),) if isinstance(outer, Mapping) else ()
                yield replace(template, outer=around if node is not manifest.root else (), known=False)
            return
        for entry in node:
            yield from _anywhere(manifest, entry.value, join(path, entry.name))
    elif isinstance(node, Sequence):
        for index, item in enumerate(node):
            yield from _anywhere(manifest, item, join(path, index))
