"""The rig is the cluster that it says it is: what is applied there by hand works as it would in a real one."""

from __future__ import annotations

import http.client
import json
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from tests.cluster.client import ApiError, Client
from tests.cluster.pool import load, read
from tests.cluster.quota.conftest import pod
from tests.install import contents, webhook
from tests.install.conftest import Vgpuctl
from tests.install.proxy import Proxy
from tests.install.rig import DAEMONSET, GPU_NODES, HERE, NODES, Rig

pytestmark = pytest.mark.cluster
SCHEDULER = "/api/v1/namespaces/volcano-system/configmaps/volcano-scheduler-configmap"
DEVICESHARE = "  - name: deviceshare\n    arguments: {deviceshare.VGPUEnable: true}\n"


def by_hand(rig: Rig) -> None:
    """The plugin, and a scheduler that shares, without vgpuctl."""
    text = rig.client.get(SCHEDULER)["data"]["volcano-scheduler.conf"]
    data = {"data": {"volcano-scheduler.conf": text + DEVICESHARE}}
    rig.client.request("PATCH", SCHEDULER, data, content_type="application/merge-patch+json")
    load(rig.bench, read(HERE / "by-hand.yaml"))
    rig.bench.kubectl("-n", "volcano-system", "rollout", "restart", "deployment", "volcano-scheduler")
    rig.wait("the plugin registered every card", rig.settled)
    rig.wait("Volcano runs", rig.volcano_runs)


def test_doctor_finds_no_failure_and_pods_get_cards(rig: Rig, vgpuctl: Vgpuctl) -> None:
    by_hand(rig)
    ran = vgpuctl("doctor", "-o", "json", config=rig.kubeconfig)
    assert [row for row in ran.json["results"] if row["status"] in ("fail", "unknown")] == []
    assert ran.code == 0
    assert [rig.offered(node) for node in GPU_NODES] == [8 * len(NODES[node]) for node in GPU_NODES]
    rig.client.post("/api/v1/namespaces/ai-team/pods", pod("train", number=2, memory=400))
    rig.wait("the pod runs", lambda: [item["status"]["phase"] for item in rig.pods("ai-team")] == ["Running"])
    rows = vgpuctl("top", "--once", "-o", "json", "-n", "ai-team", config=rig.kubeconfig).json["rows"]
    shown = [(row["pod"], row["node"], row["memoryAllocated"]) for row in rows if row["level"] == "vgpu"]
    assert shown == [("train", "gpu-1", 4000 << 20)] * 2


def test_a_plugin_that_goes_leaves_its_annotations_and_no_vgpus(rig: Rig) -> None:
    by_hand(rig)
    rig.client.delete(DAEMONSET)
    rig.wait("no node offers vGPUs", lambda: not any(rig.offered(node) for node in GPU_NODES))
    changed = contents.differences(rig.start, rig.contents())
    assert sum("node-vgpu-register" in line for line in changed) == len(GPU_NODES)


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("without a factor it crashes", {"data": {"device-config.yaml": "nvidia: {deviceSplitCount: 8}"}}),
        ("without rights it registers nothing", None),
    ],
)
def test_the_plugin_is_as_particular_as_the_real_one(rig: Rig, what: str, change: dict[str, object] | None) -> None:
    objects = [item for item in read(HERE / "by-hand.yaml") if change or item["kind"] != "ClusterRoleBinding"]
    load(rig.bench, [{**item, **change} if change and item["kind"] == "ConfigMap" else item for item in objects])
    rig.wait("its pods started", lambda: len(rig.pods("kube-system", "name=volcano-device-plugin")) == len(GPU_NODES))
    rig.wait(what, lambda: bool(rig.told()) if not change else _crashed(rig))
    assert not any(rig.offered(node) for node in GPU_NODES)


def _crashed(rig: Rig) -> bool:
    states = [pod["status"].get("containerStatuses", [{}])[0].get("state", {}) for pod in rig.pods("kube-system")]
    return all(state.get("waiting", {}).get("reason") == "CrashLoopBackOff" for state in states)


def test_a_container_that_does_not_come_up_says_why(rig: Rig) -> None:
    def states() -> dict[str, str]:
        return {
            item["spec"]["nodeName"]: item["status"]["containerStatuses"][0]["state"]
            .get("waiting", {})
            .get("reason", "")
            for item in rig.pods("kube-system")
            if item["status"].get("containerStatuses")
        }

    with rig.trouble("gpu-1", "ImagePullBackOff"), rig.trouble("gpu-2", "CrashLoopBackOff"):
        load(rig.bench, read(HERE / "by-hand.yaml"))
        wanted = {"gpu-1": "ImagePullBackOff", "gpu-2": "CrashLoopBackOff", "gpu-3": ""}
        rig.wait("all were tried", lambda: states() == wanted)
    rig.wait("all run", lambda: states() == dict.fromkeys(wanted, ""))


def test_what_is_left_is_removed_and_what_is_gone_comes_back(rig: Rig) -> None:
    queue = "/apis/scheduling.volcano.sh/v1beta1/queues/default"
    rig.client.delete(queue)
    rig.bench.kubectl("-n", "ai-team", "create", "configmap", "left")
    rig.bench.kubectl("label", "node", "gpu-1", "gpu=on")
    rig.bench.kubectl("-n", "volcano-system", "delete", "deployment", "volcano-admission")
    rig.wait("it is gone", lambda: len(rig.pods("volcano-system")) == 2)
    assert contents.differences(rig.start, rig.contents()) == [
        "new: /api/v1/namespaces/ai-team/configmaps/left",
        'changed: /api/v1/nodes/gpu-1 metadata.labels.gpu: null → "on"',
        "gone: /apis/apps/v1/namespaces/volcano-system/deployments/volcano-admission",
        f"gone: {queue}",
    ]
    rig.reset()
    assert contents.differences(rig.start, rig.contents()) == []


def test_the_proxy_counts_writes_and_passes_watches_on(rig: Rig, tmp_path: Path) -> None:
    called: list[int] = []
    with Proxy(rig.bench, called.append) as proxy:
        config = proxy.kubeconfig(tmp_path / "config")
        rig.bench.kubectl("-n", "ai-team", "create", "configmap", "one", config=config)
        rig.bench.kubectl("-n", "ai-team", "create", "configmap", "two", "--dry-run=server", config=config)
        rig.bench.kubectl("auth", "can-i", "create", "pods", config=config)
        rig.bench.kubectl("-n", "ai-team", "delete", "configmap", "one", "--wait", config=config)
        assert [write.split()[0] for write in proxy.writes] == ["POST", "DELETE"] and called == [1, 2]
        address = urlsplit(yaml.safe_load(config.read_text())["clusters"][0]["cluster"]["server"])
        connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=10)
        connection.request("GET", "/api/v1/nodes?watch=true")
        assert json.loads(connection.getresponse().readline())["type"] == "ADDED"
        connection.close()


def test_the_webhook_refuses_what_it_is_told_to(rig: Rig) -> None:
    def make(name: str, client: Client = rig.client) -> None:
        client.post("/api/v1/namespaces/ai-team/configmaps", {"metadata": {"name": name}})

    def refused() -> bool:
        try:
            make("probe")
        except ApiError as error:
            assert "no changes on Fridays" in str(error)
            return True
        rig.client.delete("/api/v1/namespaces/ai-team/configmaps/probe")
        return False

    with webhook.refusing(rig.bench, "", "configmaps", "ai-team", "no changes on Fridays"):
        rig.wait("it refuses", refused)
    rig.wait("it refuses no more", lambda: not refused())
