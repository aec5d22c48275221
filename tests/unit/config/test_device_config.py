# ruff: noqa: E501 (tables: one case a line)
"""The device config: what each rule finds, on which line, and what it leaves alone."""

from __future__ import annotations

import pytest

from tests.unit.config.marks import block, config_map, found, infos, wanted
from vgpuctl.model.context import Context, PoolNode
from vgpuctl.model.version_number import VersionNumber

GOOD = """\
nvidia:
  resourceCountName: volcano.sh/vgpu-number
  resourceMemoryName: volcano.sh/vgpu-memory
  resourceMemoryPercentageName: volcano.sh/vgpu-memory-percentage
  resourceCoreName: volcano.sh/vgpu-cores
  deviceSplitCount: 10
  deviceCoreScaling: 1
  gpuMemoryFactor: 1
"""


def good(**edits: str | None) -> str:
    """The good file with lines replaced by key, removed (None), or put before the end (`more`)."""
    more = edits.pop("more", "") or ""
    lines = []
    for line in GOOD.splitlines():
        key = line.strip().partition(":")[0]
        if key in edits:
            if edits[key] is not None:
                lines.append(f"  {edits[key]}")
        else:
            lines.append(line)
    return "\n".join(lines) + "\n" + more


def mig(geometries: str, models: str = '["A100-SXM4-80GB"]') -> str:
    return good(more=f"  knownMigGeometries:\n  - models: {models}\n    allowedGeometries:\n{block(geometries)}")


