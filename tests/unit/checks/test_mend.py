"""What --fix changes in a cluster: the fault goes, nothing else is touched, and the undo brings it back."""

from __future__ import annotations

import copy
import json
import shlex
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit import pools
from tests.unit.illness import CHECKS, each, edit, only, outcome, text
from tests.unit.pools import Objects, quota
from vgpuctl.checks.check import Options, run_checks
from vgpuctl.model.change import Change, How
from vgpuctl.model.facts import Facts, Part

NUMBER, MEMORY = "volcano.sh/vgpu-number", "volcano.sh/vgpu-memory"
Ill = Callable[[Objects], object]


def fixes(check: str, facts: Facts) -> list[Change]:
    found = [change for item in run_checks([CHECKS[check]], facts, Options()) for change in item.result.fix]
    return list({str(change.target): change for change in found}.values())


def patched(item: dict[str, Any], operations: list[dict[str, Any]]) -> dict[str, Any]:
    """The object after a JSON patch (RFC 6902), of the operations that we use."""
    item = copy.deepcopy(item)
    for operation in operations:
        *parents, last = (step.replace("~1", "/").replace("~0", "~") for step in operation["path"].split("/")[1:])
        place: Any = item
        for step in parents:
            place = place[int(step)] if isinstance(place, list) else place[step]
        if isinstance(place, list):
            if operation["op"] == "add":
                assert last == "-"
                place.append(operation["value"])
                continue
            last = int(last)  # type: ignore[assignment]
        if operation["op"] == "test":
            assert place[last] == operation["value"]
        elif operation["op"] == "remove":
            del place[last]
        else:
            assert operation["op"] == "add" or last in place
            place[last] = operation["value"]
    return item


def containers(found: Objects) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = found["daemonsets"][0]["spec"]["template"]["spec"]["containers"]
    return made


def monitor(**changes: Any) -> Ill:
    """The monitor's container with other fields; None takes one away."""

    def change(found: Objects) -> None:
        made = containers(found)[1]
        made.update(changes)
        for key in [key for key, value in changes.items() if value is None]:
            del made[key]

    return change


def kept_by(part: str, **metadata: Any) -> Ill:
    return lambda found: found[part][0]["metadata"].update(metadata)


HELM = {"labels": {"app.kubernetes.io/managed-by": "Helm"}, "annotations": {"meta.helm.sh/release-name": "gpu"}}
UPSTREAM = [{"name": "HOOK_PATH", "value": "/tmp/vgpu"}]
TMP = [{"name": "hook", "mountPath": "/tmp/vgpu"}]
OWNED = [{"kind": "DaemonSet", "name": "volcano-device-plugin", "uid": "u", "controller": True}]


def controlled(found: Objects) -> None:
    for pod in found["pods"]:
        if "device-plugin" in pod["metadata"]["name"]:
            pod["metadata"]["ownerReferences"] = OWNED


SPLIT = each(edit("device-config", "deviceSplitCount: 10", "deviceSplitCount: 8"), controlled)


@pytest.mark.parametrize(
    "ill",
    [
        monitor(env=UPSTREAM),
        monitor(env=[{"name": "OTHER", "value": "x"}, *UPSTREAM]),
        monitor(env=[{"name": "OTHER", "value": "x"}]),
        monitor(env=None),
        monitor(volumeMounts=None),
        monitor(env=UPSTREAM, volumeMounts=None),
        monitor(env=UPSTREAM, volumeMounts=[{"name": "sockets", "mountPath": "/var/lib/kubelet/device-plugins"}]),
        each(monitor(env=UPSTREAM), lambda found: containers(found).reverse()),
    ],
)
def test_the_monitor_reads_where_the_plugin_writes(ill: Ill) -> None:
    (change,) = fixes("monitor-path", pools.pool(ill))
    assert change.how is How.PATCH
    assert change.undo == "kubectl -n kube-system rollout undo daemonset/volcano-device-plugin"

    def mended(found: Objects) -> None:
        ill(found)
        before = found["daemonsets"][0]
        found["daemonsets"][0] = patched(before, change.after)
        others = [one for one in containers(found) if one["name"] != "monitor"]
        assert others == [one for one in before["spec"]["template"]["spec"]["containers"] if one["name"] != "monitor"]

    assert outcome("monitor-path", pools.pool(mended))[0] == "pass"


@pytest.mark.parametrize(
    ("ill", "told"),
    [
        (each(monitor(env=UPSTREAM), kept_by("daemonsets", **HELM)), "set it in Helm release gpu"),
        (monitor(env=[{"name": "HOOK_PATH", "valueFrom": {"fieldRef": {}}}]), "HOOK_PATH=/usr/local/vgpu/vgpu"),
        (
            monitor(env=UPSTREAM, volumeMounts=[{"name": "sockets", "mountPath": "/usr/local/vgpu"}]),
            "HOOK_PATH=/usr/local/vgpu/vgpu",
        ),
        (
            each(monitor(env=UPSTREAM), lambda found: containers(found)[0].pop("volumeMounts")),
            "HOOK_PATH=/usr/local/vgpu/vgpu",
        ),
    ],
)
def test_a_monitor_that_cannot_be_mended_so_is_left_alone(ill: Ill, told: str) -> None:
    facts = pools.pool(ill)
    status, said = outcome("monitor-path", facts)
    assert (status, fixes("monitor-path", facts)) == ("warn", [])
    assert told in said


