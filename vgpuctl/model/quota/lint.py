"""The rules for quotas, queues and priority classes, as tables, and the lint that runs them over a text."""

from __future__ import annotations

from typing import Final

from vgpuctl.model.context import Context
from vgpuctl.model.finding import Checked, Finding, Severity
from vgpuctl.model.manifest import Manifest, fault_finding, manifests, read_text
from vgpuctl.model.quota import amounts, objects, together
from vgpuctl.model.quota.cap import Group, groups
from vgpuctl.model.rule import Rule, apply_rules, in_order

_ERROR, _WARNING, _INFO = Severity.ERROR, Severity.WARNING, Severity.INFO

AMOUNT_RULES: Final[tuple[Rule[Group], ...]] = (
    Rule("quota-prefix", _ERROR, "Extended resources are counted under requests. only.", amounts.prefix),
    Rule("resource-misspelt", _ERROR, "A misspelt name counts nothing.", amounts.misspelt),
    Rule("foreign-resource", _WARNING, "Other products' names do not limit vGPUs.", amounts.foreign_resource),
    Rule("percentage-quota", _WARNING, "Percentages of different cards do not add up.", amounts.percentage),
    Rule("quantity-integer", _ERROR, "Extended resources are whole numbers.", amounts.not_whole),
    Rule("unit-suffix", _ERROR, "Amounts are plain numbers; Gi makes them enormous.", amounts.unit_suffix),
    Rule("unit-percent", _WARNING, "Cores are percent, not a number of cards.", amounts.as_count),
    Rule("unit-factor", _ERROR, "The unit is gpuMemoryFactor MiB.", amounts.over_pool),
    Rule("queue-cap-ignored", _ERROR, "Volcano before 1.13 counts only the number.", amounts.cap_ignored),
)

OBJECT_RULES: Final[tuple[Rule[Manifest], ...]] = (
    Rule("field-misspelt", _ERROR, "Unknown fields are dropped or refused.", objects.field_misspelt),
    Rule("wrong-nesting", _ERROR, "A field counts at its own level only.", objects.wrong_nesting),
    Rule("cluster-scoped", _INFO, "Queues and priority classes have no namespace.", objects.cluster_scoped),
    Rule("string-for-number", _ERROR, "A quoted number is text.", objects.string_for_number),
    Rule("string-for-bool", _ERROR, "A quoted boolean is text.", objects.string_for_bool),
    Rule("priority-value", _ERROR, "Users' priorities end at 1000000000.", objects.priority_value),
    Rule("priority-name", _ERROR, "The prefix system- is reserved.", objects.priority_name),
    Rule("priority-policy", _ERROR, "There are two preemption policies.", objects.priority_policy),
    Rule("queue-order", _ERROR, "Capability is at least deserved, deserved at least guarantee.", objects.queue_order),
)

TOGETHER_RULES: Final[tuple[Rule[together.Objects], ...]] = (
    Rule("queue-tree", _ERROR, "A parent exists, is not below its child, and has as much.", together.queue_tree),
    Rule("queue-child-order", _INFO, "kubectl applies a text from top to bottom.", together.child_order),
    Rule("guarantee-over-pool", _ERROR, "Guarantees must leave something.", together.guarantee_over_pool),
    Rule("priority-default", _ERROR, "Only one class can be the default.", together.priority_default),
    Rule("same-name", _WARNING, "The last object of a name wins.", together.same_name),
)


def lint(text: str, file: str, context: Context) -> tuple[list[Finding], list[Checked]]:
    """Every finding in a text, by place, and what was looked at."""
    documents = read_text(text, file)
    findings = [fault_finding(fault, file) for document in documents for fault in document.faults]
    subjects = [manifest for manifest in manifests(documents, file) if manifest.kind in objects.KINDS]
    for manifest in subjects:
        findings += apply_rules(OBJECT_RULES, manifest, context, file)
        for group in groups(manifest, context):
            findings += apply_rules(AMOUNT_RULES, group, context, file)
    findings += apply_rules(TOGETHER_RULES, subjects, context, file)
    return in_order(findings), [Checked(file=file, subject=manifest.title) for manifest in subjects]