BROKEN = {
    # a misspelt key, and what it was meant to be is not reported missing as well
    "memory name misspelt": good(resourceMemoryName="resourceMemName: volcano.sh/vgpu-memory  #! key-misspelt"),
    "factor misspelt": good(gpuMemoryFactor="gpuMemroyFactor: 8  #! key-misspelt"),
    "factor abbreviated": good(gpuMemoryFactor="memoryFactor: 8  #! key-misspelt"),
    "split misspelt": good(deviceSplitCount="deviceSplitcounts: 8  #! key-misspelt"),
    "split in snake case": good(deviceSplitCount="device_split_count: 8  #! key-misspelt"),
    "a key of HAMi": good(more="  libCudaLogLevel: 1  #! key-misspelt\n"),
    "a key inside a geometry": mig(
        "- group: g1\n  geometry:  #! key-misspelt\n  - {name: 1g.10gb, memory: 9728, count: 7}\n"
    ),
    "a key inside a slice": mig(
        "- group: g1\n  geometries:\n  - name: 1g.10gb\n    mem: 9728  #! key-misspelt\n    count: 7\n"
    ),
    "models misspelt": good(
        more="  knownMigGeometries:\n  - model: [A30]  #! key-misspelt\n    allowedGeometries: [{group: a, geometries: "
        "[{name: 1g.6gb, memory: 5952, count: 4}]}]\n"
    ),
    "the section misspelt": GOOD.replace("nvidia:", "nvidea:  #! key-misspelt"),
    # case
    "count name in other case": good(resourceCountName="ResourceCountName: volcano.sh/vgpu-number  #! key-case"),
    "split in small letters": good(deviceSplitCount="devicesplitcount: 10  #! key-case"),
    "the section in capitals": GOOD.replace("nvidia:", "NVIDIA:  #! key-case"),
    "a MIG key in other case": mig(
        "- Group: g1  #! key-case\n  geometries: [{name: 1g.10gb, memory: 9728, count: 7}]\n"
    ),
    "the table in other case": good(more="  KnownMigGeometries: []  #! key-case\n"),
    # nesting
    "all keys at the top": "".join(line[2:] for line in GOOD.splitlines(keepends=True)[1:]).replace(
        "\n", "  #! wrong-nesting\n", 1
    ),
    "one key beside the section": GOOD.replace("  gpuMemoryFactor: 1", "gpuMemoryFactor: 1  #! wrong-nesting"),
    "two keys beside the section": GOOD.replace("  deviceCoreScaling", "deviceCoreScaling").replace(
        "deviceCoreScaling: 1\n  gpuMemoryFactor: 1", "deviceCoreScaling: 1  #! wrong-nesting\ngpuMemoryFactor: 1"
    ),
    "a helm wrapper": "devicePlugin:  #! wrong-nesting\n" + block(GOOD, 2),
    "two wrappers": "devicePlugin:  #! wrong-nesting\n  config:\n" + block(GOOD),
    "the section without its indentation": "nvidia:\n"
    + "".join(line[2:] for line in GOOD.splitlines(keepends=True)[1:]).replace("\n", "  #! wrong-nesting\n", 1),
    "one level too many": "nvidia:\n  config:  #! wrong-nesting\n"
    + block("".join(GOOD.splitlines(keepends=True)[1:]), 2),
    # types
    "a quoted factor": good(gpuMemoryFactor='gpuMemoryFactor: "10"  #! string-for-number'),
    "a quoted scaling": good(deviceCoreScaling="deviceCoreScaling: '1.0'  #! string-for-number"),
    "words for a number": good(deviceSplitCount="deviceSplitCount: ten  #! string-for-number"),
    "a number with a unit": good(gpuMemoryFactor="gpuMemoryFactor: 10Mi  #! string-for-number"),
    "a quoted MIG count": mig(
        '- group: g1\n  geometries:\n  - name: 1g.10gb\n    memory: 9728\n    count: "7"  #! string-for-number\n'
    ),
    "a quoted MIG memory": mig(
        '- group: g1\n  geometries:\n  - name: 1g.10gb\n    memory: "9728"  #! string-for-number\n    count: 7\n'
    ),
    "a tagged string": good(deviceSplitCount="deviceSplitCount: !!str 10  #! string-for-number"),
    "a quoted boolean": good(more='  disableCoreLimit: "true"  #! string-for-bool\n'),
    "a word for a boolean": good(more="  overwriteEnv: enabled  #! string-for-bool\n"),
    "a boolean of one loader": good(more="  passDeviceSpecs: 'no'  #! string-for-bool\n"),
    "a number for a boolean": good(more="  overwriteEnv: 0  #! type-mismatch\n"),
    "a boolean for a number": good(deviceSplitCount="deviceSplitCount: yes  #! type-mismatch"),
    "a list for a number": good(deviceSplitCount="deviceSplitCount: [10]  #! type-mismatch"),
    "a mapping for a name": good(resourceCoreName="resourceCoreName: {name: volcano.sh/vgpu-cores}  #! type-mismatch"),
    "the section as a list": "nvidia:\n- deviceSplitCount: 10  #! type-mismatch\n",
    "the root as a list": "- nvidia:  #! type-mismatch\n    deviceSplitCount: 10\n",
    # numbers
    "a negative factor": good(gpuMemoryFactor="gpuMemoryFactor: -1  #! number-range"),
    "a fraction": good(deviceSplitCount="deviceSplitCount: 4.9  #! number-range"),
    "a fraction below one": good(gpuMemoryFactor="gpuMemoryFactor: 0.5  #! number-range"),
    "an infinite scaling": good(deviceCoreScaling="deviceCoreScaling: .inf  #! number-range"),
    "a negative scaling": good(deviceCoreScaling="deviceCoreScaling: -1  #! number-range"),
    "no slices of a kind": mig(
        "- group: g1\n  geometries:\n  - name: 1g.10gb\n    memory: 9728\n    count: 0  #! number-range\n"
    ),
    "an octal factor": good(gpuMemoryFactor="gpuMemoryFactor: 010  #! yaml-octal"),
    "an octal count": mig(
        "- group: g1\n  geometries:\n  - name: 1g.10gb\n    memory: 011000  #! yaml-octal\n    count: 7\n"
    ),
    "an octal scaling": good(deviceCoreScaling="deviceCoreScaling: 0010  #! yaml-octal"),
    # zero
    "no factor": good(gpuMemoryFactor=None).replace("nvidia:", "nvidia:  #! factor-zero"),
    "a null factor": good(gpuMemoryFactor="gpuMemoryFactor:  #! factor-zero"),
    "a null word": good(gpuMemoryFactor="gpuMemoryFactor: ~  #! factor-zero"),
    "no split": good(deviceSplitCount="deviceSplitCount: 0  #! split-zero"),
    "a null split": good(deviceSplitCount="deviceSplitCount: null  #! split-zero"),
    "no cores": good(deviceCoreScaling="deviceCoreScaling: 0.0  #! core-scaling-zero"),
    "null cores": good(deviceCoreScaling="deviceCoreScaling:  #! core-scaling-zero"),
    "an empty section": "nvidia:  #! factor-zero, split-zero, core-scaling-zero, resource-name-missing\n"
    "  resourceMemoryPercentageName: volcano.sh/vgpu-memory-percentage\n",
    "an empty name": good(resourceCountName='resourceCountName: ""  #! resource-name-missing'),
    "no core name": good(resourceCoreName=None).replace("nvidia:", "nvidia:  #! resource-name-missing"),
    "an empty percentage": good(
        resourceMemoryPercentageName="resourceMemoryPercentageName: ''  #? percentage-name-missing"
    ),
    # too much
    "cores over": good(deviceCoreScaling="deviceCoreScaling: 1.5  #? core-scaling-over"),
    "cores far over": good(deviceCoreScaling="deviceCoreScaling: 10  #? core-scaling-over"),
    "an integer over": good(deviceCoreScaling="deviceCoreScaling: 2  #? core-scaling-over"),
    # names
    "names of another product": good(
        resourceCountName="resourceCountName: nvidia.com/gpu  #! foreign-resource-names",
        resourceMemoryName="resourceMemoryName: nvidia.com/gpumem  #! foreign-resource-names",
        resourceCoreName="resourceCoreName: nvidia.com/gpucores  #! foreign-resource-names",
    ),
    "a bare name": good(resourceCountName="resourceCountName: vgpu-number  #! foreign-resource-names"),
    "another domain": good(resourceCoreName="resourceCoreName: example.com/vgpu-cores  #! foreign-resource-names"),
    # dead keys
    "oversubscription": good(more="  deviceMemoryScaling: 256  #? dead-key\n"),
    "below one": good(more="  deviceMemoryScaling: 0.5  #? dead-key\n"),
    "default memory": good(more="  defaultMemory: 1000  #? dead-key\n"),
    "default cores": good(more="  defaultCores: 30  #? dead-key\n"),
    "default number": good(more="  defaultGPUNum: 2  #? dead-key\n"),
    "environment": good(more="  overwriteEnv: yes  #? dead-key\n"),
    "device specs": good(more="  passDeviceSpecs: true  #? dead-key\n"),
    "priority": good(more="  resourcePriorityName: volcano.sh/vgpu-priority  #? dead-key\n"),
    # the two loaders
    "negative cores": good(more="  defaultCores: -5  #! loaders-disagree\n"),
    "too large for one": good(more="  defaultMemory: 3000000000  #! loaders-disagree\n"),
    "a broken Ascend section": GOOD + "vnpus: none  #! loaders-disagree\n",
    "a broken chip": GOOD + "vnpus:\n- chipName: 310P3\n  aiCore: eight  #! loaders-disagree\n",
    "a broken wrapper": GOOD + "vnpus:\n  hamiVnpuCore: false\n  configs: {chipName: 310P3}  #! loaders-disagree\n",
    "a negative slice": mig(
        "- group: g1\n  geometries:\n  - name: 1g.10gb\n    memory: -1  #! loaders-disagree\n    count: 7\n"
    ),
    # MIG shapes
    "a flat list": mig(
        "- name: 1g.10gb  #! mig-shape\n  memory: 9728\n  count: 7\n- name: 2g.20gb\n  memory: 19968\n  count: 3\n"
    ),
    "a list of lists": mig("- - name: 1g.10gb  #! mig-shape\n    memory: 9728\n    count: 7\n"),
    "models as a word": mig(
        "- group: g1\n  geometries: [{name: 1g.10gb, memory: 9728, count: 7}]\n", "A100-SXM4-80GB  #! mig-shape"
    ),
    "geometries as a mapping": mig(
        "- group: g1\n  geometries: {name: 1g.10gb, memory: 9728, count: 7}  #! mig-shape\n"
    ),
    "the table as a mapping": good(more="  knownMigGeometries:\n    models: [A30]  #! mig-shape\n"),
    "a slice as a word": mig("- group: g1\n  geometries:\n  - 1g.10gb  #! mig-shape\n"),
    "a group without a name": mig("- geometries: [{name: 1g.10gb, memory: 9728, count: 7}]  #! mig-shape\n"),
    "a group without slices": mig("- group: g1  #! mig-shape\n"),
    "an entry without models": good(more="  knownMigGeometries:\n  - allowedGeometries: []  #! mig-shape\n"),
    "slices in the entry": good(more="  knownMigGeometries:\n  - models: [A30]\n    geometries: []  #! mig-shape\n"),
    # MIG groups
    "a dash": mig("- group: seven-way  #! mig-group-name\n  geometries: [{name: 1g.10gb, memory: 9728, count: 7}]\n"),
    "a bracket": mig("- group: 'all[7]'  #! mig-group-name\n  geometries: [{name: 1g.10gb, memory: 9728, count: 7}]\n"),
    "a colon": mig("- group: 'a:b'  #! mig-group-name\n  geometries: [{name: 1g.10gb, memory: 9728, count: 7}]\n"),
    "the same group twice": mig(
        "- group: g1\n  geometries: [{name: 1g.10gb, memory: 9728, count: 7}]\n"
        "- group: g1  #! mig-group-name\n  geometries: [{name: 2g.20gb, memory: 19968, count: 3}]\n"
    ),
    # MIG units
    "gibibytes": mig("- group: g1\n  geometries:\n  - name: 1g.10gb\n    memory: 9.5Gi  #! mig-unit\n    count: 7\n"),
    "mebibytes": mig("- group: g1\n  geometries:\n  - name: 1g.10gb\n    memory: 9728Mi  #! mig-unit\n    count: 7\n"),
    "megabytes in quotes": mig(
        '- group: g1\n  geometries:\n  - name: 1g.10gb\n    memory: "9728 MB"  #! mig-unit\n    count: 7\n'
    ),
    "gigabytes as a number": mig(
        "- group: g1\n  geometries:\n  - name: 1g.10gb\n    memory: 10  #! mig-unit\n    count: 7\n"
    ),
    "bytes": mig("- group: g1\n  geometries:\n  - name: 1g.10gb\n    memory: 10200547328  #! mig-unit\n    count: 7\n"),
    # MIG tables
    "too much memory": mig(
        "- group: g1\n  geometries:\n  - name: 2g.20gb\n    memory: 20480  #? mig-template-wrong\n    count: 3\n"
    ),
    "an old name": mig(
        "- group: g1\n  geometries:\n  - name: 7g.79gb  #? mig-template-wrong\n    memory: 80896\n    count: 1\n"
    ),
    "another card's slice": mig(
        "- group: g1\n  geometries:\n  - name: 1g.5gb  #? mig-template-wrong\n    memory: 4864\n    count: 7\n"
    ),
    "too many": mig(
        "- group: g1\n  geometries:\n  - name: 3g.40gb\n    memory: 40192\n    count: 3  #? mig-template-wrong\n"
    ),
    "too many together": mig(
        "- group: g1\n  geometries:\n  - {name: 3g.40gb, memory: 40192, count: 2}\n"
        "  - {name: 2g.20gb, memory: 19968, count: 1}  #? mig-template-wrong\n"
    ),
    "a card without MIG": mig(
        "- group: g1\n  geometries: [{name: 1g.10gb, memory: 9728, count: 7}]\n", "[Tesla-T4]  #? mig-template-wrong"
    ),
    "one of two cards without MIG": mig(
        "- group: g1\n  geometries: [{name: 1g.10gb, memory: 9728, count: 7}]\n",
        "[A100-SXM4-80GB, L40S]  #? mig-template-wrong",
    ),
    # text
    "the same key at a lower level": mig(
        "- group: g1\n  group: g2  #! duplicate-key\n  geometries: [{name: 1g.10gb, memory: 9728, count: 7}]\n"
    ),
    "the section twice": GOOD + "nvidia:  #! duplicate-key\n" + "".join(GOOD.splitlines(keepends=True)[1:]),
    "the same value twice": good(more="  deviceSplitCount: 10  #! duplicate-key\n"),
    "a second document": GOOD + "---  #! extra-document\nnvidia:\n  gpuMemoryFactor: 8\n",
    "an empty first document": "---\n---  #! extra-document\n" + GOOD,
    "a tab": GOOD.replace("  deviceSplitCount: 10", "\tdeviceSplitCount: 10  #! yaml-tab"),
    "a tab after spaces": GOOD.replace("  deviceSplitCount: 10", "  \tdeviceSplitCount: 10  #! yaml-tab"),
    "a tab at the end": GOOD.replace("  gpuMemoryFactor: 1", "\tgpuMemoryFactor: 1  #! yaml-tab"),
    "a colon without a space": good(deviceSplitCount="deviceSplitCount:10  #! yaml-syntax"),
    "too deep": GOOD.replace("  deviceSplitCount: 10", "    deviceSplitCount: 10  #! yaml-syntax"),
    "an open quote": good(gpuMemoryFactor='gpuMemoryFactor: "1  #! yaml-syntax'),
    "an em space": GOOD.replace("  deviceSplitCount: 10", "\u2003deviceSplitCount: 10  #! invisible-character"),
    "a no-break space before the value": good(gpuMemoryFactor="gpuMemoryFactor: \u00a01  #! invisible-character"),
    "a zero-width space in a key": good(gpuMemoryFactor="gpuMemory\u200bFactor: 1  #! invisible-character"),
    # templates
    "helm": good(gpuMemoryFactor="gpuMemoryFactor: {{ .Values.factor }}  #! unrendered-template"),
    "helm in quotes": good(gpuMemoryFactor='gpuMemoryFactor: "{{ .Values.factor }}"  #! unrendered-template'),
    "helm in a name": good(resourceCountName="resourceCountName: {{ .Values.name | quote }}  #! unrendered-template"),
    "a branch": GOOD.replace("nvidia:", "{{- if .Values.on }}  #! unrendered-template\nnvidia:")
    + "{{- end }}  #! unrendered-template\n",
    "the shell": good(deviceSplitCount="deviceSplitCount: ${SPLIT}  #! unrendered-template"),
    "jinja": good(deviceSplitCount="deviceSplitCount: {{ split }}  #! unrendered-template"),
    # other files
    "mig-parted": "version: v1  #! foreign-format\nmig-configs:\n  all-1g.10gb:\n  - devices: all\n",
    "time-slicing with a comment": "# time slicing\nversion: v1  #! foreign-format\nsharing:\n  timeSlicing: {}\n",
    "an operator's values": "operator:  #! foreign-format\n  defaultRuntime: containerd\n",
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN.keys())
@pytest.mark.parametrize("form", ["bare", "crlf", "config-map"])
def test_a_defect_is_found_on_its_line(text: str, form: str) -> None:
    if form == "crlf":
        text = text.replace("\n", "\r\n")
    if form == "config-map":
        text = config_map("volcano-vgpu-device-config", "device-config.yaml", text)
        if "\t" in text.splitlines()[7][:5]:
            pytest.skip("the block would end at the tab")
    assert found(text, "device-config") == wanted(text)


