"""Rules for quotas, queues and priority classes: each with its variants, and what must not be flagged."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.lint.variants import Variant, found, variants
from vgpuctl.model.context import Context
from vgpuctl.model.quota.lint import AMOUNT_RULES, OBJECT_RULES, TOGETHER_RULES, lint

_VARIANTS = list(variants(Path(__file__).with_name("quota.variants"), {"volcano": "1.13.0"}))


@pytest.mark.parametrize("variant", _VARIANTS, ids=lambda variant: variant.name)
def test_the_marked_lines_and_no_others_are_found(variant: Variant) -> None:
    findings, _ = lint(variant.text, "quota.yaml", variant.context)
    assert found(findings) == sorted(variant.wanted)


@pytest.mark.parametrize("rule", sorted({rule.id for rule in (*AMOUNT_RULES, *OBJECT_RULES, *TOGETHER_RULES)}))
def test_each_rule_is_told_by_a_variant(rule: str) -> None:
    assert any(wanted[1] == rule for variant in _VARIANTS for wanted in variant.wanted)


@pytest.mark.parametrize(
    ("written", "remedy"),
    [
        ('volcano.sh/vgpu-number: "50"', 'requests.volcano.sh/vgpu-number: "50"'),
        ("limits.volcano.sh/vgpu-mem: 4", 'requests.volcano.sh/vgpu-memory: "4"'),
        ("requests.volcano.sh/vgpu-core: 80", "requests.volcano.sh/vgpu-cores"),
        ("requests.volcano.sh/vgpu-memory: 64Gi", '"6554" (units of 10 MiB)'),
        ("requests.volcano.sh/vgpu-cores: 4", '"400" for 4 cards'),
    ],
)
def test_the_remedy_is_what_to_write(written: str, remedy: str) -> None:
    text = f"apiVersion: v1\nkind: ResourceQuota\nmetadata: {{name: q}}\nspec:\n  hard:\n    {written}\n"
    findings, _ = lint(text, "q.yaml", Context(factor=10))
    assert [finding.remedy for finding in findings] == [remedy]


def test_a_parent_may_be_a_queue_of_the_cluster() -> None:
    text = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: a}\nspec: {parent: lab}\n"
    assert lint(text, "q.yaml", Context(queues=frozenset(("lab",))))[0] == []
    assert [finding.rule for finding in lint(text, "q.yaml", Context(queues=frozenset()))[0]] == ["queue-tree"]


def test_a_missing_space_after_a_colon_is_told_where_it_is_missing() -> None:
    text = "kind: ResourceQuota\nspec:\n  hard:requests\n    volcano.sh/vgpu-number: 4\n"
    assert found(lint(text, "q.yaml", Context())[0]) == [(3, "yaml-syntax", "error")]


def test_a_text_that_is_no_object_is_no_crash() -> None:
    for text in (
        "",
        "- 1\n",
        "just text",
        "kind: Queue",
        "kind: Queue\nspec: 3",
        "kind: ResourceQuota\nspec: {hard: 1}",
    ):
        lint(text, "x.yaml", Context())
