"""The node config: strict JSON, keys in any case, and what applies to no node."""

from __future__ import annotations

import pytest

from tests.unit.config.marks import config_map, found, infos
from vgpuctl.model.context import Context, PoolNode
from vgpuctl.model.finding import Severity

E, W = Severity.ERROR, Severity.WARNING
POOL = Context(
    nodes=(PoolNode("gpu01", 2, "NVIDIA A100-SXM4-80GB", 81920), PoolNode("gpu02", 4, "Tesla T4", 15360)),
)


def entry(text: str) -> str:
    """A node config whose third line is an entry's text."""
    return '{"nodeconfig": [\n {"name": "gpu01",\n  ' + text + "}\n]}\n"


BROKEN = {
    "a comma at the end of an entry": (entry('"devicesplitcount": 5,'), {(3, "json-syntax", E)}),
    "a missing comma": ('{"nodeconfig": [\n {"name": "gpu01"\n  "devicesplitcount": 5}]}', {(3, "json-syntax", E)}),
    "a comment": (entry('// five\n  "devicesplitcount": 5'), {(3, "json-syntax", E)}),
    "a comment in front": ('# nodes\n{"nodeconfig": []}', {(1, "json-syntax", E)}),
    "no quotes around keys": ('{nodeconfig: [{name: "gpu01"}]}', {(1, "json-syntax", E)}),
    "Python's words": (entry('"operatingmode": None'), {(3, "json-syntax", E)}),
    "not closed": ('{"nodeconfig": [\n {"name": "gpu01"}\n]\n\n', {(3, "json-syntax", E)}),
    "two values": ('{"nodeconfig": []}\n{"nodeconfig": []}\n', {(2, "json-syntax", E)}),
    "a leading zero": (entry('"devicesplitcount": 05'), {(3, "json-syntax", E)}),
    "empty": ("", {(1, "json-syntax", E)}),
    "YAML": ("nodeconfig:\n- name: gpu01\n", {(1, "foreign-format", E)}),
    "YAML behind a comment": ("\n# nodes\nnodeconfig:\n- name: gpu01\n", {(2, "foreign-format", E)}),
    "another JSON file": ('{\n  "auths": {}\n}', {(2, "foreign-format", E)}),
    "a byte order mark": ('\ufeff{"nodeconfig": []}', {(1, "invisible-character", E)}),
    "a misspelt mode": (entry('"operationmode": "mig"'), {(3, "key-misspelt", E)}),
    "a misspelt list": ('{\n "nodeconfigs": [{"name": "gpu01"}]}', {(2, "key-misspelt", E)}),
    "a misspelt name": ('{"nodeconfig": [\n {"nodename": "gpu01", "devicesplitcount": 5}]}', {(2, "key-misspelt", E)}),
    "a misspelt filter": (entry('"filterdevices": {"uuids": ["GPU-1"]}'), {(3, "key-misspelt", E)}),
    "an unknown key": (entry('"priority": 1'), {(3, "key-misspelt", E)}),
    "a quoted number": (entry('"devicesplitcount": "5"'), {(3, "string-for-number", E)}),
    "a quoted scaling": (entry('"devicecorescaling": "1"'), {(3, "string-for-number", E)}),
    "quoted indexes": (entry('"filterdevices": {"index": [\n "0",\n "1"]}'), {(4, "string-for-number", E)}),
    "a whole float": (entry('"devicesplitcount": 5.0'), {(3, "number-range", E)}),
    "a fraction": (entry('"devicesplitcount": 2.5'), {(3, "number-range", E)}),
    "an exponent": (entry('"devicesplitcount": 1e1'), {(3, "number-range", E)}),
    "a negative index": (entry('"filterdevices": {"index": [-1]}'), {(3, "number-range", E)}),
    "a negative scaling": (entry('"devicecorescaling": -1'), {(3, "number-range", E)}),
    "a boolean for a number": (entry('"devicesplitcount": true'), {(3, "type-mismatch", E)}),
    "a number for a name": ('{"nodeconfig": [\n {"name": 1}]}', {(2, "type-mismatch", E)}),
    "a list for a mode": (entry('"operatingmode": ["mig"]'), {(3, "type-mismatch", E)}),
    "an entry for the list": ('{"nodeconfig":\n {"name": "gpu01", "devicesplitcount": 5}}', {(2, "type-mismatch", E)}),
    "a word for an index list": (entry('"filterdevices": {"index": 0}'), {(3, "type-mismatch", E)}),
    "a text for an entry": ('{"nodeconfig": [\n "gpu01"]}', {(2, "type-mismatch", E)}),
    "the list alone": ('[\n {"name": "gpu01", "devicesplitcount": 5}]', {(1, "wrong-nesting", E)}),
    "an entry alone": ('{\n "NAME": "gpu01",\n "operatingMode": "mig"}', {(2, "wrong-nesting", E)}),
    "one level too many": ('{\n "config": {"nodeconfig": []}}', {(2, "wrong-nesting", E)}),
    "the filter's keys in the entry": (entry('"uuid": [],\n "index": [0]'), {(3, "wrong-nesting", E)}),
    "a factor": (entry('"gpumemoryfactor": 10'), {(3, "per-node-factor", E)}),
    "a factor of another spelling": (entry('"gpu_memory_factor": 10'), {(3, "per-node-factor", E)}),
    "a factor misspelt": (entry('"gpuMemoryfaktor": 10'), {(3, "per-node-factor", E)}),
    "capitals": (entry('"operatingmode": "Hami-Core"'), {(3, "mode-value", E)}),
    "hami": (entry('"operatingmode": "hami"'), {(3, "mode-value", E)}),
    "mps": (entry('"operatingmode": "mps"'), {(3, "mode-value", E)}),
    "a key in two cases": (entry('"devicesplitcount": 5, \n "deviceSplitCount": 6'), {(4, "duplicate-key", E)}),
    "a key twice": (entry('"devicesplitcount": 5,\n "devicesplitcount": 5'), {(4, "duplicate-key", E)}),
    "a node twice": ('{"nodeconfig": [\n {"name": "gpu01"},\n {\n "name": "gpu01"}]}', {(4, "duplicate-key", E)}),
    "no name": ('{"nodeconfig": [\n {"devicesplitcount": 5}]}', {(2, "name-missing", E)}),
    "cores over": (entry('"devicecorescaling": 1.2'), {(3, "core-scaling-over", W)}),
    "memory over": (entry('"devicememoryscaling": 2'), {(3, "dead-key", W)}),
    "memory over in other case": (entry('"deviceMemoryScaling": 1.8'), {(3, "dead-key", W)}),
    "a strategy": (entry('"migstrategy": "mixed"'), {(3, "dead-key", W)}),
    "an unknown node": ('{"nodeconfig": [\n {"name": "gpu03"}]}', {(2, "node-unknown", W)}),
    "a node in other case": ('{"nodeconfig": [\n {"name": "GPU01"}]}', {(2, "node-unknown", W)}),
    "the example": ('{"nodeconfig": [\n {"name": "gpu01"},\n {"name": "aio-node67"}]}', {(3, "node-unknown", W)}),
    "MIG on a card without it": (
        '{"nodeconfig": [\n {"name": "gpu02", "operatingmode": "mig"}]}',
        {(2, "mig-unsupported", E)},
    ),
    "a template": (entry('"devicesplitcount": "{{ .Values.split }}"'), {(3, "unrendered-template", E)}),
}