A100 = PoolNode("n1", 8, "NVIDIA A100-SXM4-80GB", 81920)
VALID = {
    "plain": GOOD,
    "with a byte order mark": "\ufeff" + GOOD,
    "with an explicit start": "%YAML 1.1\n---\n" + GOOD,
    "with an end": GOOD + "...\n",
    "with an empty document behind": GOOD + "---\n",
    "with comments": "# pool\n" + GOOD.replace("gpuMemoryFactor: 1", "gpuMemoryFactor: 1 # {{ not a template }}"),
    "numbers in other notations": good(
        gpuMemoryFactor="gpuMemoryFactor: 0x10",
        deviceSplitCount="deviceSplitCount: 1_0",
        deviceCoreScaling="deviceCoreScaling: 1e0",
    ),
    "a whole float": good(deviceSplitCount="deviceSplitCount: 10.0"),
    "less than all cores": good(deviceCoreScaling="deviceCoreScaling: 0.8"),
    "dead keys at rest": good(
        more="  deviceMemoryScaling: 1.0\n  disableCoreLimit: false\n  overwriteEnv: off\n  defaultMemory: 0\n"
        "  defaultCores: 0\n  defaultGPUNum: 1\n  resourcePriorityName: ''\n  passDeviceSpecs: no\n"
    ),
    "no geometries": good(more="  knownMigGeometries:\n"),
    "JSON": '{"nvidia": {"resourceCountName": "volcano.sh/vgpu-number", "resourceMemoryName": "volcano.sh/vgpu-memory",\n'
    '"resourceMemoryPercentageName": "volcano.sh/vgpu-memory-percentage", "resourceCoreName": "volcano.sh/vgpu-cores",\n'
    '"deviceSplitCount": 5, "deviceCoreScaling": 1, "gpuMemoryFactor": 8}}',
    "quoted names": good(resourceCountName='"resourceCountName": "volcano.sh/vgpu-number"'),
    "anchors": "factor: &f 8\n" + good(gpuMemoryFactor="gpuMemoryFactor: *f"),
    "merged": "base: &b\n" + "".join(GOOD.splitlines(keepends=True)[1:]) + "nvidia:\n  <<: *b\n  gpuMemoryFactor: 4\n",
    "another vendor beside it": GOOD
    + "hygon:\n  resourceCountName: hygon.com/dcu\nvnpus:\n  hamiVnpuCore: false\n  configs: []\n",
    "a note": good(more="  _owner: platform\n  x-team: gpu\n"),
    "the shipped table": mig(
        "- group: group1\n  geometries:\n  - {name: 1g.5gb, memory: 5120, count: 7}\n",
        "[A100-SXM4-40GB, A100-PCIE-40GB]",
    ),
    "a media slice": mig(
        "- group: g_1\n  geometries:\n  - {name: 1g.10gb+me, memory: 9728, count: 1}\n  - {name: 1g.10gb, memory: 9728, count: 6}\n"
    ),
    "a slice smaller than it could be": mig("- group: g1\n  geometries: [{name: 1g.10gb, memory: 9000, count: 7}]\n"),
    "a card we do not know": mig("- group: g1\n  geometries: [{name: 1g.99gb, memory: 99000, count: 7}]\n", "[X900]"),
    "a card of two sizes": mig("- group: g1\n  geometries: [{name: 1g.5gb, memory: 4864, count: 7}]\n", "[A100]"),
    "numbers as names": mig("- group: 1\n  geometries: [{name: 1g.10gb, memory: 9728, count: 7}]\n"),
    "in a folded block": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: volcano-vgpu-device-config, namespace: kube-system}\n"
    "data:\n  device-config.yaml: >\n" + block(GOOD),
    "in a quoted string": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: volcano-vgpu-device-config, namespace: kube-system}\n"
    'data:\n  device-config.yaml: "' + GOOD.replace("\n", "\\n") + '"\n',
    "in the other namespace": config_map("volcano-vgpu-device-config", "device-config.yaml", GOOD, "volcano-system"),
}


