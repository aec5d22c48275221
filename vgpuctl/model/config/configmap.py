"""The ConfigMap around a configuration: its name, its namespace, its data key, and text that lost its indentation."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from vgpuctl.model import configmaps
from vgpuctl.model.config.kind import DEVICE, KINDS, NODE, SCHEDULER, Kind, kind_of
from vgpuctl.model.context import Context
from vgpuctl.model.document import Entry, Mapping, Position, Scalar, Sequence, find, place_of, read_yaml
from vgpuctl.model.finding import Severity
from vgpuctl.model.manifest import Manifest, near
from vgpuctl.model.place import Place
from vgpuctl.model.rule import Hit

_METADATA = ("name", "namespace", "labels", "annotations")
_TOP = {"apiVersion", "kind", "metadata", "data", "binaryData", "immutable", *_METADATA}
_WORDS = ("nvidia", "nodeconfig", "tiers", "actions", "deviceSplitCount", "gpuMemoryFactor", "devicesplitcount")


class ConfigMap(msgspec.Struct, frozen=True):
    """A ConfigMap that holds a configuration. text: the string to look into, None when there is none."""

    kind: Kind
    title: str
    text: Scalar | None
    hits: list[tuple[str, Hit]] = []

    def place(self, outer: str) -> Place:
        """Where the text stands in its file."""
        assert self.text is not None
        return place_of(self.text, outer)


def configmap(manifest: Manifest, context: Context, wanted: Kind | None) -> ConfigMap | None:
    """What a ConfigMap holds for the pool; None when it is another one's."""
    root = manifest.root
    flat = list(_flat(root))
    kind, entry = _holds(manifest, context)
    kind = (_flat_kind(root) if flat else None) or kind or (wanted if flat else None)
    if kind is None:
        return None
    around = [*_name(manifest, kind, context), *_namespace(manifest, kind, context), *_key(manifest, kind, entry)]
    hits = flat or around
    text = entry.value if entry and isinstance(entry.value, Scalar) and isinstance(entry.value.value, str) else None
    if entry and text is None and not flat:
        message = f"the value of {entry.name} is no text: the API server refuses the ConfigMap"
        hits.append(("type-mismatch", Hit(entry.position, f"data.{entry.name}", message, f"{entry.name}: |")))
    if text is not None and flat and not text.text.strip():
        text = None  # it stands outside
    return ConfigMap(kind, manifest.title if manifest.name else "a ConfigMap", text, hits)


def _flat(root: Mapping) -> Iterator[tuple[str, Hit]]:
    """Keys that lost their level, the first of each level."""
    stray = next((entry for entry in root if entry.name in _METADATA), None)
    if stray:
        message = f"{stray.name} has lost its level: the object has no {stray.name}"
        yield "wrong-nesting", Hit(stray.position, stray.name, message, "indent it below metadata: by two spaces")
    data = root.get("data")
    holds = (
        any(isinstance(e.value, Scalar) and e.value.text.strip() for e in data) if isinstance(data, Mapping) else False
    )
    names = [entry.name for entry in root]
    below = list(root)[names.index("data") + 1 :] if "data" in names else list(root)
    lost = next((entry for entry in below if entry.name not in _TOP), None)
    if lost and not holds and (stray or _flat_kind(root)):
        message = f"{lost.name} stands outside data: the ConfigMap holds nothing"
        yield (
            "wrong-nesting",
            Hit(lost.position, lost.name, message, "indent it below data:, and its text below the key"),
        )


def _flat_kind(root: Mapping) -> Kind | None:
    for entry in root:
        for kind in KINDS.values():
            if entry.name == kind.data_key:
                return kind
    inner = Mapping(root.position, tuple(entry for entry in root if entry.name not in _TOP))
    return kind_of(inner) if inner.entries else None


def _holds(manifest: Manifest, context: Context) -> tuple[Kind | None, Entry | None]:
    """The kind of a ConfigMap and the entry of its data that is meant: by name, by data key, by content."""
    data = manifest.root.get("data")
    entries = list(data) if isinstance(data, Mapping) else []
    kind = _by_name(manifest.name, context)
    if kind is None:
        keys = {entry.name for entry in entries}
        kind = next((kind for kind in (DEVICE, SCHEDULER) if kind.data_key in keys), None)
    if kind is None:
        kind = next((found for entry in entries if (found := _content(entry))), None)
    if kind is None:
        names = {k.configmap(context): k for k in KINDS.values() if k.configmap(context)}
        kind = names.get(near(manifest.name, names)) if manifest.name else None
    if kind is None:
        return None, None
    exact = next((entry for entry in entries if entry.name == kind.data_key), None)
    meant = exact or next((entry for entry in entries if _content(entry) is kind), None)
    return kind, meant or (entries[0] if entries else None)


