"""The rules for pods, as tables, and the lint that runs them over a text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from vgpuctl.model.context import Context
from vgpuctl.model.finding import Checked, Finding, Severity
from vgpuctl.model.manifest import Manifest, fault_finding, manifests, read_text
from vgpuctl.model.pod import amounts, bypass, places, structure
from vgpuctl.model.pod.ask import asks
from vgpuctl.model.pod.template import Container, Template, templates
from vgpuctl.model.quantity import show_mib
from vgpuctl.model.resource import What
from vgpuctl.model.rule import Rule, apply_rules, in_order

_ERROR, _WARNING, _INFO = Severity.ERROR, Severity.WARNING, Severity.INFO

CONTAINER_RULES: Final[tuple[Rule[Container], ...]] = (
    Rule("number-missing", _ERROR, "Without a number the kubelet asks for no vGPU.", amounts.number_missing),
    Rule("number-zero", _ERROR, "A number of 0 schedules the pod without a card.", amounts.number_zero),
    Rule("quantity-integer", _ERROR, "Extended resources are whole numbers from 0 on.", amounts.not_whole),
    Rule("unit-suffix", _ERROR, "Amounts are plain numbers; Gi makes them enormous.", amounts.unit_suffix),
    Rule("number-over-cards", _ERROR, "Each vGPU of a container needs another card.", amounts.number_over_cards),
    Rule("percentage-unschedulable", _ERROR, "No node offers the percentage resource.", amounts.percentage),
    Rule("percentage-and-memory", _ERROR, "The percentage wins over memory.", amounts.percentage_and_memory),
    Rule("cores-over-100", _ERROR, "Cores are percent of one card.", amounts.cores_over),
    Rule("unit-percent", _WARNING, "Cores are percent, not a number of cards.", amounts.cores_as_count),
    Rule("memory-over-card", _ERROR, "A vGPU must fit on one card or slice.", amounts.memory_over_card),
    Rule("memory-too-small", _WARNING, "A CUDA context alone takes more.", amounts.memory_too_small),
    Rule("memory-zero", _INFO, "No memory limit gives the whole card.", amounts.memory_zero),
    Rule("memory-unit", _INFO, "The pool's unit is not the MiB.", amounts.memory_unit),
    Rule("mig-slice-size", _WARNING, "A slice has less memory than its name promises.", amounts.slice_size),
    Rule("mig-cores", _INFO, "A slice brings its own cores.", amounts.slice_cores),
    Rule("requests-limits", _ERROR, "Extended resources need limits equal to requests.", amounts.requests_limits),
    Rule("init-container", _ERROR, "The scheduler looks at main containers only.", amounts.init_container),
    Rule("resource-misspelt", _ERROR, "No node offers a misspelt name.", places.resource_misspelt),
    Rule("foreign-resource", _ERROR, "Names of other products are not offered here.", places.foreign_resource),
    Rule("limiter-off", _ERROR, "The limits must hold.", bypass.limiter_off),
    Rule("visible-all", _ERROR, "Cards must be given out by the plugin.", bypass.visible_devices),
    Rule("preload", _INFO, "The limiter is a preloaded library.", bypass.preload),
    Rule("privileged", _WARNING, "Privileged containers see all devices.", bypass.privileged),
)

POD_RULES: Final[tuple[Rule[Template], ...]] = (
    Rule("annotation-instead-of-limit", _ERROR, "Only container limits count.", places.request_as_annotation),
    Rule("annotation-place", _WARNING, "The scheduler reads the pod's own annotations.", places.annotation_place),
    Rule("annotation-misspelt", _WARNING, "A misspelt annotation is ignored in silence.", places.annotation_misspelt),
    Rule("allocation-annotation", _ERROR, "The allocation is the scheduler's ledger.", places.allocation_annotation),
    Rule("node-name-set", _ERROR, "nodeName bypasses the scheduler.", places.node_name),
    Rule("scheduler-name", _ERROR, "Only Volcano plans cards.", places.scheduler_name),
    Rule("queue-annotation", _ERROR, "The queue has one right place.", places.queue_annotation),
    Rule("foreign-annotation", _WARNING, "Annotations of other products do nothing.", places.foreign_annotation),
    Rule("version-feature", _WARNING, "Older Volcanos ignore newer annotations.", places.version_feature),
    Rule("mode-value", _ERROR, "The mode is compared as written.", places.mode_value),
    Rule("no-matching-card", _ERROR, "Some card must match the filter.", places.no_matching_card),
    Rule("policy-value", _WARNING, "Only `spread` is understood.", places.policy_value),
    Rule("field-misspelt", _ERROR, "Unknown fields are dropped or refused.", structure.field_misspelt),
    Rule("wrong-nesting", _ERROR, "A field counts at its own level only.", structure.wrong_nesting),
    Rule("type-mismatch", _ERROR, "Annotations and variables are strings.", structure.not_a_string),
    Rule("string-for-number", _ERROR, "A quoted number is text.", structure.quoted_number),
    Rule("string-for-bool", _ERROR, "A quoted boolean is text.", structure.quoted_bool),
    Rule("host-devices", _WARNING, "Device files of the host are uncounted.", bypass.host_devices),
)

OBJECT_RULES: Final[tuple[Rule[Manifest], ...]] = (
    Rule("wrong-nesting", _ERROR, "A workload has its containers in a pod template.", structure.no_template),
)


def lint(text: str, file: str, context: Context) -> tuple[list[Finding], list[Checked]]:
    """Every finding in a text, by place, and what was looked at."""
    documents = read_text(text, file)
    findings = [fault_finding(fault, file) for document in documents for fault in document.faults]
    checked: list[Checked] = []
    for manifest in manifests(documents, file):
        found = list(templates(manifest))
        if not found:
            findings += apply_rules(OBJECT_RULES, manifest, context, file)
        for template in found:
            findings += lint_template(template, context, file)
            checked += [Checked(file=file, subject=subject) for subject in subjects(template, context)]
    return in_order(findings), checked


def lint_template(template: Template, context: Context, file: str = "") -> Iterator[Finding]:
    """The findings of one pod template."""
    yield from apply_rules(POD_RULES, template, context, file)
    for container in template.containers:
        yield from apply_rules(CONTAINER_RULES, container, context, file)


def subjects(template: Template, context: Context) -> Iterator[str]:
    """What each container really gets: `Pod lab/probe, main: 1 vGPU, 20 GiB (2048 x 10 MiB), no core limit`."""
    told = False
    for container in template.main:
        gets = _gets(container, context)
        if gets:
            told = True
            yield f"{template.title}, {container.name}: {gets}"
    if not told:
        yield f"{template.title}: asks for no vGPU"


def _gets(container: Container, context: Context) -> str:
    found = {one.what: one for one in asks(container, "limits", context)}
    if not found:
        return ""
    number = found.get(What.NUMBER)
    count = number.number if number else None
    parts = [f"{count} vGPU{'' if count == 1 else 's'}" if count is not None else "no vGPU"]
    memory, cores = found.get(What.MEMORY), found.get(What.CORES)
    if memory and memory.number:
        size = f"{memory.number} memory units"
        if context.factor:
            size = f"{show_mib(memory.number * context.factor)} ({memory.number} x {context.factor} MiB)"
        parts.append(f"{size} each" if count and count > 1 else size)
    elif memory is None and What.PERCENTAGE not in found:
        parts.append("all memory of the card")
    parts.append(f"{cores.number} % of the cores" if cores and cores.number else "no core limit")
    return ", ".join(parts)