@pytest.mark.parametrize("text", VALID.values(), ids=VALID.keys())
def test_what_works_upstream_is_left_alone(text: str) -> None:
    assert (found(text, "device-config"), infos(text, "device-config")) == (set(), [])
    assert found(text) == set(), "it is told by itself what it is"


def _nodes(*cards: tuple[int, int]) -> Context:
    return Context(
        nodes=tuple(PoolNode(f"n{i}", count, "NVIDIA H100 80GB HBM3", mib) for i, (count, mib) in enumerate(cards))
    )


@pytest.mark.parametrize(
    ("cards", "factor", "rule"),
    [
        (((8, 81559),), 10, "factor-too-small"),
        (((8, 81559),), 11, None),
        (((8, 143771),), 19, "factor-too-small"),
        (((8, 143771),), 20, None),
        (((1, 15360), (4, 81559)), 5, "factor-too-small"),
        (((1, 15360), (4, 81559)), 6, None),
        (((2, 24564),), 1, None),
        (((1, 15360),), 20000, "factor-too-large"),
    ],
)
def test_the_factor_follows_from_the_largest_node(
    cards: tuple[tuple[int, int], ...], factor: int, rule: str | None
) -> None:
    text = good(gpuMemoryFactor=f"gpuMemoryFactor: {factor}")
    assert {(line, name) for line, name, _ in found(text, context=_nodes(*cards))} == ({(8, rule)} if rule else set())


