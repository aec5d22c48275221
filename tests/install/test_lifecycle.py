"""From a cluster without vGPUs to a pool that teams use, and back to where it was."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from tests.cluster.quota.conftest import pod
from tests.install import contents
from tests.install.conftest import Ran
from tests.install.rig import DAEMONSET, NODES, Rig
from tests.install.test_interrupted import HISTORY
from vgpuctl.tasks.install import rollout

pytestmark = pytest.mark.cluster
Run = Callable[..., Ran]
KEPT = f"{HISTORY}|/resourcequotas/|/queues/|/namespaces/ai-team$"
"""What an uninstall leaves: history, quotas, queues, and the labels by which a namespace is a team's."""
IMAGE = "registry.example.com/volcano-vgpu-device-plugin:v1.12.1"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stage is given up sooner than people would want."""
    monkeypatch.setattr(rollout, "PATIENCE", 2.0)


def images(rig: Rig) -> dict[str, str]:
    """Node → the tag of the plugin that runs there."""
    pods = rig.pods("kube-system", "name=volcano-device-plugin")
    return {item["spec"]["nodeName"]: item["spec"]["containers"][0]["image"].rpartition(":")[2] for item in pods}


def shown(ran: Ran) -> dict[str, list[str]]:
    """Pod → the nodes of its vGPUs, as top shows them."""
    found: dict[str, list[str]] = {}
    for row in ran.json["rows"]:
        if row["level"] == "vgpu":
            found.setdefault(row["pod"], []).append(row["node"])
    return found


def test_from_nothing_to_a_pool_in_use_and_back(rig: Rig, run: Run) -> None:
    run("install", "--wait", "--patch-scheduler", "--max-unavailable", "100%", "--yes")
    report = run("doctor", "-o", "json").json
    assert [row for row in report["results"] if row["status"] in ("fail", "unknown")] == []
    placed = ["usr/local/vgpu/ld.so.preload", "usr/local/vgpu/libvgpu.so"]
    assert {node: rig.kubelet.files(node) for node in NODES} == dict.fromkeys(NODES, placed)
    preload = rig.kubelet.host("gpu-1") / "usr/local/vgpu/ld.so.preload"
    assert preload.read_text().strip() == "/usr/local/vgpu/libvgpu.so"

    run("quota", "set", "ai-team", "6", "--memory", "60Gi", "--queue", "research", "--yes")
    for name, number in (("train", 2), ("serve", 1)):
        rig.client.post("/api/v1/namespaces/ai-team/pods", pod(name, number, memory=400))
    rig.wait("the pods run", lambda: [p["status"]["phase"] for p in rig.pods("ai-team")] == ["Running"] * 2)
    assert shown(run("top", "--once", "-o", "json")) == {"train": ["gpu-1"] * 2, "serve": ["gpu-1"]}
    (share,) = run("quota", "list", "-o", "json").json["shares"]
    assert (share["namespace"], share["used"]["number"], share["hard"]["number"]) == ("ai-team", 3, 6)
    assert run("status").code == 0

    run("upgrade", "--image", IMAGE, "--nodes", "gpu-2", "--yes")
    assert images(rig) == {**dict.fromkeys(NODES, "v1.12.0"), "gpu-2": "v1.12.1"}
    run("upgrade", "--image", IMAGE, "--yes")
    assert images(rig) == dict.fromkeys(NODES, "v1.12.1")
    assert shown(run("top", "--once", "-o", "json")) == {"train": ["gpu-1"] * 2, "serve": ["gpu-1"]}
    assert rig.client.get(DAEMONSET)["spec"]["updateStrategy"]["type"] == "RollingUpdate"

    refused = run("uninstall", "--yes", code=1)
    assert "ai-team/train" in refused.err and "--force" in refused.err
    rig.client.delete("/api/v1/namespaces/ai-team/pods", grace=0)
    rig.wait("they are gone", lambda: rig.pods("ai-team") == [])
    run("uninstall", "--yes")
    assert contents.differences(rig.start, rig.contents(), KEPT) == []
    assert {node: rig.kubelet.files(node) for node in NODES} == {node: [] for node in NODES}
    kept = contents.differences(rig.start, rig.contents())
    assert [line for line in kept if "/resourcequotas/vgpu" in line] and [line for line in kept if "/queues/" in line]

    run("install", "--patch-scheduler", "--no-wait", "--yes")
    run("uninstall", "--all", "--yes")
    assert contents.differences(rig.start, rig.contents()) == []


def library(rig: Rig, node: str) -> bytes:
    return (rig.kubelet.host(node) / "usr/local/vgpu/libvgpu.so").read_bytes()


def test_an_upgrade_stops_where_it_fails_goes_on_and_goes_back(rig: Rig, run: Run, impatient: None) -> None:
    run("install", "--patch-scheduler", "--no-wait", "--max-unavailable", "50%", "--yes")
    rig.wait("the plugin runs everywhere", rig.settled)
    installed, ours = rig.contents(), library(rig, "gpu-3")

    with rig.trouble("gpu-1", "ImagePullBackOff", "not found", image=IMAGE):
        failed = run("upgrade", "--image", IMAGE, "--nodes", "gpu-1", "--yes", code=1)
    assert "gpu-1" in failed.err and "ImagePullBackOff: not found" in failed.err
    assert "upgrade --rollback" in failed.err
    rig.wait("the node has the former one again", rig.settled)
    assert images(rig) == dict.fromkeys(NODES, "v1.12.0")
    assert "upgrading" in run("status", code=1).out

    run("upgrade", "--image", IMAGE, "--shim", "upstream", "--max-unavailable", "100%", "--yes")
    assert images(rig) == dict.fromkeys(NODES, "v1.12.1")
    assert {library(rig, node) for node in NODES} == {b"upstream's library"}
    run("doctor")

    run("upgrade", "--rollback", "--yes")
    assert contents.differences(installed, rig.contents(), f"{HISTORY}|/vgpuctl-release$") == []
    assert {library(rig, node) for node in NODES} == {ours}
    run("status")


def test_in_a_namespace_of_its_own_with_every_option(rig: Rig, run: Run) -> None:
    run(
        "install", "-n", "gpu-pool", "--shim", "upstream", "--node-selector", "nvidia.com/gpu.present=true",
        "--runtime-class", "nvidia", "--hook-path", "/var/lib/vgpu", "--registry", "registry.example.com:5000/mirror",
        "--image-pull-secret", "mirror", "--patch-scheduler", "--no-wait", "--yes",
    )  # fmt: skip
    rig.wait("the plugin runs everywhere", rig.settled)
    placed = {node: rig.kubelet.files(node) for node in NODES}
    files = ["var/lib/vgpu/ld.so.preload", "var/lib/vgpu/libvgpu.so"]
    assert placed == {node: files if NODES[node] else [] for node in NODES}
    (container, *_) = rig.pods("gpu-pool")[0]["spec"]["containers"]
    assert container["image"] == "registry.example.com:5000/mirror/projecthami/volcano-vgpu-device-plugin:v1.12.0"
    run("doctor")
    run("status")
    run("uninstall", "--yes")
    assert contents.differences(rig.start, rig.contents(), HISTORY) == []
    assert [path for node in NODES for path in rig.kubelet.files(node)] == []


def test_another_namespace_than_the_installations_is_a_mistake(rig: Rig, run: Run) -> None:
    run("install", "--patch-scheduler", "--no-wait", "--yes")
    rig.wait("the plugin runs everywhere", rig.settled)
    before = rig.contents()
    for command in ("install", "upgrade", "uninstall"):
        refused = run(command, "-n", "gpu-pool", "--yes", code=1)
        assert "kube-system" in refused.err
    assert contents.differences(before, rig.contents()) == []


def test_a_card_can_go_beside_a_canary_and_that_is_told(rig: Rig, run: Run) -> None:
    """Its node's plugin starts anew from the DaemonSet, which is the new release's already."""
    run("install", "--patch-scheduler", "--no-wait", "--yes")
    rig.wait("the plugin runs everywhere", rig.settled)
    assert "new release" not in run("card", "cordon", "gpu-3/0", "--yes").err
    run("upgrade", "--image", IMAGE, "--nodes", "gpu-2", "--yes")
    told = run("card", "cordon", "gpu-1/0", "--yes").err
    assert "an upgrade is half done: the plugin on gpu-1 may come up as the new release" in told
    assert images(rig)["gpu-1"] == "v1.12.1"


def test_pods_that_may_run_on_are_agreed_to_once(rig: Rig, run: Run) -> None:
    run("install", "--patch-scheduler", "--no-wait", "--yes")
    rig.wait("the plugin runs everywhere", rig.settled)
    rig.client.post("/api/v1/namespaces/ai-team/pods", pod("train", 1, memory=400))
    rig.wait("the pod runs", lambda: [p["status"]["phase"] for p in rig.pods("ai-team")] == ["Running"])
    assert "1 vGPU pod runs: nothing was changed" in run("uninstall", "--yes", code=1).err
    cut_off = run("uninstall", "--yes", "--force", "--timeout", "0s", code=4)
    ended = run("uninstall", "--yes")
    for ran in (cut_off, ended):
        assert "1 vGPU pod runs on without the plugin: ai-team/train" in ran.err
    assert [p["metadata"]["name"] for p in rig.pods("ai-team")] == ["train"]
    assert rig.kubelet.files("gpu-1") == []


@pytest.mark.parametrize(
    ("trouble", "why"),
    [
        (lambda rig: rig.down("gpu-3"), "the node is not ready"),
        (lambda rig: rig.trouble("gpu-3", "ImagePullBackOff", "not found"), "ImagePullBackOff: not found"),
    ],
)
def test_a_node_that_cannot_be_cleaned_keeps_its_files_only_when_that_is_meant(
    rig: Rig, run: Run, impatient: None, trouble: Callable[[Rig], AbstractContextManager[None]], why: str
) -> None:
    run("install", "--patch-scheduler", "--no-wait", "--yes")
    rig.wait("the plugin runs everywhere", rig.settled)
    with trouble(rig):
        waited = run("uninstall", "--yes", "--timeout", "3s", code=4)
        assert "gpu-3" in waited.err and why in waited.err and "--force leaves such nodes" in waited.err
        left = run("uninstall", "--yes", "--force")
        assert "gpu-3 keeps the library's files" in left.err and why in left.err
    assert contents.differences(rig.start, rig.contents(), HISTORY) == []
    assert [node for node in NODES if rig.kubelet.files(node)] == ["gpu-3"]