def _by_name(name: str, context: Context) -> Kind | None:
    for kind in KINDS.values():
        if name and name == kind.configmap(context):
            return kind
    return SCHEDULER if name == configmaps.SCHEDULER else None


def _content(entry: Entry) -> Kind | None:
    """The kind of the text of a data entry, if it is one of ours."""
    text = entry.value.value if isinstance(entry.value, Scalar) else None
    if isinstance(entry.value, Mapping):
        return kind_of(entry.value)
    if not isinstance(text, str) or not any(word in text for word in _WORDS):
        return None
    root = read_yaml(text)[0].root
    kind = kind_of(root)
    if kind is DEVICE and isinstance(root, Mapping) and not _is_device(root):
        return None
    return kind


def _is_device(root: Mapping) -> bool:
    """The nvidia section is that of this plugin, and not of another product."""
    nvidia = root.get("nvidia") or root
    return isinstance(nvidia, Mapping) and any(
        entry.name.startswith(("resource", "device", "gpuMemory")) for entry in nvidia
    )


def _name(manifest: Manifest, kind: Kind, context: Context) -> Iterator[tuple[str, Hit]]:
    wanted = kind.configmap(context)
    if _is_template(manifest, "name"):
        yield "unrendered-template", _template(manifest, "name")
        return
    if not wanted or manifest.name == wanted:
        return
    reader = {DEVICE.name: "the plugin reads", NODE.name: "the DaemonSet mounts"}.get(kind.name, "the scheduler mounts")
    message = f"{manifest.name or 'a ConfigMap without a name'} is not read: {reader} {wanted}"
    yield "cm-name", Hit(_metadata(manifest, "name"), "metadata.name", message, f"name: {wanted}")


def _namespace(manifest: Manifest, kind: Kind, context: Context) -> Iterator[tuple[str, Hit]]:
    allowed = kind.namespaces(context)
    if _is_template(manifest, "namespace"):
        yield "unrendered-template", _template(manifest, "namespace")
        return
    if not allowed or manifest.namespace in allowed:
        return
    path, remedy = "metadata.namespace", f"namespace: {allowed[0]}"
    where = " or ".join(allowed)
    if not manifest.namespace:
        message = f"no namespace is written: it must be applied to {where}"
        yield "cm-namespace", Hit(_metadata(manifest, "namespace"), path, message, remedy, Severity.INFO)
        return
    message = f"{manifest.namespace} is not where it is looked for: {where}"
    yield "cm-namespace", Hit(_metadata(manifest, "namespace"), path, message, remedy)


def _key(manifest: Manifest, kind: Kind, entry: Entry | None) -> Iterator[tuple[str, Hit]]:
    if entry and entry.name == kind.data_key:
        return
    data = manifest.root.entry("data") or manifest.root.entry("binaryData")
    position = entry.position if entry else data.position if data else manifest.root.position
    found = f"{entry.name} is not read" if entry else "there is no text in data"
    message = f"{found}: {kind.title}s are looked up under {kind.data_key}"
    yield "cm-data-key", Hit(position, "data", message, f"{kind.data_key}: |")


def _is_template(manifest: Manifest, key: str) -> bool:
    """The value is `{{ … }}`: a mapping for YAML, or a string with the braces in it."""
    value = find(manifest.root, "metadata", key)
    return isinstance(value, (Mapping, Sequence)) or (isinstance(value, Scalar) and "{{" in value.text)


def _template(manifest: Manifest, key: str) -> Hit:
    message = f"the {key} is a template that was not rendered"
    return Hit(_metadata(manifest, key), f"metadata.{key}", message, "render it, or write the value")


def _metadata(manifest: Manifest, key: str) -> Position:
    metadata = find(manifest.root, "metadata")
    entry = metadata.entry(key) if isinstance(metadata, Mapping) else None
    if entry:
        return entry.position
    above = manifest.root.entry("metadata")
    return above.position if above else manifest.root.position
