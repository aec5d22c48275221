"""Rules on whole objects: structure, scope, the order of a queue's amounts, priority classes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from vgpuctl.model.context import Context
from vgpuctl.model.document import Entry, Mapping, Node, Scalar, find
from vgpuctl.model.manifest import Manifest, entries, join, near, text_of
from vgpuctl.model.pod.fields import METADATA, words
from vgpuctl.model.quota.cap import Cap, groups
from vgpuctl.model.rule import Hit

_SPEC: Final = {
    "ResourceQuota": words("hard scopes scopeSelector"),
    "Queue": words(
        "weight capability reclaimable extendClusters guarantee affinity type parent deserved priority dequeueStrategy"
    ),
}
_TOP: Final = {
    "ResourceQuota": words("apiVersion kind metadata spec status"),
    "Queue": words("apiVersion kind metadata spec status"),
    "PriorityClass": words("apiVersion kind metadata value globalDefault description preemptionPolicy"),
}
KINDS: Final = tuple(_TOP)

_TYPED: Final[dict[str, dict[tuple[str, ...], type]]] = {
    "Queue": {("spec", "weight"): int, ("spec", "priority"): int, ("spec", "reclaimable"): bool},
    "PriorityClass": {("value",): int, ("globalDefault",): bool},
}
_HIGHEST: Final = 1_000_000_000
_SYSTEM: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_POLICIES: Final = ("PreemptLowerPriority", "Never")


def _levels(manifest: Manifest) -> Iterator[tuple[str, Mapping, str, frozenset[str]]]:
    top = _TOP.get(manifest.kind)
    if not top:
        return
    yield manifest.kind, manifest.root, manifest.path, top
    metadata, spec = manifest.root.get("metadata"), manifest.root.get("spec")
    if isinstance(metadata, Mapping):
        yield "metadata", metadata, join(manifest.path, "metadata"), METADATA
    if isinstance(spec, Mapping) and manifest.kind in _SPEC:
        yield "spec", spec, join(manifest.path, "spec"), _SPEC[manifest.kind]
    guarantee = find(manifest.root, "spec", "guarantee")
    if isinstance(guarantee, Mapping) and manifest.kind == "Queue":
        yield "guarantee", guarantee, join(join(manifest.path, "spec"), "guarantee"), frozenset(("resource",))


def _unknown(manifest: Manifest) -> Iterator[tuple[Entry, str, str, str, str]]:
    """Fields at a level that does not know them: entry, path, level, the field that was meant here, its home."""
    for level, node, path, fields in _levels(manifest):
        for entry in entries(node):
            if entry.name not in fields:
                right = near(entry.name, fields - node.names)
                yield entry, join(path, entry.name), level, right, "" if right else _home(entry, level, manifest.kind)


def _home(entry: Entry, level: str, kind: str) -> str:
    if entry.name == "spec" and kind == "PriorityClass":
        return "the fields at the top level"
    if entry.name in _SPEC.get(kind, ()) and level != "spec":
        return f"spec: / {entry.name}:"
    if entry.name in _TOP[kind] and level != kind:
        return f"{entry.name}: at the top level"
    if level == "guarantee":
        return "guarantee: / resource:"
    if "/" in entry.name or _holds_resources(entry.value):
        return {"ResourceQuota": "spec: / hard:", "Queue": "spec: / capability:"}.get(kind, "")
    return ""


def _holds_resources(node: Node) -> bool:
    return any("/" in entry.name or _holds_resources(entry.value) for entry in entries(node))


def field_misspelt(manifest: Manifest, context: Context) -> Iterator[Hit]:
    for entry, path, level, right, _ in _unknown(manifest):
        if right:
            yield Hit(entry.position, path, f"{level} has no field {entry.name}: it is dropped or refused", f"{right}:")


def wrong_nesting(manifest: Manifest, context: Context) -> Iterator[Hit]:
    told: set[str] = set()
    for entry, path, level, _, home in _unknown(manifest):
        if home and level not in told:
            told.add(level)
            effect = "dropped" if level == "guarantee" else "limits nothing"
            yield Hit(entry.position, path, f"{entry.name} does not belong in {level}: {effect}", home)
    for group in groups(manifest, context):
        for cap in group.caps:
            if isinstance(cap.entry.value, Mapping):
                message = f"{cap.entry.name} must be a quantity, not a mapping: the API server refuses it"
                yield Hit(cap.entry.position, cap.path, message, 'requests.volcano.sh/vgpu-number: "4", on one line')


def cluster_scoped(manifest: Manifest, context: Context) -> Iterator[Hit]:
    metadata = manifest.root.get("metadata")
    entry = metadata.entry("namespace") if isinstance(metadata, Mapping) else None
    if entry and manifest.kind in ("Queue", "PriorityClass") and text_of(entry.value):
        path = join(join(manifest.path, "metadata"), "namespace")
        yield Hit(entry.position, path, f"a {manifest.kind} has no namespace", "remove it")


def _quoted(manifest: Manifest, kind: type, wanted: str) -> Iterator[Hit]:
    for place, type_ in _TYPED.get(manifest.kind, {}).items():
        node = find(manifest.root, *place[:-1])
        entry = node.entry(place[-1]) if isinstance(node, Mapping) else None
        wrong = entry and isinstance(entry.value, Scalar) and entry.value.value is not None
        if entry and wrong and type_ is kind and not _is(entry.value, kind):
            path = manifest.path
            for key in place:
                path = join(path, key)
            text = entry.value.text if isinstance(entry.value, Scalar) else ""
            yield Hit(
                entry.position,
                path,
                f"{entry.name} must be {wanted}: the API server refuses {text!r}",
                f"{entry.name}: {text.strip()}, without quotes",
            )


def _is(node: Node, kind: type) -> bool:
    value = node.value if isinstance(node, Scalar) else None
    if kind is int and isinstance(value, float):
        return value == int(value)
    return isinstance(value, kind) and not (kind is int and isinstance(value, bool))


def string_for_number(manifest: Manifest, context: Context) -> Iterator[Hit]:
    yield from _quoted(manifest, int, "a number")


def string_for_bool(manifest: Manifest, context: Context) -> Iterator[Hit]:
    yield from _quoted(manifest, bool, "true or false")


def priority_value(manifest: Manifest, context: Context) -> Iterator[Hit]:
    entry = manifest.root.entry("value") if manifest.kind == "PriorityClass" else None
    value = entry.value.value if entry and isinstance(entry.value, Scalar) else None
    if not entry or isinstance(value, bool) or not isinstance(value, (int, float)):
        return
    if manifest.name in _SYSTEM and value == _SYSTEM[manifest.name]:
        return
    if value > _HIGHEST:
        yield Hit(
            entry.position, join(manifest.path, "value"), "at most 1000000000 for users' classes", f"value: {_HIGHEST}"
        )
    elif value < -(1 << 31):
        yield Hit(entry.position, join(manifest.path, "value"), "too low for 32 bits", f"value: {-(1 << 31)}")


def priority_name(manifest: Manifest, context: Context) -> Iterator[Hit]:
    if manifest.kind == "PriorityClass" and manifest.name.startswith("system-") and manifest.name not in _SYSTEM:
        node = find(manifest.root, "metadata", "name")
        assert node is not None
        path = join(join(manifest.path, "metadata"), "name")
        yield Hit(
            node.position, path, "names that begin with system- are reserved", manifest.name.removeprefix("system-")
        )


def priority_policy(manifest: Manifest, context: Context) -> Iterator[Hit]:
    entry = manifest.root.entry("preemptionPolicy") if manifest.kind == "PriorityClass" else None
    if entry and text_of(entry.value) not in _POLICIES:
        path = join(manifest.path, "preemptionPolicy")
        yield Hit(entry.position, path, "unknown policy: the API server refuses it", " or ".join(_POLICIES))


def queue_order(manifest: Manifest, context: Context) -> Iterator[Hit]:
    if manifest.kind != "Queue":
        return
    sections = {group.section: {cap.base: cap for cap in group.caps} for group in groups(manifest, context)}
    order = ("capability", "deserved", "guarantee")
    for upper in order[:-1]:
        for name, cap in sections.get(upper, {}).items():
            for lower in order[order.index(upper) + 1 :]:
                other = sections.get(lower, {}).get(name)
                if other and _less(cap, other):
                    yield Hit(
                        cap.entry.position,
                        cap.path,
                        f"{upper} {cap.written} must be at least {lower} {other.written}: the webhook refuses it "
                        "(older versions: the scheduler crashes in a loop)",
                        f"{upper} {other.written} or more, or {lower} {cap.written} or less",
                    )
                    break


def _less(cap: Cap, other: Cap) -> bool:
    return cap.amount is not None and other.amount is not None and cap.amount.value < other.amount.value
