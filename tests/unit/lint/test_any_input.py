"""Whatever stands in a text, lint answers: no crash, and every finding has its place."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.contexts import context_from
from vgpuctl.model.context import Context
from vgpuctl.model.pod.lint import lint as pod_lint
from vgpuctl.model.quota.lint import lint as quota_lint

_WORDS = """
apiVersion kind metadata name namespace annotations labels uid spec template jobTemplate tasks items containers
initContainers resources limits requests env value securityContext privileged volumes hostPath path volumeMounts
mountPath schedulerName nodeName runtimeClassName queue hard capability deserved guarantee resource parent weight
globalDefault preemptionPolicy volcano.sh/vgpu-number volcano.sh/vgpu-memory volcano.sh/vgpu-cores
volcano.sh/vgpu-memory-percentage requests.volcano.sh/vgpu-number limits.volcano.sh/vgpu-memory volcano.sh/vgpu-mode
nvidia.com/use-gputype volcano.sh/queue-name nvidia.com/gpu annotation limit
"""
_KEYS = st.sampled_from(_WORDS.split())
_SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.sampled_from(
        ["8Gi", "-1", "50%", "0.5", "volcano", "mig", "A100, T4", "", "default", "system-x", "1e999", "4k"]
    ),
    st.text(max_size=12),
)
_ANYTHING = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=6),
    max_leaves=40,
)
_OBJECTS = st.builds(
    lambda kind, version, rest: {**rest, "apiVersion": version, "kind": kind},
    st.sampled_from(
        ["Pod", "Deployment", "CronJob", "Job", "Queue", "ResourceQuota", "PriorityClass", "List", "Other"]
    ),
    st.sampled_from(["v1", "apps/v1", "batch/v1", "batch.volcano.sh/v1alpha1", "scheduling.volcano.sh/v1beta1"]),
    st.dictionaries(_KEYS, _ANYTHING, max_size=8),
)
_CONTEXTS = [
    Context(),
    context_from(
        {
            "volcano": "1.12.0",
            "gpuMemoryFactor": 10,
            "nodes": [
                {"name": "a", "cards": 2, "model": "A100-SXM4-80GB", "memory_mib": 81920, "mode": "mig", "split": 7}
            ],
        }
    ),
]


@pytest.mark.parametrize("lint", [pod_lint, quota_lint], ids=["pod", "quota"])
@given(item=_OBJECTS, as_json=st.booleans())
@settings(deadline=None, max_examples=60)
def test_there_is_an_answer_for_any_object(lint: Any, item: dict[str, Any], as_json: bool) -> None:
    text = json.dumps(item) if as_json else yaml.safe_dump(item)
    for context in _CONTEXTS:
        findings, _ = lint(text, "x.yaml", context)
        lines = text.count("\n") + 1
        assert all(1 <= finding.line <= lines and finding.column >= 1 and finding.message for finding in findings)


@pytest.mark.parametrize(
    "value", ["1e999", "-1e999", "16Ei", "9223372036854775807", "1e-999", "0.0000000001", "010", "0x10"]
)
@pytest.mark.parametrize("what", ["number", "memory", "cores", "memory-percentage"])
def test_no_number_is_too_large_or_too_small(what: str, value: str) -> None:
    limits = f"{{volcano.sh/vgpu-number: 1, volcano.sh/vgpu-{what}: {value}}}"
    pod = f"kind: Pod\nspec: {{schedulerName: volcano, containers: [{{name: a, resources: {{limits: {limits}}}}}]}}\n"
    queue = f"kind: Queue\nspec: {{capability: {{volcano.sh/vgpu-{what}: {value}}}}}\n"
    for context in _CONTEXTS:
        pod_lint(pod, "x.yaml", context)
        quota_lint(queue, "x.yaml", context)