@pytest.mark.parametrize(("text", "wanted"), BROKEN.values(), ids=BROKEN.keys())
@pytest.mark.parametrize("form", ["bare", "crlf", "config-map"])
def test_a_defect_is_found_on_its_line(text: str, wanted: set[tuple[int, str, Severity]], form: str) -> None:
    if form == "crlf":
        text = text.replace("\n", "\r\n")
    if form == "config-map":
        if not text or text.startswith(("\ufeff", "\n")):
            pytest.skip("cannot stand in a block as it is")
        text = config_map("volcano-vgpu-node-config", "config.json", text)
        wanted = {(line + 7, rule, level) for line, rule, level in wanted}
    assert found(text, "node-config", POOL, "config.json" if form != "config-map" else "x.yaml") == wanted


VALID = {
    "empty list": '{"nodeconfig": []}',
    "null list": '{"nodeconfig": null}',
    "keys in any case": '{"NodeConfig": [{"Name": "gpu01", "OperatingMode": "mig", "DeviceSplitCount": 7}]}',
    "tabs": '{\t"nodeconfig": [\n\t\t{"name": "gpu01"}\n\t]\n}\n',
    "nulls": entry('"filterdevices": null, "operatingmode": null, "devicesplitcount": null'),
    "nothing in particular": entry('"operatingmode": "", "migstrategy": "none", "devicememoryscaling": 1'),
    "a fraction of the cores": entry('"devicecorescaling": 0.5'),
    "an exponent where a float may be": entry('"devicecorescaling": 1e0'),
    "an index beyond the cards": entry(
        '"filterdevices": {"index": [0, 15], "uuid": ["GPU-0f6a2b9c-1d3e-4f50-8a6b-7c8d9e0f1a2b"]}'
    ),
    "notes": '{"_owner": "platform", "nodeconfig": [{"name": "gpu01", "_comment": "two cards"}]}',
    "another key at the top": '{"version": "v1", "nodeconfig": [{"name": "gpu01"}]}',
    "in a ConfigMap": config_map("volcano-vgpu-node-config", "config.json", '{"nodeconfig": [{"name": "gpu01"}]}'),
    "a ConfigMap in JSON": '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "volcano-vgpu-node-config", '
    '"namespace": "kube-system"}, "data": {"config.json": "{\\"nodeconfig\\": [{\\"name\\": \\"gpu01\\"}]}"}}',
}


@pytest.mark.parametrize("text", VALID.values(), ids=VALID.keys())
def test_what_works_upstream_is_left_alone(text: str) -> None:
    assert (found(text, "node-config", POOL), infos(text, "node-config", POOL)) == (set(), [])
    assert found(text, context=POOL) == set(), "it is told by itself what it is"


def test_without_the_nodes_no_name_is_unknown() -> None:
    assert found('{"nodeconfig": [{"name": "nobody"}]}') == set()


def test_a_zero_is_worth_knowing_since_it_does_not_apply() -> None:
    text = entry('"devicesplitcount": 0')
    assert (found(text), infos(text)) == (set(), ["number-range"])
