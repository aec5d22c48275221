"""What is refused before an install, from facts; what the API server says of a pod is asked in tests/install."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.unit import pools
from tests.unit.quota.memory import refused
from vgpuctl.checks.registry import all_checks
from vgpuctl.model.change import Target
from vgpuctl.model.facts import Facts, Part
from vgpuctl.model.install.manifests import manifests
from vgpuctl.model.install.options import Options
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.tasks.install import preflight

OBJECTS = manifests(Options(), {"x86_64": b"library"})


class Admits:
    """A cluster as far as preflight asks it. refusal: of the plugin's pod."""

    def __init__(self, refusal: Problem | None = None) -> None:
        self.refusal = refusal
        self.tried: list[dict[str, Any]] = []

    def get(self, target: Target) -> None:
        return None

    def create(self, target: Target, body: dict[str, Any], *, dry_run: bool = False) -> dict[str, Any]:
        assert dry_run
        self.tried.append(body)
        if self.refusal:
            raise self.refusal
        return body


def look(facts: Facts, refusal: Problem | None = None, skip: tuple[str, ...] = ()) -> preflight.Verdict:
    return preflight.look(Admits(refusal), facts, OBJECTS, skip)  # type: ignore[arg-type]


def image(name: str, node: str = "gpu-1", container: str = "main") -> Callable[[pools.Objects], None]:
    def add(found: pools.Objects) -> None:
        pod = pools.system_pod("other", "gpu-operator", name, node)
        pod["spec"]["containers"][0]["name"] = container
        found["pods"].append(pod)

    return add


def test_a_healthy_pool_passes() -> None:
    verdict = look(pools.pool())
    assert verdict == preflight.Verdict([], [])


def test_its_checks_exist() -> None:
    assert set(preflight.CHECKS) <= {check.id for check in all_checks()}
    assert set(preflight.UPGRADE) <= set(preflight.NAMES)


class TestRivals:
    @pytest.mark.parametrize(
        ("change", "name"),
        [
            (image("nvcr.io/nvidia/k8s-device-plugin:v0.17.0"), "NVIDIA's device plugin"),
            (image("docker.io/projecthami/hami:v2.5.0", container="device-plugin"), "HAMi's device plugin"),
            (image("registry.aliyuncs.com/acs/gpushare-device-plugin:v1"), "Aliyun's gpushare plugin"),
        ],
    )
    def test_another_plugin_on_our_nodes_is_refused(self, change: Any, name: str) -> None:
        (problem,) = look(pools.pool(change)).problems
        assert name in problem.what
        assert "gpu-1" in problem.what
        assert "--node-selector" in problem.remedy
        assert problem.exit_code is Exit.FINDINGS

    def test_on_other_nodes_it_is_no_rival(self) -> None:
        assert look(pools.pool(image("nvcr.io/nvidia/k8s-device-plugin:v0.17.0", node="elsewhere"))).problems == []

    def test_the_vgpu_plugin_under_another_name_is_one(self) -> None:
        def rename(found: pools.Objects) -> None:
            found["daemonsets"][0]["metadata"]["name"] = "gpu-plugin"

        (problem,) = look(pools.pool(rename)).problems
        assert "DaemonSet kube-system/gpu-plugin runs the vGPU plugin already" in problem.what

    def test_the_gpu_operator_is_a_note(self) -> None:
        def add(found: pools.Objects) -> None:
            operator = pools.deployment()
            operator["metadata"] = {"name": "gpu-operator", "namespace": "gpu-operator"}
            operator["spec"]["template"] = {
                "spec": {"containers": [{"name": "gpu-operator", "image": "nvcr.io/nvidia/gpu-operator:v25.3.0"}]}
            }
            found["deployments"].append(operator)

        verdict = look(pools.pool(add))
        assert verdict.problems == []
        assert "GPU Operator (gpu-operator/gpu-operator)" in verdict.notes[0]

    def test_it_can_be_skipped(self) -> None:
        facts = pools.pool(image("nvcr.io/nvidia/k8s-device-plugin:v0.17.0"))
        assert look(facts, skip=(preflight.RIVALS,)).problems == []


class TestChecks:
    def test_a_failure_comes_with_its_remedy_and_the_way_around(self) -> None:
        def off(found: pools.Objects) -> None:
            data = found["configmaps"][2]["data"]
            data["volcano-scheduler.conf"] = pools.SCHEDULER_CONF.replace("VGPUEnable: true", "VGPUEnable: false")

        (problem,) = look(pools.pool(off)).problems
        assert problem.what.startswith("preflight deviceshare-enabled: ")
        assert "--patch-scheduler" in problem.remedy
        assert "--skip deviceshare-enabled" in problem.remedy

    def test_what_could_not_be_read_is_unknown(self) -> None:
        problems = look(pools.without(pools.pool(), Part.CONFIGMAPS)).problems
        assert {problem.exit_code for problem in problems} == {Exit.UNKNOWN}

    def test_a_name_that_is_none_is_wrong_use(self) -> None:
        with pytest.raises(Problem, match="--skip nodes") as raised:
            preflight.check_names(["nodes"])
        assert raised.value.exit_code is Exit.USAGE
        preflight.check_names(preflight.NAMES)


class TestAdmission:
    @pytest.mark.parametrize(
        ("refusal", "remedy"),
        [
            (refused(403, 'violates PodSecurity "restricted:latest"'), "pod-security.kubernetes.io/enforce=privileged"),
            (refused(403, "exceeded quota: platform"), "another namespace with -n"),
            (refused(400, 'admission webhook "w" denied the request: no'), "let it admit the plugin's pods"),
            (refused(422, "spec.priorityClassName: Forbidden"), "let it admit the plugin's pods"),
        ],
    )
    def test_a_refusal_is_told_before_anything_is_changed(self, refusal: Problem, remedy: str) -> None:
        (problem,) = look(pools.pool(), refusal).problems
        assert problem.what == "preflight admission: the plugin's pods would be refused in kube-system"
        assert remedy in problem.remedy

    def test_what_cannot_be_tried_is_a_note(self) -> None:
        verdict = look(pools.pool(), refused(400, 'admission webhook "w" does not support dry run'))
        assert verdict.problems == []
        assert "could not be tried" in verdict.notes[0]

    def test_the_pod_is_the_plugins_but_for_what_need_not_be_there_yet(self) -> None:
        cluster = Admits()
        preflight.look(cluster, pools.pool(), OBJECTS, ())  # type: ignore[arg-type]
        (pod,) = cluster.tried
        assert "serviceAccountName" not in pod["spec"]
        assert pod["spec"]["containers"][0]["securityContext"] == {"privileged": True}
