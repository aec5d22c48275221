"""Rules on places and names: what stands where nobody reads it, is misspelt, or belongs to another product."""

from __future__ import annotations

from collections.abc import Iterator

from vgpuctl.model.context import Context
from vgpuctl.model.document import Entry, Scalar
from vgpuctl.model.finding import Severity
from vgpuctl.model.manifest import join, near, near_key, text_of
from vgpuctl.model.pod import names
from vgpuctl.model.pod.ask import amount_of, ask, asks, foreign, similar, type_matches, wants_vgpu, written_of
from vgpuctl.model.pod.structure import METADATA_PARTS
from vgpuctl.model.pod.template import Container, Level, Template
from vgpuctl.model.resource import What
from vgpuctl.model.rule import Hit

_QUEUE_WORDS = ("queue-name", "queuename", "queue")
_QUEUE_DOMAINS = ("volcano.sh", "scheduling.volcano.sh", "scheduling.k8s.io", "batch.volcano.sh", "")


def resource_misspelt(container: Container, context: Context) -> Iterator[Hit]:
    limits = {found.entry.name for found in asks(container, "limits", context)}
    for part in ("limits", "requests"):
        for found in asks(container, part, context):
            if found.misspelt and (part == "limits" or found.entry.name not in limits):
                yield Hit(
                    found.entry.position,
                    found.path,
                    f"there is no resource {found.entry.name}: the pod is never scheduled",
                    f"{context.names.name(found.what)}",
                )


def foreign_resource(container: Container, context: Context) -> Iterator[Hit]:
    mixed = wants_vgpu(container.template, context)
    unknown_pool = context.nodes is None and context.resources is None
    for part in ("limits", "requests"):
        _, path, amounts = container.resources(part)
        other = container.resources("limits")[2] if part == "requests" else []
        for entry in amounts:
            nearest = foreign(entry.name, context)
            amount = amount_of(entry.value)
            if nearest is None or entry.name in {e.name for e in other} or (amount and amount.value == 0):
                continue
            another = unknown_pool and not mixed and entry.name.startswith("nvidia.com/")
            effect = "and it limits nothing of the vGPU" if mixed else "the pod is never scheduled"
            yield Hit(
                entry.position,
                join(path, entry.name),
                f"{entry.name} belongs to another product: no node of a vGPU pool offers it, {effect}",
                _instead(container, nearest, entry, context),
                Severity.INFO if another else None,
            )


def _instead(container: Container, nearest: What | str, entry: Entry, context: Context) -> str:
    if not isinstance(nearest, What):
        return "remove it"
    line = f"{context.names.name(nearest)}: {written_of(entry.value)}"
    if ask(container, nearest, context):
        return "remove it"
    if nearest is not What.NUMBER and not ask(container, What.NUMBER, context):
        line = f"{context.names.number}: 1 and {line}"
    return f"{line} (check the unit)" if nearest is What.MEMORY else line


def request_as_annotation(template: Template, context: Context) -> Iterator[Hit]:
    for part in METADATA_PARTS:
        for entry, path in (*template.annotations(part), *template.outer_annotations(part)):
            what = context.names.what(entry.name)
            if what is None and entry.name not in (*names.READ, *names.WRITTEN):
                what = similar(entry.name, context.names) if near_key(entry.name, context.names.all) else None
            if what is None:
                continue
            limits = [limit for c in template.main if (limit := ask(c, what, context))]
            same = any(limit.written == written_of(entry.value) for limit in limits)
            effect = {
                What.NUMBER: "the pod gets no vGPU by it",
                What.MEMORY: "the pod gets the whole card's memory",
                What.PERCENTAGE: "the pod gets the whole card's memory",
                What.CORES: "there is no core limit",
            }[what]
            effect = f"the limit says {limits[0].written} and counts" if limits else effect
            yield Hit(
                entry.position,
                path,
                f"{entry.name} in the {part} is read by nobody, only container limits count: {effect}",
                "remove it" if same else f"resources.limits: {context.names.name(what)}: {written_of(entry.value)}",
                Severity.INFO if same else None,
            )


