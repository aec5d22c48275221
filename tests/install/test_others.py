"""What was there before, or is others', outlives an installation, whatever happens to it on the way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.client import ApiError
from tests.cluster.pool import load, read
from tests.install import contents, webhook
from tests.install.conftest import Ran
from tests.install.proxy import Proxy
from tests.install.rig import DAEMONSET, GPU_NODES, HERE, NODES, Rig
from tests.install.test_interrupted import HISTORY
from vgpuctl.tasks.install import rollout

pytestmark = pytest.mark.cluster
Run = Callable[..., Ran]
INSTALL = ("install", "--patch-scheduler", "--no-wait", "--max-unavailable", "100%", "--yes")
IMAGE = "registry.example.com/volcano-vgpu-device-plugin:v1.12.1"
RUNTIME_CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MONITORS: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "spec": {
        "group": "monitoring.coreos.com",
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                },
            }
        ],
    },
}


@pytest.fixture
def by_hand(rig: Rig) -> contents.Contents:
    """A cluster in which somebody put the plugin by hand."""
    rig.bench.kubectl("apply", "-f", str(HERE / "by-hand.yaml"))
    rig.wait("it runs", rig.settled)
    return rig.contents()


def device_config(namespace: str = "kube-system") -> Any:
    found = [item for item in read(HERE / "by-hand.yaml") if item["metadata"]["name"] == "volcano-vgpu-device-config"]
    found[0]["metadata"]["namespace"] = namespace
    return found[0]


class TestWhatOtherCommandsMade:
    def test_a_teams_namespace_stays(self, rig: Rig, run: Run) -> None:
        run("quota", "set", "gpu-team", "6", "--yes")
        before = rig.contents()
        run(*INSTALL, "-n", "gpu-team")
        run("uninstall", "--yes")
        assert contents.differences(before, rig.contents(), HISTORY) == []

    def test_a_configuration_stays(self, rig: Rig, run: Run, tmp_path: Path) -> None:
        (tmp_path / "device-config.yaml").write_text(device_config()["data"]["device-config.yaml"])
        run("config", "apply", str(tmp_path / "device-config.yaml"), "--yes")
        before = rig.contents()
        run(*INSTALL)
        run("uninstall", "--yes")
        mark = "/deployments/volcano-scheduler$"  # that of the restart goes, whichever command set it
        assert contents.differences(before, rig.contents(), f"{HISTORY}|{mark}") == []


def test_a_namespace_of_its_own_is_as_good_as_another(rig: Rig, run: Run) -> None:
    run("install", "-n", "gpu-pool", "--patch-scheduler", "--max-unavailable", "100%", "--yes")
    rig.wait("the nodes offer vGPUs", lambda: all(rig.offered(node) > 0 for node in GPU_NODES))
    report = run("doctor", "-o", "json").json
    assert [row for row in report["results"] if row["status"] in ("fail", "unknown")] == []
    run("status")


def test_a_configuration_that_the_plugin_reads_elsewhere_is_no_drift(rig: Rig, run: Run) -> None:
    load(rig.bench, [device_config("volcano-system")])
    run(*INSTALL, "--skip", "geometries-configmap", "--skip", "config-place")
    rig.wait("the plugin runs everywhere", rig.settled)
    assert run("status", "-o", "json").json["drift"] == []


class TestThePluginOfAnother:
    def test_its_files_stay_when_it_came_back_in_a_run_that_was_cut_off(
        self, rig: Rig, run: Run, by_hand: contents.Contents, tmp_path: Path
    ) -> None:
        run(*INSTALL, "--force-conflicts")
        rig.wait("ours runs", rig.settled)

        def after(_: int) -> None:
            if came_back():
                process.kill()
                process.wait()

        def came_back() -> bool:
            try:
                return "initContainers" not in rig.client.get(DAEMONSET)["spec"]["template"]["spec"]
            except ApiError:
                return False

        with Proxy(rig.bench, after) as proxy:
            environment = {**os.environ, "KUBECONFIG": str(proxy.kubeconfig(tmp_path / "config"))}
            command = [sys.executable, "-m", "vgpuctl", "uninstall", "--yes"]
            process = subprocess.Popen(command, stderr=subprocess.DEVNULL, env=environment)
            assert process.wait(60) == -signal.SIGKILL
        rig.wait("the former plugin runs again", rig.settled)
        theirs = [rig.kubelet.host(node) / "usr/local/vgpu/libvgpu.so" for node in GPU_NODES]
        for file in theirs:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("what its own container put there")
        told = run("uninstall", "--yes").err
        assert [file for file in theirs if not file.exists()] == []
        assert "volcano-device-plugin is not vgpuctl's" in " ".join(told.split())
        assert contents.differences(by_hand, rig.contents(), HISTORY) == []

    def test_it_is_not_forgotten_when_neither_ours_nor_itself_is_let_in(
        self, rig: Rig, run: Run, by_hand: contents.Contents
    ) -> None:
        with webhook.refusing(rig.bench, "apps", "daemonsets", "kube-system", "no changes on Fridays"):
            told = run(*INSTALL, "--force-conflicts", "--timeout", "6s", code=1).err
        assert "going back failed too" in " ".join(told.split())
        run(*INSTALL, "--force-conflicts")
        rig.wait("ours runs", rig.settled)
        run("uninstall", "--yes")
        rig.wait("the former plugin runs again", rig.settled)
        assert contents.differences(by_hand, rig.contents(), HISTORY) == []

    def test_it_comes_back_when_an_upgrade_replaced_it(self, rig: Rig, run: Run) -> None:
        service = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "volcano-device-plugin", "namespace": "kube-system", "labels": {"by": "hand"}},
            "spec": {"clusterIP": "None", "ports": [{"port": 80}], "selector": {"a": "b"}},
        }
        load(rig.bench, [service])
        before = rig.contents()
        run(*INSTALL)
        rig.wait("the plugin runs everywhere", rig.settled)
        with kind_of_monitors(rig, "ServiceMonitor"):
            run("upgrade", "--monitoring", "ServiceMonitor", "--force-conflicts", "--yes")
            run("uninstall", "--yes")
        assert contents.differences(before, rig.contents(), HISTORY) == []


class TestUpgrades:
    def test_one_that_is_refused_leaves_no_trace(self, rig: Rig, run: Run) -> None:
        run(*INSTALL)
        rig.wait("the plugin runs everywhere", rig.settled)
        before = rig.contents()
        with webhook.refusing(rig.bench, "apps", "daemonsets", "kube-system", "no changes on Fridays"):
            told = run("upgrade", "--image", IMAGE, "--yes", code=1).err
        assert "no changes on Fridays" in told and "--rollback" not in told
        assert contents.differences(before, rig.contents(), HISTORY) == []
        run("status")

    def test_a_canary_stays_one_when_a_configuration_comes_in(self, rig: Rig, run: Run, tmp_path: Path) -> None:
        """Its restart would make all pods anew, as the new release."""
        run(*INSTALL)
        rig.wait("the plugin runs everywhere", rig.settled)
        run("upgrade", "--image", IMAGE, "--nodes", "gpu-2", "--yes")
        before = rig.contents()
        (tmp_path / "device-config.yaml").write_text(device_config()["data"]["device-config.yaml"])
        told = run("config", "apply", str(tmp_path / "device-config.yaml"), "--yes", code=1).err
        assert "an upgrade is half done" in told
        assert contents.differences(before, rig.contents(), HISTORY) == []

    def test_nodes_that_fall_out_are_cleaned(self, rig: Rig, run: Run) -> None:
        run(*INSTALL)
        rig.wait("the plugin runs everywhere", rig.settled)
        run("upgrade", "--node-selector", "kubernetes.io/hostname=gpu-1", "--max-unavailable", "100%", "--yes")
        placed = {node: bool(rig.kubelet.files(node)) for node in NODES}
        assert placed == {node: node == "gpu-1" for node in NODES}
        pool = run("status", "-o", "json").json["pool"]
        assert pool["nodes"] == 1
        run("uninstall", "--yes")
        assert contents.differences(rig.start, rig.contents(), HISTORY) == []

    def test_what_one_brought_goes_on_the_way_back(self, rig: Rig, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(rollout, "PATIENCE", 2.0)
        run(*INSTALL)
        rig.wait("the plugin runs everywhere", rig.settled)
        before = rig.contents()
        with rig.trouble("gpu-1", "ImagePullBackOff", "not found", image=IMAGE):
            run("upgrade", "--image", IMAGE, "--runtime-class", "gpu", "--nodes", "gpu-1", "--yes", code=1)
        assert "gpu" in {item["metadata"]["name"] for item in rig.client.get(RUNTIME_CLASSES)["items"]}
        run("upgrade", "--rollback", "--yes")
        assert contents.differences(before, rig.contents(), f"{HISTORY}|/vgpuctl-release$") == []


def test_without_its_record_nothing_is_said_to_be_gone(rig: Rig, run: Run) -> None:
    run(*INSTALL)
    rig.client.delete("/api/v1/namespaces/kube-system/configmaps/vgpuctl-release")
    before = rig.contents()
    told = " ".join(run("uninstall", "--yes", code=1).err.split())
    assert "there is no record" in told and "vgpuctl install -n kube-system" in told
    assert [path for path in before if path not in rig.contents()] == []
    run(*INSTALL)
    run("uninstall", "--yes")
    kept = "/deployments/volcano-scheduler$|/configmaps/volcano-scheduler-configmap$"  # what was there, nobody knows
    assert contents.differences(rig.start, rig.contents(), f"{HISTORY}|{kept}") == []


def test_a_kind_that_is_gone_is_no_hindrance(rig: Rig, run: Run) -> None:
    """Prometheus' operator was removed with its kinds."""
    with kind_of_monitors(rig, "PodMonitor"):
        run(*INSTALL, "--monitoring", "PodMonitor")
    run("uninstall", "--yes")
    assert contents.differences(rig.start, rig.contents(), HISTORY) == []


@contextmanager
def kind_of_monitors(rig: Rig, kind: str) -> Iterator[None]:
    """While inside, the cluster serves it."""
    plural, group = f"{kind.lower()}s", "/apis/monitoring.coreos.com"
    name, names = f"{plural}.monitoring.coreos.com", {"kind": kind, "plural": plural}
    load(rig.bench, [{**MONITORS, "metadata": {"name": name}, "spec": {**MONITORS["spec"], "names": names}}])
    rig.wait("it is served", lambda: served(rig, f"{group}/v1/{plural}"))
    yield
    rig.client.delete(f"{CRDS}/{name}")
    rig.wait("it is served no more", lambda: not served(rig, group))


def served(rig: Rig, path: str) -> bool:
    try:
        return bool(rig.client.get(path))
    except ApiError:
        return False
