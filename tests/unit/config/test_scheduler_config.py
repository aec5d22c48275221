# ruff: noqa: E501 (tables: one case a line)
"""Volcano's scheduler configuration: what switches vGPU on, off, or does nothing."""

from __future__ import annotations

import pytest

from tests.unit.config.marks import config_map, found, infos, wanted
from vgpuctl.model.context import Context
from vgpuctl.model.version_number import VersionNumber

HEAD = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: drf
  - name: predicates
"""
TAIL = """\
  - name: proportion
  - name: nodeorder
  - name: binpack
"""
ON = "      deviceshare.VGPUEnable: true\n"


def conf(plugin: str = "", head: str = HEAD, tail: str = TAIL) -> str:
    return head + (plugin or share(ON)) + tail


def share(arguments: str, options: str = "", mark: str = "") -> str:
    return f"  - name: deviceshare{mark}\n{options}    arguments:\n{arguments}"


def argued(arguments: str) -> str:
    return conf(share(ON + arguments))


BROKEN = {
    "a policy misspelt": argued("      deviceshare.SchedulerPolicy: binpack  #! key-misspelt\n"),
    "a weight misspelt": argued(
        "      deviceshare.SchedulePolicy: spread\n      deviceshare.SchedulWeight: 10  #! key-misspelt\n"
    ),
    "without its prefix": conf(share("      VGPUEnable: true  #! key-misspelt\n")),
    "the prefix misspelt": conf(share("      devicesshare.VGPUEnable: true  #! key-misspelt\n")),
    "of no plugin": argued("      deviceshare.Frobnicate: true  #! key-misspelt\n"),
    "arguments misspelt": conf("  - name: deviceshare\n    argument:  #! key-misspelt\n" + ON),
    "actions misspelt": conf(
        head=HEAD.replace('actions: "enqueue, allocate, backfill"', 'action: "enqueue"  #! key-misspelt')
    ),
    "an option misspelt": conf(
        head=HEAD.replace("enablePreemptable: false", "enablePremptable: false  #! key-misspelt")
    ),
    "plugins misspelt": conf(
        head=HEAD.replace("tiers:\n- plugins:", "tiers:\n- plugin:  #! key-misspelt"), tail=TAIL + "  - name: gang\n"
    ),
    "small letters": conf(share("      deviceshare.vgpuenable: true  #! key-case\n")),
    "a capital prefix": conf(share("      DeviceShare.VGPUEnable: true  #! key-case\n")),
    "a weight in other case": argued(
        "      deviceshare.SchedulePolicy: binpack\n      deviceshare.scheduleWeight: 10  #! key-case\n"
    ),
    "an option in other case": conf(
        head=HEAD.replace("enablePreemptable: false", "EnablePreemptable: false  #! key-case")
    ),
    "arguments beside the name": conf(
        "  - name: deviceshare\n    deviceshare.VGPUEnable: true  #! wrong-nesting\n    deviceshare.SchedulePolicy: binpack\n"
    ),
    "under another plugin": conf(
        "  - name: deviceshare\n",
        head=HEAD.replace(
            "- name: predicates\n",
            "- name: predicates\n    arguments:\n      deviceshare.VGPUEnable: true  #! wrong-nesting\n",
        ),
    ),
    "plugins without tiers": 'actions: "enqueue, allocate"\nplugins:  #! wrong-nesting\n- name: deviceshare\n',
    "names in the tier": HEAD.split("- plugins", maxsplit=1)[0] + "- name: priority  #! wrong-nesting\n- name: gang\n",
    "one level too deep": "config:  #! wrong-nesting\n  actions: enqueue\n  tiers:\n  - plugins: []\n",
    "arguments as a list": conf(
        "  - name: deviceshare\n    arguments:\n    - deviceshare.VGPUEnable: true  #! type-mismatch\n"
    ),
    "arguments as a word": conf("  - name: deviceshare\n    arguments: deviceshare.VGPUEnable  #! type-mismatch\n"),
    "actions as a list": conf(
        head=HEAD.replace('"enqueue, allocate, backfill"', "[enqueue, allocate]  #! type-mismatch")
    ),
    "plugins as words": HEAD.split("- plugins", maxsplit=1)[0]
    + "- plugins:\n  - predicates  #! type-mismatch\n  - deviceshare\n",
    "tiers as a mapping": 'actions: "enqueue"\ntiers:\n  plugins:  #! type-mismatch\n  - name: deviceshare\n',
    "a weight as a boolean": argued("      deviceshare.ScheduleWeight: true  #! type-mismatch\n"),
    "a name as a number": argued("      deviceshare.KnownGeometriesCMName: 5  #! type-mismatch\n"),
    "an option as a number": conf(
        head=HEAD.replace("enablePreemptable: false", "enablePreemptable: 0  #! type-mismatch")
    ),
    "a quoted option": conf(
        head=HEAD.replace("enablePreemptable: false", "enablePreemptable: 'no'  #! string-for-bool")
    ),
    "a quoted predicate": conf(share(ON, '    enablePredicate: "true"  #! string-for-bool\n')),
    "a word for an option": conf(
        head=HEAD.replace("enablePreemptable: false", "enablePreemptable: never  #! string-for-bool")
    ),
    "a weight in words": argued("      deviceshare.ScheduleWeight: ten  #! string-for-number\n"),
    "a quoted weight": argued("      deviceshare.ScheduleWeight: '5'  #! string-for-number\n"),
    "a float weight": argued("      deviceshare.ScheduleWeight: 10.0  #! number-range\n"),
    "a negative weight": argued("      deviceshare.ScheduleWeight: -1  #! number-range\n"),
    "an octal weight": argued("      deviceshare.ScheduleWeight: 010  #! yaml-octal\n"),
    "the number one": conf(share("      deviceshare.VGPUEnable: 1  #! bool-value\n")),
    "on in quotes": conf(share("      deviceshare.VGPUEnable: 'on'  #! bool-value\n")),
    "enabled": conf(share("      deviceshare.VGPUEnable: enabled  #! bool-value\n")),
    "nothing": conf(share("      deviceshare.VGPUEnable:  #! bool-value\n")),
    "another switch": argued('      deviceshare.NodeLockEnable: "yes"  #! bool-value\n'),
    "no predicates": conf(share(ON, mark="  #! predicates-missing"), head=HEAD.replace("  - name: predicates\n", "")),
    "predicates misspelt": conf(head=HEAD.replace("- name: predicates\n", "- name: predicate  #! unknown-plugin\n")),
    "deviceshare misspelt": conf("  - name: device-share  #! unknown-plugin\n    arguments:\n" + ON),
    "a plugin of another version": conf(tail=TAIL + "  - name: volumebinding  #? unknown-plugin\n"),
    "a private plugin": conf(tail=TAIL + "  - name: acme  #? unknown-plugin\n"),
    "a plugin in capitals": conf(tail=TAIL.replace("- name: binpack", "- name: BinPack  #? unknown-plugin")),
    "the older switch": conf(share(ON + "      deviceshare.GPUNumberEnable: true  #! exclusive-options\n")),
    "the older switch first": conf(share("      deviceshare.GPUSharingEnable: yes  #! exclusive-options\n" + ON)),
    "both older switches": conf(
        share(
            "      deviceshare.GPUSharingEnable: true\n      deviceshare.GPUNumberEnable: true  #! exclusive-options\n"
        )
    ),
    "a hierarchy beside proportion": conf(
        head=HEAD.replace("- name: drf\n", "- name: drf\n    enableHierarchy: true  #! exclusive-options\n")
    ),
    "a policy in capitals": argued(
        "      deviceshare.SchedulePolicy: SPREAD  #! policy-value\n      deviceshare.ScheduleWeight: 5\n"
    ),
    "a policy of another plugin": argued("      deviceshare.SchedulePolicy: leastused  #! policy-value\n"),
    "a policy that is no string": argued("      deviceshare.SchedulePolicy: 1  #! policy-value\n"),
    "no weight": argued("      deviceshare.SchedulePolicy: spread  #? policy-without-weight\n"),
    "weight zero": argued(
        "      deviceshare.SchedulePolicy: binpack  #? policy-without-weight\n      deviceshare.ScheduleWeight: 0\n"
    ),
    "weight before": argued(
        "      deviceshare.ScheduleWeight: 0\n      deviceshare.SchedulePolicy: 'binpack'  #? policy-without-weight\n"
    ),
    "Volcano 1.8's switch": conf(
        "  - name: overcommit\n",
        head=HEAD.replace(
            "- name: predicates\n",
            "- name: predicates\n    arguments:\n      predicate.VGPUEnable: true  #! deprecated-key\n",
        ),
    ),
    "the old switch in the new plugin": conf(share("      predicate.VGPUEnable: true  #! deprecated-key\n")),
    "the old switch of sharing": conf(
        "  - name: overcommit\n",
        head=HEAD.replace(
            "- name: predicates\n",
            '- name: predicates\n    arguments: {predicate.GPUSharingEnable: "true"}  #! deprecated-key\n',
        ),
    ),
    "the old switch left over": conf(
        head=HEAD.replace(
            "- name: predicates\n",
            "- name: predicates\n    arguments:\n      predicate.VGPUEnable: true  #? deprecated-key\n",
        )
    ),
    "an action too many": conf(
        head=HEAD.replace('"enqueue, allocate, backfill"', "enqueue, allocate, elect  #! unknown-action")
    ),
    "a comma too many": conf(
        head=HEAD.replace('"enqueue, allocate, backfill"', '"enqueue, allocate,"  #! unknown-action')
    ),
    "an action misspelt": conf(
        head=HEAD.replace('"enqueue, allocate, backfill"', '"enqueue, alocate"  #! unknown-action')
    ),
    "semicolons": conf(head=HEAD.replace('"enqueue, allocate, backfill"', '"enqueue; allocate"  #! unknown-action')),
    "twice in one tier": conf(share(ON) + "  - name: deviceshare  #! duplicate-plugin\n"),
    "twice with arguments": conf(share(ON) + share(ON, mark="  #! duplicate-plugin")),
    "another plugin twice": conf(tail=TAIL + "  - name: gang  #? duplicate-plugin\n"),
    "an argument twice": conf(share(ON + "      deviceshare.VGPUEnable: true  #! duplicate-key\n")),
    "the actions twice": conf() + "actions: enqueue, allocate  #! duplicate-key\n",
    "another device config": argued("      deviceshare.KnownGeometriesCMName: pool  #! config-source-mismatch\n"),
    "another namespace": argued("      deviceshare.KnownGeometriesCMNamespace: gpu-pool  #! config-source-mismatch\n"),
    "both": argued(
        "      deviceshare.KnownGeometriesCMName: pool  #! config-source-mismatch\n"
        '      deviceshare.KnownGeometriesCMNamespace: "default"  #! config-source-mismatch\n'
    ),
    "a tab": conf(share("\t  deviceshare.VGPUEnable: true  #! yaml-tab\n")),
    "the filter off": conf(share(ON, "    enablePredicate: no  #! predicate-off\n")),
    "the filter off at the end": conf(share(ON) + "    enablePredicate: false  #! predicate-off\n"),
    "the filter of predicates off": conf(
        head=HEAD.replace("- name: predicates\n", "- name: predicates\n    enablePredicate: false  #! predicate-off\n")
    ),
    "a number as a label": argued("      deviceshare.GPUExclusiveRules:\n      - tier: 1  #! exclusive-rule-value\n"),
    "a yes as a label": argued(
        "      deviceshare.GPUExclusiveRules:\n      - {exclusive: yes}  #! exclusive-rule-value\n"
    ),
    "no label value": argued(
        "      deviceshare.GPUExclusiveRules:\n      - app: train\n        team:  #! exclusive-rule-value\n"
    ),
    "rules as a mapping": argued("      deviceshare.GPUExclusiveRules:\n        app: train  #! exclusive-rule-value\n"),
    "a rule as a word": argued("      deviceshare.GPUExclusiveRules:\n      - train  #! exclusive-rule-value\n"),
    "no gang": conf(
        head=HEAD.replace("tiers:\n- plugins:", "tiers:\n- plugins:  #? core-plugins-missing").replace(
            "  - name: gang\n    enablePreemptable: false\n", ""
        )
    ),
    "no queue plugin": conf(
        head=HEAD.replace("tiers:\n- plugins:", "tiers:\n- plugins:  #? core-plugins-missing"),
        tail=TAIL.replace("  - name: proportion\n", ""),
    ),
    "no deviceshare": conf("  - name: overcommit\n", head=HEAD.replace("tiers:", "tiers:  #! vgpu-off")),
    "deviceshare without arguments": conf("  - name: deviceshare  #! vgpu-off\n"),
    "switched off": conf(share("      deviceshare.VGPUEnable: false  #? vgpu-off\n")),
    "a template": conf(
        share("      deviceshare.VGPUEnable: true\n"),
        tail=TAIL + "{{- if .x }}  #! unrendered-template\n  - name: x\n{{- end }}  #! unrendered-template\n",
    ),
    "another file": "global:  #! foreign-format\n  scrape_interval: 15s\n",
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN.keys())
@pytest.mark.parametrize("form", ["bare", "crlf", "config-map"])
def test_a_defect_is_found_on_its_line(text: str, form: str) -> None:
    if form == "crlf":
        text = text.replace("\n", "\r\n")
    if form == "config-map":
        text = config_map("volcano-scheduler-configmap", "volcano-scheduler.conf", text, "volcano-system")
    assert found(text, "scheduler") == wanted(text)


VALID = {
    "plain": conf(),
    "a quoted true": conf(share('      deviceshare.VGPUEnable: "true"\n')),
    "a quoted one": conf(share("      deviceshare.VGPUEnable: '1'\n")),
    "a capital word": conf(share("      deviceshare.VGPUEnable: On\n")),
    "flow style": conf(
        "  - {name: deviceshare, arguments: {deviceshare.VGPUEnable: true, deviceshare.NodeLockEnable: false}}\n"
    ),
    "the old switches off": conf(
        share(ON + "      deviceshare.GPUSharingEnable: false\n      deviceshare.GPUNumberEnable: 'false'\n")
    ),
    "the device config where it is": argued(
        "      deviceshare.KnownGeometriesCMName: volcano-vgpu-device-config\n      deviceshare.KnownGeometriesCMNamespace: volcano-system\n"
    ),
    "an empty policy": argued("      deviceshare.SchedulePolicy: ''\n"),
    "rules": argued("      deviceshare.GPUExclusiveRules:\n      - {app: train, tier: '1'}\n"),
    "a hierarchy beside capacity": conf(
        head=HEAD.replace("- name: drf\n", "- name: drf\n    enableHierarchy: true\n"),
        tail=TAIL.replace("proportion", "capacity"),
    ),
    "blanks around actions": conf(
        head=HEAD.replace('"enqueue, allocate, backfill"', '"  enqueue ,allocate,  preempt, reclaim, shuffle"')
    ),
    "actions of new versions": conf(
        head=HEAD.replace('"enqueue, allocate, backfill"', "enqueue, allocate, gangpreempt, gangreclaim, backfill")
    ),
    "other plugins": conf(
        tail=TAIL + "  - name: numa-aware\n  - name: network-topology-aware\n  - name: resource-strategy-fit\n"
    ),
    "metrics and configurations": conf()
    + "metrics:\n  type: prometheus\n  address: http://x\nconfigurations:\n- name: enqueue\n  arguments:\n    enabled: false\n",
    "arguments of others": conf(
        tail=TAIL + "    arguments:\n      binpack.weight: 10\n      binpack.resources: nvidia.com/gpu\n"
    ),
    "an option of a new version": conf(tail=TAIL + "    enabledSubJobOrder: true\n    somethingNew: 1\n"),
    "the device plugin of Ascend too": conf(share(ON + "      deviceshare.AscendHAMiVNPUEnable: true\n")),
}


@pytest.mark.parametrize("text", VALID.values(), ids=VALID.keys())
def test_what_works_upstream_is_left_alone(text: str) -> None:
    assert (found(text, "scheduler"), infos(text, "scheduler")) == (set(), [])
    assert found(text) == set(), "it is told by itself what it is"


def _volcano(version: str) -> Context:
    return Context(volcano=VersionNumber(version))


OLD = conf(
    "  - name: overcommit\n",
    head=HEAD.replace("- name: predicates\n", "- name: predicates\n    arguments:\n      predicate.VGPUEnable: true\n"),
)


@pytest.mark.parametrize(
    ("text", "version", "rules"),
    [
        (OLD, "1.8.2", set()),
        (OLD, "1.9.0", {"deprecated-key"}),
        (conf(), "1.8.2", {"version-feature"}),
        (conf(), "1.9.0", set()),
        (
            argued("      deviceshare.KnownGeometriesCMName: volcano-vgpu-device-config\n"),
            "1.11.2",
            {"version-feature"},
        ),
        (argued("      deviceshare.KnownGeometriesCMName: volcano-vgpu-device-config\n"), "1.12.0", set()),
        (argued("      deviceshare.GPUExclusiveRules: [{app: train}]\n"), "1.14.4", {"version-feature"}),
        (argued("      deviceshare.GPUExclusiveRules: [{app: train}]\n"), "1.15.0", set()),
    ],
)
def test_what_is_read_depends_on_volcano(text: str, version: str, rules: set[str]) -> None:
    assert {rule for _, rule, _ in found(text, context=_volcano(version))} == rules


def test_before_1_15_the_policy_does_not_pick_the_card() -> None:
    text = argued("      deviceshare.SchedulePolicy: binpack\n      deviceshare.ScheduleWeight: 10\n")
    assert infos(text, context=_volcano("1.14.4")) == ["version-feature"]
    assert infos(text, context=_volcano("1.15.0")) == []
