"""Rules for pods: each with its variants, and what must not be flagged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.lint.variants import Variant, found, variants
from vgpuctl.model.context import Context, gpu_list
from vgpuctl.model.pod.lint import CONTAINER_RULES, POD_RULES, lint
from vgpuctl.model.resource import ResourceNames

_POOL = {
    "volcano": "1.15.1",
    "gpuMemoryFactor": 1,
    "nodes": [
        {"name": "n1", "cards": 2, "model": "NVIDIA GeForce RTX 4090", "memory_mib": 24564, "mode": "hami-core"},
    ],
}
_VARIANTS = list(variants(Path(__file__).with_name("pod.variants"), _POOL))


@pytest.mark.parametrize("variant", _VARIANTS, ids=lambda variant: variant.name)
def test_the_marked_lines_and_no_others_are_found(variant: Variant) -> None:
    findings, _ = lint(variant.text, "pod.yaml", variant.context)
    assert found(findings) == sorted(variant.wanted)


@pytest.mark.parametrize("rule", sorted({rule.id for rule in (*CONTAINER_RULES, *POD_RULES)}))
def test_each_rule_is_told_by_a_variant(rule: str) -> None:
    assert any(wanted[1] == rule for variant in _VARIANTS for wanted in variant.wanted)


ARTICLE = """\
apiVersion: v1
kind: Pod
metadata:
  name: gpu-pod
  annotations:
    volcano.sh/vgpu-cores: "50"
spec:
  schedulerName: volcano
  containers:
  - name: cuda
    image: nvidia/cuda:12.2.0-base-ubuntu22.04
    resources:
      limits:
        volcano.sh/vgpu-memory: 2048   # 2 GB
        volcano.sh/vgpu-number: 1
"""


class TestThePublicArticle:
    def test_its_pod_has_no_core_limit_and_20_gib(self) -> None:
        findings, checked = lint(ARTICLE, "article.yaml", Context(factor=10))
        annotation, memory = findings
        assert (annotation.line, annotation.column, annotation.rule) == (6, 5, "annotation-instead-of-limit")
        assert "read by nobody" in annotation.message
        assert "there is no core limit" in annotation.message
        assert annotation.remedy == "resources.limits: volcano.sh/vgpu-cores: 50"
        assert (memory.line, memory.rule) == (14, "memory-unit")
        assert "the unit is 10 MiB: it gives 20 GiB" in memory.message
        assert memory.remedy == '"205" if 2 GiB are meant'
        assert [one.subject for one in checked] == ["Pod gpu-pod, cuda: 1 vGPU, 20 GiB (2048 x 10 MiB), no core limit"]

    def test_it_fits_no_card_of_16_gb(self) -> None:
        findings, _ = lint(ARTICLE, "article.yaml", Context(factor=10, nodes=gpu_list("4xV100-16GB")))
        assert {finding.rule for finding in findings} >= {"memory-over-card", "annotation-instead-of-limit"}

    def test_with_factor_1_only_the_annotation_is_wrong(self) -> None:
        findings, _ = lint(ARTICLE, "article.yaml", Context(factor=1))
        assert [finding.rule for finding in findings] == ["annotation-instead-of-limit"]


def test_configured_resource_names_count() -> None:
    names = ResourceNames(number="example.com/gpu", memory="example.com/gpu-mib")
    limits = {"example.com/gpu-mib": 2000}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a"},
        "spec": {"schedulerName": "volcano", "containers": [{"name": "a", "resources": {"limits": limits}}]},
    }
    findings, _ = lint(json.dumps(pod, indent=1), "pod.json", Context(names=names))
    assert [finding.rule for finding in findings] == ["number-missing"]
    assert findings[0].remedy == "add example.com/gpu: 1"


def test_json_has_lines_too() -> None:
    text = '{"apiVersion": "v1", "kind": "Pod",\n\t"metadata": {"name": "a"}, "spec": {"schedulerName": "volcano",\n'
    text += '"containers": [{"name": "a", "resources": {"limits":\n{"volcano.sh/vgpu-cores": "120"}}}]}}'
    findings, _ = lint(text, "<stdin>", Context())
    assert found(findings) == [(4, "cores-over-100", "error"), (4, "number-missing", "error")]


def test_a_text_that_is_no_object_is_no_crash() -> None:
    for text in ("", "- 1\n- 2\n", "just text", "null", "kind: Pod", "kind: Pod\nspec: 3", "a: [", "{}", "\x00"):
        lint(text, "x.yaml", Context())