@pytest.mark.parametrize(
    ("hard", "after"),
    [
        ({NUMBER: "5"}, {f"requests.{NUMBER}": "5"}),
        ({f"limits.{NUMBER}": "5"}, {f"requests.{NUMBER}": "5"}),
        ({NUMBER: "5", f"limits.{NUMBER}": "3"}, {f"requests.{NUMBER}": "3"}),
        ({NUMBER: "5", f"requests.{NUMBER}": "9"}, {f"requests.{NUMBER}": "9"}),
        (
            {NUMBER: "5", MEMORY: "4000", "pods": "9"},
            {"pods": "9", f"requests.{NUMBER}": "5", f"requests.{MEMORY}": "4000"},
        ),
    ],
)
def test_amounts_are_written_under_names_that_count(hard: dict[str, str], after: dict[str, str]) -> None:
    (change,) = fixes("quota-prefix", pools.pool(only("quotas", quota(hard))))
    item = quota(hard)
    mended = patched(item, change.after)
    assert mended["spec"]["hard"] == after
    assert outcome("quota-prefix", pools.pool(only("quotas", mended)))[0] in ("pass", "skip")
    words = shlex.split(change.undo)
    assert words[:7] == ["kubectl", "-n", "lab", "patch", "resourcequota", "vgpu", "--type=json"]
    assert patched(mended, json.loads(words[-1]))["spec"]["hard"] == hard


@pytest.mark.parametrize(
    ("hard", "metadata"),
    [
        ({MEMORY: "40Gi"}, {}),
        ({MEMORY: "4e3"}, {}),
        ({NUMBER: "5", MEMORY: "40Gi"}, {}),
        ({NUMBER: "-1"}, {}),
        ({NUMBER: "5"}, HELM),
        ({NUMBER: "5"}, {"annotations": {"argocd.argoproj.io/tracking-id": "teams:v1/ResourceQuota:lab/vgpu"}}),
    ],
)
def test_amounts_that_may_mean_something_else_are_left_to_people(hard: dict[str, str], metadata: Any) -> None:
    item = quota(hard)
    item["metadata"] |= metadata
    facts = pools.pool(only("quotas", item))
    assert outcome("quota-prefix", facts)[0] == "fail"
    assert fixes("quota-prefix", facts) == []


def test_each_quota_is_changed_once() -> None:
    facts = pools.pool(only("quotas", quota({NUMBER: "5", MEMORY: "400"})))
    results = [item.result for item in run_checks([CHECKS["quota-prefix"]], facts, Options())]
    assert len(results) == 2
    assert len({id(change) for change in fixes("quota-prefix", facts)}) == 1


def test_the_plugin_reads_its_configuration_anew() -> None:
    found = fixes("config-drift", pools.pool(SPLIT))
    assert [(str(change.target), change.how) for change in found] == [
        ("Pod kube-system/volcano-device-plugin-2", How.DELETE)
    ], "gpu-1 has a number of its own"
    assert found[0].undo == "configure 10 vGPUs per card again, and restart the plugin there"


@pytest.mark.parametrize(
    ("ill", "told"),
    [
        (edit("device-config", "deviceSplitCount: 10", "deviceSplitCount: 8"), "restart the plugin pod"),
        (each(SPLIT, edit("device-config", "gpuMemoryFactor: 1", "gpuMemoryFactor: 0")), "first (factor-zero)"),
        (each(SPLIT, text("node-config", '{"nodeconfig": [],}')), "mend the configuration first"),
    ],
    ids=["nobody makes the pod anew", "the plugin would crash", "the node configuration is broken"],
)
def test_the_plugin_is_not_restarted_where_that_does_harm(ill: Ill, told: str) -> None:
    facts = pools.pool(ill)
    status, said = outcome("config-drift", facts)
    assert (status, fixes("config-drift", facts)) == ("warn", [])
    assert told in said


def test_without_the_pods_there_is_no_fix_of_drift() -> None:
    facts = pools.without(pools.pool(SPLIT), Part.PODS)
    assert outcome("config-drift", facts)[0] == "warn"
    assert fixes("config-drift", facts) == []


@pytest.mark.parametrize(
    ("check", "part"),
    [("monitor-path", Part.DAEMONSETS), ("quota-prefix", Part.QUOTAS), ("config-drift", Part.CONFIGMAPS)],
)
def test_without_its_fact_a_check_is_unknown(check: str, part: Part) -> None:
    facts = pools.without(pools.pool(SPLIT), part)
    assert outcome(check, facts)[0] == "unknown"
    assert fixes(check, facts) == []
