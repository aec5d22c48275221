"""Which value wins, who reads it, what it means; and how two configurations differ."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.unit import pools
from tests.unit.config.test_device_config import GOOD, good
from tests.unit.config.test_scheduler_config import conf
from tests.unit.config.test_schema import validator
from vgpuctl.cli.main import main
from vgpuctl.model import kube
from vgpuctl.model.config.diff import differences
from vgpuctl.model.config.explain import ConfigExplanation, InForce
from vgpuctl.model.config.keys import KEYS
from vgpuctl.model.config.kind import DEVICE, NODE, SCHEDULER
from vgpuctl.model.config.values import flags
from vgpuctl.model.facts import Facts
from vgpuctl.render.forms import render
from vgpuctl.render.terminal import Terminal
from vgpuctl.tasks.config.explain import explain_live, explain_texts


def pool(
    *, device: str = GOOD, node: str = "", args: tuple[str, ...] = (), env: tuple[dict[str, str], ...] = ()
) -> Facts:
    """The healthy pool with these configurations, flags and variables."""

    def change(found: pools.Objects) -> None:
        texts = {"volcano-vgpu-device-config": ("device-config.yaml", device)}
        texts["volcano-vgpu-node-config"] = ("config.json", node or '{"nodeconfig": []}')
        for item in found["configmaps"]:
            if item["metadata"]["name"] in texts:
                key, text = texts[item["metadata"]["name"]]
                item["data"] = {key: text}
        container = found["daemonsets"][0]["spec"]["template"]["spec"]["containers"][0]
        container["args"] = list(args)
        container["env"] += env

    return pools.pool(change)


def key(explained: ConfigExplanation, name: str, node: str = "gpu-1") -> InForce:
    group = next(group for group in explained.groups if node in group.nodes or node == group.subject)
    return next(one for one in group.keys if one.key == name)


SPLIT = '{"nodeconfig": [{"name": "gpu-1", "devicesplitcount": 4}]}'


class TestWhichWins:
    @pytest.mark.parametrize(
        ("options", "value", "origin"),
        [
            ({}, 10, "device config"),
            ({"args": ("--device-split-count=6",)}, 6, "flag --device-split-count"),
            ({"args": ("--device-split-count", "6")}, 6, "flag --device-split-count"),
            ({"args": ("-device-split-count=6",)}, 6, "flag --device-split-count"),
            ({"args": ("--device-split-count=6",), "node": SPLIT}, 4, "node config"),
            ({"node": SPLIT.replace("4", "0")}, 10, "device config"),
            ({"device": good(deviceSplitCount=None)}, 0, "nothing states it"),
            ({"device": good(deviceSplitCount='deviceSplitCount: "10"')}, 0, "nothing states it"),
            ({"node": SPLIT.replace("4", '"4"')}, 10, "device config"),
            ({"node": SPLIT.replace("devicesplitcount", "DeviceSplitCount")}, 4, "node config"),
        ],
    )
    def test_node_config_then_flag_then_device_config_then_nothing(
        self, options: dict[str, Any], value: int, origin: str
    ) -> None:
        found = key(explain_live(pool(**options)), "deviceSplitCount")
        assert (found.value, found.origin) == (value, origin)

    def test_what_does_not_win_is_told(self) -> None:
        found = key(explain_live(pool(args=("--device-split-count=6",), node=SPLIT)), "deviceSplitCount")
        assert found.over == ["flag --device-split-count: 6", "device config: 10"]

    @pytest.mark.parametrize(
        ("options", "value", "origin"),
        [
            ({"device": good(more="  passDeviceSpecs: true\n")}, False, "nothing states it"),
            ({"args": ("--pass-device-specs",)}, True, "flag --pass-device-specs"),
            ({"env": ({"name": "PASS_DEVICE_SPECS", "value": "true"},)}, True, "variable PASS_DEVICE_SPECS"),
            ({"env": ({"name": "PASS_DEVICE_SPECS"},)}, None, "variable PASS_DEVICE_SPECS"),
            ({"args": ("--pass-device-specs=false",), "env": ({"name": "PASS_DEVICE_SPECS", "value": "1"},)}, False,
             "flag --pass-device-specs"),
        ],
    )  # fmt: skip
    def test_device_nodes_are_passed_by_flag_or_variable_only(
        self, options: dict[str, Any], value: object, origin: str
    ) -> None:
        found = key(explain_live(pool(**options)), "passDeviceSpecs")
        assert (found.value, found.origin) == (value, origin)

    def test_the_monitor_s_flags_are_not_the_plugin_s(self) -> None:
        item = msgspec.convert(pools.daemonset(), kube.Workload)
        assert flags(item) == {}


def test_a_dead_key_says_that_nobody_reads_it() -> None:
    found = key(explain_live(pool(device=good(more="  deviceMemoryScaling: 2\n"))), "deviceMemoryScaling")
    assert (found.value, found.readers, found.means) == (2, [], "memory is not oversubscribed")


def test_nodes_with_the_same_answers_stand_together_the_most_first() -> None:
    assert [group.nodes for group in explain_live(pool()).groups if group.nodes] == [["gpu-1", "gpu-2"]]
    assert [group.nodes for group in explain_live(pool(node=SPLIT)).groups if group.nodes] == [["gpu-1"], ["gpu-2"]]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"args": ("--gpu-memory-factor=5",)},
            "gpuMemoryFactor is 5 for the plugin (flag --gpu-memory-factor) and 1 for",
        ),
        ({"node": '{"nodeconfig": [{"name": "gpu-9"}]}'}, "an entry for gpu-9, which is no node with cards"),
        ({"node": "{"}, "the node config is dropped as a whole"),
        ({"device": "nvidia: 5\n"}, "the device config is dropped as a whole"),
    ],
)
def test_contradictions_and_what_counts_for_nothing_are_told(options: dict[str, Any], words: str) -> None:
    device = good(gpuMemoryFactor="gpuMemoryFactor: 1")
    assert any(words in problem for problem in explain_live(pool(**{"device": device, **options})).problems)


def test_files_alone_are_explained_too() -> None:
    explained = explain_texts([("d.yaml", GOOD), ("n.json", SPLIT)])
    assert key(explained, "deviceSplitCount", "gpu-1").value == 4
    assert key(explained, "deviceSplitCount", "all other nodes").value == 10
    assert "not known here" in explained.notes[0]


def test_every_key_that_is_read_has_a_meaning_for_every_value() -> None:
    for one in KEYS.values():
        assert one.means(one.zero), one.name


class TestDifferences:
    @pytest.mark.parametrize(
        ("kind", "before", "after"),
        [
            (DEVICE, GOOD, "# a comment\n" + GOOD.replace("10", "0xa")),
            (DEVICE, GOOD, good(more="  deviceMemoryScaling: 1\n  defaultMemory: 0\n")),
            (NODE, '{"nodeconfig": []}',
             '{"nodeconfig": [{"name": "a", "operatingmode": "hami-core", "devicesplitcount": 0}]}'),
            (SCHEDULER, conf(), "# a comment\n" + conf()),
            (SCHEDULER, conf(), conf().replace("VGPUEnable: true", 'VGPUEnable: "true"')),
        ],
    )  # fmt: skip
    def test_what_means_the_same_is_no_difference(self, kind: Any, before: str, after: str) -> None:
        assert before != after
        assert differences(kind, before, after) == []

    @pytest.mark.parametrize(
        ("kind", "before", "after", "told"),
        [
            (DEVICE, GOOD, GOOD.replace("deviceSplitCount: 10", "deviceSplitCount: 4"),
             [("deviceSplitCount", "", "10", "4", ["plugin"])]),
            (DEVICE, None, "nvidia: {gpuMemoryFactor: 5}",
             [("gpuMemoryFactor", "", None, "5", ["plugin", "scheduler"])]),
            (NODE, SPLIT, '{"nodeconfig": []}', [("devicesplitcount", "gpu-1", "4", None, ["plugin"])]),
            (NODE, None, '{"nodeconfig": [{"name": "a", "filterdevices": {"index": [1, 2]}}]}',
             [("filterdevices.index", "a", None, "1, 2", ["plugin"])]),
            (DEVICE, GOOD, GOOD + "  defaultCores: 5\n", [("defaultCores", "", None, "5", [])]),
            (SCHEDULER, conf(), conf().replace("VGPUEnable: true", "VGPUEnable: false"),
             [("deviceshare.VGPUEnable", "", "true", "false", ["scheduler"])]),
        ],
    )  # fmt: skip
    def test_a_value_is_told_with_who_must_restart(
        self, kind: Any, before: str | None, after: str, told: list[tuple[object, ...]]
    ) -> None:
        found = differences(kind, before, after)
        assert [(one.key, one.node, one.before, one.after, one.restart) for one in found] == told

    def test_the_order_of_plugins_is_a_difference(self) -> None:
        text = "actions: allocate\ntiers:\n- plugins: [{name: gang}, {name: predicates}]\n"
        (found,) = differences(
            SCHEDULER, text, text.replace("{name: gang}, {name: predicates}", "{name: predicates}, {name: gang}")
        )
        assert (found.key, found.before, found.restart) == ("tier 1", "gang, predicates", [])


TERMINALS = {"80": Terminal(width=80, colour=True, live=True), "160": Terminal(width=160), "piped": Terminal()}


class TestWhatPeopleSee:
    @pytest.mark.parametrize("where", TERMINALS)
    @pytest.mark.parametrize("form", ["table", "wide"])
    def test_explained(self, golden: Callable[[str, str], None], form: str, where: str) -> None:
        device = good(more="  deviceMemoryScaling: 2\n")
        explained = explain_live(pool(device=device, node=SPLIT, args=("--gpu-memory-factor=5",)))
        golden(f"config/explain-{form}-{where}.txt", render(explained, form, TERMINALS[where]))

    def test_machines_get_the_schema(self) -> None:
        validator("ConfigExplanation").validate(json.loads(render(explain_live(pool()), "json", Terminal())))

    def test_compared(
        self,
        golden: Callable[[str, str], None],
        monkeypatch: pytest.MonkeyPatch,
        capfd: pytest.CaptureFixture[str],
        tmp_path: Path,
    ) -> None:
        monkeypatch.chdir(tmp_path)
        new = GOOD.replace("deviceSplitCount: 10", "deviceSplitCount: 4") + "  defaultCores: 5\n"
        Path("device-config.yaml").write_text(new, encoding="utf-8")
        for form in ("table", "json"):
            monkeypatch.setattr(sys, "argv", ["vgpuctl", "config", "diff", "device-config.yaml", "--demo", "-o", form])
            with pytest.raises(SystemExit) as done:
                main()
            assert done.value.code == 1
            golden(f"config/diff.{form}", capfd.readouterr().out)