def annotation_place(template: Template, context: Context) -> Iterator[Hit]:
    own = {entry.name for entry, _ in template.annotations()}
    home = join(join(template.path, "metadata"), "annotations")
    misplaced = (
        *template.outer_annotations(),
        *template.outer_annotations("labels"),
        *template.annotations("labels"),
    )
    for entry, path in misplaced:
        if entry.name in names.READ and entry.name not in own:
            if entry.name == names.QUEUE and (template.job or ".labels" in path):
                continue  # queue_annotation speaks
            yield Hit(
                entry.position,
                path,
                f"the scheduler reads {entry.name} as an annotation of the pod; here it has no effect",
                home,
            )


def version_feature(template: Template, context: Context) -> Iterator[Hit]:
    for entry, path in template.annotations():
        since = names.SINCE.get(entry.name)
        if since and context.before(since):
            release = ".".join(since.partition("-")[0].split(".")[:2])
            yield Hit(
                entry.position,
                path,
                f"{entry.name} is read from Volcano {release} on; {context.volcano} ignores it",
                "upgrade Volcano, or pin the pod with a nodeSelector"
                if "uuid" in entry.name
                else f"upgrade Volcano to {release}",
            )


def mode_value(template: Template, context: Context) -> Iterator[Hit]:
    found = _own(template, names.MODE)
    if not found or context.before(names.SINCE[names.MODE]):
        return
    entry, path, value = found
    modes = {node.mode for node in context.nodes or ()}
    if value not in names.MODES:
        right = near(value.strip(), names.MODES)
        yield Hit(
            entry.position,
            path,
            f"the mode is compared as written, and no node has the mode {value!r}: the pod stays Pending",
            f'{names.MODE}: "{right}"' if right else " or ".join(names.MODES),
        )
    elif modes and "" not in modes and value not in modes:
        message = f"no node of the pool is in mode {value}: the pod stays Pending"
        yield Hit(entry.position, path, message, f"remove it, or {' or '.join(sorted(modes))}")


def no_matching_card(template: Template, context: Context) -> Iterator[Hit]:
    use, avoid = _own(template, names.USE_TYPE), _own(template, names.NO_USE_TYPE)
    found = use or avoid
    if found and context.nodes and not any(type_matches(template, node.card_type) for node in context.nodes):
        entry, path, value = found
        words = " or ".join(f"{word!r}" if word != word.strip() or not word else word for word in value.split(","))
        models = ", ".join(sorted({node.model for node in context.nodes}))
        what = "has a name with" if use else "has a name without"
        yield Hit(
            entry.position,
            path,
            f"no card of the pool {what} {words}: the pod stays Pending",
            f"remove it, or a part of a name of the pool ({models}), without blanks around commas",
        )
    yield from _gone_cards(template, context)


def _gone_cards(template: Template, context: Context) -> Iterator[Hit]:
    found = _own(template, names.USE_UUID)
    known = {uuid for node in context.nodes or () for uuid in node.uuids}
    if not found or not known or context.before(names.SINCE[names.USE_UUID]):
        return
    entry, path, value = found
    wanted = [item.strip() for item in value.split(",") if item.strip()]
    if wanted and not known & set(wanted):
        yield Hit(
            entry.position, path, f"no node has the card {' or '.join(wanted)}: the pod stays Pending", "remove it"
        )


def policy_value(template: Template, context: Context) -> Iterator[Hit]:
    found = _own(template, names.PODGROUP_POLICY)
    if found and found[2] != "spread" and not context.before(names.SINCE[names.PODGROUP_POLICY]):
        yield Hit(found[0].position, found[1], f"only spread is understood, {found[2]!r} has no effect", '"spread"')


def _own(template: Template, key: str) -> tuple[Entry, str, str] | None:
    for entry, path in template.annotations():
        if entry.name == key and isinstance(entry.value, Scalar):
            return entry, path, "" if entry.value.value is None else str(entry.value.value)
    return None


def allocation_annotation(template: Template, context: Context) -> Iterator[Hit]:
    if template.live:
        return
    for entry, path in template.annotations():
        if entry.name in names.WRITTEN:
            effect = (
                "the plugin hands out the card named here"
                if entry.name.endswith("devices-to-allocate")
                else "by hand it falsifies the ledger"
            )
            yield Hit(entry.position, path, f"only the scheduler writes {entry.name}: {effect}", "remove it")