def test_cards_of_two_kinds_in_one_node_add_up() -> None:
    context = Context(nodes=(PoolNode("n1", 4, "A", 81920), PoolNode("n1", 4, "B", 40960)))
    assert {rule for _, rule, _ in found(good(gpuMemoryFactor="gpuMemoryFactor: 8"), context=context)} == {
        "factor-too-small"
    }
    assert found(good(gpuMemoryFactor="gpuMemoryFactor: 9"), context=context) == set()


@pytest.mark.parametrize(
    ("version", "rules"),
    [
        (None, set()),
        ("1.13.0", set()),
        ("1.14.2", set()),
        ("1.14.3", {"resource-renamed"}),
        ("1.15.0", set()),
        ("1.15.1", {"resource-renamed"}),
    ],
)
def test_renamed_resources_depend_on_volcano(version: str | None, rules: set[str]) -> None:
    context = Context(volcano=VersionNumber(version) if version else None)
    text = good(resourceCountName="resourceCountName: volcano.sh/slices")
    assert {rule for _, rule, _ in found(text, context=context)} == rules
    assert infos(text, context=context) == ([] if version else ["resource-renamed"])


def test_a_mig_node_needs_a_table_entry_that_its_name_contains() -> None:
    table = mig("- group: g1\n  geometries: [{name: 1g.10gb, memory: 9728, count: 7}]\n", "[A100-80GB-PCIe]")
    context = Context(nodes=(PoolNode("n1", 1, "NVIDIA A100 80GB PCIe", 81920, "mig"),))
    factor = table.replace("gpuMemoryFactor: 1", "gpuMemoryFactor: 2")
    assert {rule for _, rule, _ in found(factor, context=context)} == {"mig-model-unmatched"}
    assert found(factor.replace("A100-80GB-PCIe", "A100 80GB PCIe"), context=context) == set()


def test_the_article_s_file_is_taken_apart() -> None:
    article = good(
        gpuMemoryFactor="gpuMemoryFactor: 10",
        more="  deviceMemoryScaling: 256  #? dead-key\n  knownMigGeometries:\n"
        '  - models: ["V100-SXM2-32GB"]  #? mig-template-wrong\n    allowedGeometries:\n'
        "    - name: train-slice  #! mig-shape\n      memory: 8000\n      count: 4\n",
    )
    assert found(article) == wanted(article)
