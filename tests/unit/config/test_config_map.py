# ruff: noqa: E501 (tables: one case a line)
"""The ConfigMap around a configuration, streams of objects, and finding out what a text is."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.config.marks import block, config_map, found, infos, wanted
from tests.unit.config.test_device_config import GOOD, good
from tests.unit.config.test_scheduler_config import conf
from vgpuctl.model.config.kind import KINDS
from vgpuctl.model.config.validate import validate
from vgpuctl.model.context import Context, PoolNode
from vgpuctl.model.finding import Severity

NODE = '{"nodeconfig": [{"name": "gpu01", "devicesplitcount": 5}]}\n'
DEVICE_MAP = config_map("volcano-vgpu-device-config", "device-config.yaml", GOOD)
NODE_MAP = config_map("volcano-vgpu-node-config", "config.json", NODE)
SCHEDULER_MAP = config_map("volcano-scheduler-configmap", "volcano-scheduler.conf", conf(), "volcano-system")
OTHER = (
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app, namespace: lab}\ndata:\n  config.yaml: |\n    port: 80\n"
)


def flat(text: str) -> str:
    """A text without its indentation, list markers kept, as a web page gives it."""
    return "\n".join(line.lstrip(" ") for line in text.splitlines()) + "\n"


BROKEN = {
    "a name cut short": DEVICE_MAP.replace("name: volcano-vgpu-device-config", "name: vgpu-device-config  #! cm-name"),
    "a name of another product": DEVICE_MAP.replace(
        "name: volcano-vgpu-device-config", "name: hami-scheduler-device  #! cm-name"
    ),
    "a name with a suffix": DEVICE_MAP.replace(
        "name: volcano-vgpu-device-config", "name: volcano-vgpu-device-config-v2  #! cm-name"
    ),
    "a name that kustomize makes": DEVICE_MAP.replace(
        "name: volcano-vgpu-device-config", "name: volcano-vgpu-device-config-8h2k  #! cm-name"
    ),
    "no name": DEVICE_MAP.replace("metadata:\n  name: volcano-vgpu-device-config\n", "metadata:  #! cm-name\n"),
    "a node config's name": NODE_MAP.replace("name: volcano-vgpu-node-config", "name: vgpu-node-config  #! cm-name"),
    "a tenant's namespace": DEVICE_MAP.replace("namespace: kube-system", "namespace: team-a  #! cm-namespace"),
    "the default namespace": DEVICE_MAP.replace("namespace: kube-system", "namespace: default  #! cm-namespace"),
    "a namespace with a typo": DEVICE_MAP.replace(
        "namespace: kube-system", 'namespace: "kube-systems"  #! cm-namespace'
    ),
    "a node config's namespace": NODE_MAP.replace("namespace: kube-system", "namespace: gpu  #! cm-namespace"),
    "another key": DEVICE_MAP.replace("device-config.yaml: |", "device-config.yml: |  #! cm-data-key"),
    "a key without its end": DEVICE_MAP.replace("device-config.yaml: |", "device-config: |  #! cm-data-key"),
    "the node config's key": DEVICE_MAP.replace("device-config.yaml: |", "config.json: |  #! cm-data-key"),
    "a second key": DEVICE_MAP.replace(
        "data:\n  device-config.yaml: |", "data:\n  README: hello\n  config.yaml: |  #! cm-data-key"
    ),
    "a node config's key": NODE_MAP.replace("config.json: |", "config.yaml: |  #! cm-data-key"),
    "a scheduler's key": SCHEDULER_MAP.replace("volcano-scheduler.conf: |", "scheduler.conf: |  #! cm-data-key"),
    "no data": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: volcano-vgpu-device-config, namespace: kube-system}\ndata: {}  #! cm-data-key\n",
    "binary data": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: volcano-vgpu-device-config, namespace: kube-system}\n"
    "binaryData:  #! cm-data-key\n  device-config.yaml: bnZpZGlhOg==\n",
    "empty text": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: volcano-vgpu-device-config, namespace: kube-system}\n"
    "data:\n  device-config.yaml: ''  #! foreign-format\n",
    "a template as a namespace": DEVICE_MAP.replace(
        "namespace: kube-system", "namespace: {{ .Release.Namespace }}  #! unrendered-template"
    ),
    "no block": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: volcano-vgpu-device-config, namespace: kube-system}\n"
    "data:\n  device-config.yaml:  #! type-mismatch\n" + block(GOOD),
    "all at once": DEVICE_MAP.replace("name: volcano-vgpu-device-config", "name: device-config  #! cm-name")
    .replace("namespace: kube-system", "namespace: pool  #! cm-namespace")
    .replace("device-config.yaml: |", "config.yaml: |  #! cm-data-key")
    .replace("gpuMemoryFactor: 1", "gpuMemoryFactor: 0  #! factor-zero"),
    "a namespace that lost its level": DEVICE_MAP.replace(
        "  namespace: kube-system", "namespace: kube-system  #! wrong-nesting"
    ),
    "data that lost its level": DEVICE_MAP.replace(
        "  device-config.yaml: |", "device-config.yaml: |  #! wrong-nesting"
    ),
    "text that lost its level": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: volcano-vgpu-device-config\n  namespace: kube-system\n"
    "data:\n  device-config.yaml: |\n" + GOOD.replace("nvidia:", "nvidia:  #! wrong-nesting"),
    "everything that lost its level": "apiVersion: v1\nkind: ConfigMap\nmetadata:\nname: volcano-vgpu-device-config  #! wrong-nesting\n"
    "namespace: kube-system\ndata:\ndevice-config.yaml: |  #! wrong-nesting\n" + flat(GOOD),
    "the second of two": NODE_MAP
    + "---\n"
    + DEVICE_MAP.replace("gpuMemoryFactor: 1", "gpuMemoryFactor: 0  #! factor-zero"),
    "both of two": NODE_MAP.replace("name: volcano-vgpu-node-config", "name: node-config  #! cm-name")
    + "---\n"
    + DEVICE_MAP.replace("deviceCoreScaling: 1", "deviceCoreScaling: 2  #? core-scaling-over"),
    "an object that cannot be read": NODE_MAP + "---\nkind: ConfigMap\nmetadata: {name: x  #! yaml-syntax\ndata: 1\n",
    "only other objects": "apiVersion: v1  #! no-configuration\nkind: ServiceAccount\nmetadata: {name: x}\n",
    "a list of others": "apiVersion: v1  #! no-configuration\nkind: List\nitems: []\n",
    "prose": "hello  #! no-configuration\n",
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN.keys())
def test_a_defect_is_found_on_its_line(text: str) -> None:
    assert found(text) == wanted(text)


VALID = {
    "device": DEVICE_MAP,
    "node": NODE_MAP,
    "scheduler": SCHEDULER_MAP,
    "all of them": "---\n".join(["# the pool\n", DEVICE_MAP, NODE_MAP, SCHEDULER_MAP, OTHER]),
    "another name of a Helm release": SCHEDULER_MAP.replace(
        "volcano-scheduler-configmap", "prod-volcano-scheduler-configmap"
    ),
    "time-slicing beside it": DEVICE_MAP
    + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: nvidia-plugin-configs, namespace: gpu-operator}\n"
    "data:\n  any: |\n    version: v1\n    sharing: {timeSlicing: {resources: []}}\n",
    "a chart's values beside it": DEVICE_MAP
    + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: values, namespace: lab}\ndata:\n  values.yaml: |\n    nvidia: {driver: 580}\n",
    "a list": "apiVersion: v1\nkind: ConfigMapList\nitems:\n- " + block(DEVICE_MAP, 2).lstrip(),
    "stripped chomping": DEVICE_MAP.replace("device-config.yaml: |", "device-config.yaml: |-"),
    "windows": DEVICE_MAP.replace("\n", "\r\n"),
}


@pytest.mark.parametrize("text", VALID.values(), ids=VALID.keys())
def test_what_works_upstream_is_left_alone(text: str) -> None:
    assert (found(text), infos(text)) == (set(), [])


def test_json_from_kubectl_has_the_place_inside_the_string() -> None:
    data = {"device-config.yaml": good(gpuMemoryFactor="gpuMemoryFactor: 0")}
    item = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "volcano-vgpu-device-config", "namespace": "kube-system"},
        "data": data,
    }
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [item]}, indent=2)
    (finding,) = validate(text, "-", Context()).findings
    row = text.splitlines()[finding.line - 1]
    assert finding.rule == "factor-zero"
    assert row[finding.column - 1 :].startswith("gpuMemoryFactor: 0")


def test_where_the_scheduler_s_map_is_follows_from_the_context() -> None:
    context = Context(scheduler_namespace="volcano", scheduler_configmap="v-scheduler-configmap")
    assert {(line, rule) for line, rule, _ in found(SCHEDULER_MAP, context=context)} == {
        (4, "cm-name"),
        (5, "cm-namespace"),
    }


def test_where_the_node_config_is_follows_from_the_plugin() -> None:
    context = Context(plugin_namespace="gpu")
    assert {rule for _, rule, _ in found(NODE_MAP, context=context)} == {"cm-namespace"}
    assert found(NODE_MAP.replace("kube-system", "gpu"), context=context) == set()


def test_a_missing_namespace_is_worth_knowing() -> None:
    assert infos(DEVICE_MAP.replace("  namespace: kube-system\n", "")) == ["cm-namespace"]


def test_bytes_that_are_no_text_are_named() -> None:
    text = GOOD.encode().replace(b"vgpu-cores", b"vgpu-c\xf6res").decode("utf-8", "replace")
    assert (5, "encoding", Severity.ERROR) in found(text)


_LARGE = {
    "unknown keys": "nvidia:\n" + "".join(f"  k{i}: {i}\n" for i in range(3000)),
    "unknown arguments": "actions: a\ntiers:\n- plugins:\n  - name: deviceshare\n    arguments:\n"
    + "".join(f"      deviceshare.k{i}: {i}\n" for i in range(2000)),
    "unknown nodes": json.dumps({"nodeconfig": [{"name": f"n{i}"} for i in range(3000)]}),
    "open braces": "{{" * 20000,
    "open brackets": "[" * 100000,
    "blank lines": "\u00a0\n" * 30000 + "a: [\n",
    "comments": "#" * 100000 + "\n" + " #" * 50000,
    "one long word": "nvidia: " + "x" * 500000,
}


@pytest.mark.parametrize("text", _LARGE.values(), ids=_LARGE.keys())
def test_large_texts_take_seconds_at_most(text: str) -> None:
    context = Context(nodes=tuple(PoolNode(f"m{i}", 1, "A30", 24576) for i in range(500)))
    begun = time.process_time()
    validate(text, "file", context)
    assert time.process_time() - begun < 5


_PIECES = [
    "nvidia:", "  deviceSplitCount: 10", "  gpuMemoryFactor: 0", "  knownMigGeometries:", "  - models: [A30]", "    allowedGeometries:",
    "    - group: a-b", "      geometries: [{name: x, memory: 1}]", "---", "apiVersion: v1", "kind: ConfigMap", "kind: List", "items:", "- ",
    "metadata: {name: volcano-vgpu-device-config}", "data:", "  device-config.yaml: |", "  config.json: '{\"nodeconfig\": [{}]}'",
    '{"nodeconfig": [{"name": "a", "filterdevices": []}]}', "actions: 'a,b'", "tiers:", "- plugins:", "  - name: deviceshare",
    "    arguments: {deviceshare.VGPUEnable: [1]}", "\t", "{{ x }}", "? [a]: b", "vnpus: [[1]]", "<<: 1", "null", "[", "\ufeff", "&a *a",
]  # fmt: skip


@given(st.lists(st.sampled_from(_PIECES) | st.text(max_size=20), max_size=14), st.sampled_from(["", *KINDS]))
def test_no_text_breaks_a_rule_and_every_place_is_inside(pieces: list[str], kind: str) -> None:
    text = "\n".join(pieces)
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for finding in validate(text, "file", Context(), KINDS.get(kind)).findings:
        assert 1 <= finding.line <= len(lines)
        assert 1 <= finding.column <= len(lines[finding.line - 1]) + 2
        assert finding.message