def node_name(template: Template, context: Context) -> Iterator[Hit]:
    entry = template.spec.entry("nodeName")
    if entry and text_of(entry.value) and not template.live and wants_vgpu(template, context):
        path = join(join(template.path, "spec"), "nodeName")
        yield Hit(
            entry.position,
            path,
            "nodeName bypasses the scheduler: no card is planned, the plugin finds no allocation",
            "remove it; use nodeSelector",
        )


def scheduler_name(template: Template, context: Context) -> Iterator[Hit]:
    if not wants_vgpu(template, context) or any(_misplaced_scheduler(level) for level in template.levels):
        return
    path = join(join(template.path, "spec"), "schedulerName")
    entry = template.spec.entry("schedulerName")
    if entry is None and template.job:
        entry = template.job.entry("schedulerName")
        path = join(template.job_path, "schedulerName")
        if entry is None:
            return  # Volcano fills in its own
    name = text_of(entry.value) if entry else ""
    if name in context.schedulers or (template.job and not name):
        return
    if not template.known and entry is None:
        return  # the operator behind it may set it
    right = f"schedulerName: {context.schedulers[0]}"
    who = "the default scheduler" if name in ("", "default-scheduler") else f"{name}, which is not Volcano,"
    yield Hit(
        entry.position if entry else template.spec_at,
        path if entry else path.rpartition(".")[0],
        f"{who} places it by number only; the plugin then finds no allocation: UnexpectedAdmissionError",
        right,
    )


def _misplaced_scheduler(level: Level) -> bool:
    """The name is there, at a level that does not know it or misspelt; that is told by another rule."""
    unknown = [entry.name for entry in level.node.entries if entry.name not in level.fields]
    return any(near(name, ("schedulerName",)) for name in unknown)


def queue_annotation(template: Template, context: Context) -> Iterator[Hit]:
    own = {entry.name: written_of(entry.value) for entry, _ in template.annotations()}
    queue = text_of(template.job.get("queue")) if template.job else own.get(names.QUEUE, "")
    labels = (*template.annotations("labels"), *template.outer_annotations("labels"))
    for entry, path in (*template.annotations(), *template.outer_annotations(), *labels):
        domain, _, word = entry.name.rpartition("/")
        if domain not in _QUEUE_DOMAINS or word.lower() not in _QUEUE_WORDS:
            continue
        value = written_of(entry.value)
        if template.job and queue != value:
            yield Hit(
                entry.position,
                path,
                f"a Volcano Job's queue is its spec.queue ({queue or 'default'}); this annotation has no effect",
                f"spec.queue: {value}",
            )
        elif not template.job and not queue and (entry.name != names.QUEUE or ".labels" in path):
            yield Hit(
                entry.position,
                path,
                f"nobody reads {entry.name} here: the pod goes to the queue of its namespace or to the default queue",
                f"{names.QUEUE}: {value}",
            )


def foreign_annotation(template: Template, context: Context) -> Iterator[Hit]:
    for entry, path in (*template.annotations(), *template.outer_annotations()):
        key = entry.name
        if key in (*names.READ, *names.WRITTEN) or context.names.what(key):
            continue
        who = next(
            (
                reader
                for name, reader in names.FOREIGN_ANNOTATIONS.items()
                if key == name or (name[-1] in "/-" and key.startswith(name))
            ),
            None,
        )
        if who:
            yield Hit(
                entry.position,
                path,
                f"{who}: {key} has no effect here",
                names.FOREIGN_REMEDIES.get(key, "remove it"),
            )


def annotation_misspelt(template: Template, context: Context) -> Iterator[Hit]:
    known = (*names.READ, *names.WRITTEN, *names.FOREIGN_REMEDIES)
    for entry, path in (*template.annotations(), *template.outer_annotations()):
        key = entry.name
        domain, _, word = key.rpartition("/")
        ours = domain in ("nvidia.com", "volcano.sh", "scheduling.volcano.sh") or near(domain, ("volcano.sh",))
        if key in known or not ours or context.names.what(key) or word.lower() in _QUEUE_WORDS:
            continue
        right = near_key(key, names.READ) or next((name for name in names.READ if name.endswith(f"/{word}")), "")
        if right and not near_key(key, context.names.all):
            yield Hit(entry.position, path, f"nobody reads {key}", right)
