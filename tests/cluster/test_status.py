"""`vgpuctl status` and `history` on a real API server: what it fills in is no drift, what people change is."""

from __future__ import annotations

import itertools
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.access import Access
from tests.cluster.bench import Bench
from tests.cluster.plugin import Kubectl
from tests.cluster.pool import remove
from vgpuctl.model.change import Change, How
from vgpuctl.model.install.manifests import manifests, target
from vgpuctl.model.install.options import Options
from vgpuctl.model.install.release import Release, config_map
from vgpuctl.sources.cluster import Cluster, Flags, find_access

pytestmark = pytest.mark.cluster
LIBRARY = {"x86_64": b"\x7fELF for a test"}
PLUGIN = "volcano-device-plugin"
_names = (f"status-{number}" for number in itertools.count())


def vgpuctl(kubeconfig: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "vgpuctl", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "KUBECONFIG": str(kubeconfig)},
    )


def status(kubeconfig: Path) -> tuple[int, dict[str, Any]]:
    done = vgpuctl(kubeconfig, "status", "-o", "json")
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


@pytest.fixture
def installed(bench: Bench, namespace: str) -> Iterator[str]:
    """An installation in a namespace of its own, as `vgpuctl install` applies it; no pod of it runs."""
    access = find_access(Flags(kubeconfig=str(bench.kubeconfig)))
    assert access is not None
    cluster, options = Cluster(access), Options(namespace=namespace, node_selector={"no": "node"})
    objects = [*manifests(options, LIBRARY), config_map(Release(phase="installed", options=options))]
    for item in objects:
        if item["kind"] != "Namespace":
            cluster.write(Change(target(item), How.APPLY, item))
    yield namespace
    remove(bench, [item for item in objects if item["kind"] != "Namespace"])


def paths(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The differences by `kind path`; a missing object by its kind."""
    found = {item["objectKind"]: item for item in document["drift"] if item["missing"]}
    return found | {
        f"{item['objectKind']} {one['path']}": one for item in document["drift"] for one in item["differences"]
    }


def test_what_the_api_server_fills_in_is_no_drift(bench: Bench, installed: str) -> None:
    code, document = status(bench.kubeconfig)
    assert paths(document) == {}
    assert (code, document["installed"]["namespace"], document["unread"]) == (0, installed, [])
    assert document["libraries"][-1]["release"] == document["libraries"][-1]["release"].lower()
    assert document["rollouts"][0]["name"] == PLUGIN


MONITOR = "spec.template.spec.containers[monitor]"


@pytest.mark.parametrize(
    ("change", "path", "live", "by"),
    [
        (("set", "env", f"daemonset/{PLUGIN}", "-c", "monitor", "HOOK_PATH=/tmp/vgpu"),
         f"DaemonSet {MONITOR}.env[HOOK_PATH].value", "/tmp/vgpu", "kubectl-set"),
        (("set", "env", f"daemonset/{PLUGIN}", "-c", "monitor", "HOOK_PATH-"),
         f"DaemonSet {MONITOR}.env[HOOK_PATH]", None, ""),
        (("set", "image", f"daemonset/{PLUGIN}", "monitor=other:1"),
         f"DaemonSet {MONITOR}.image", "other:1", "kubectl-set"),
        (("label", "serviceaccount", PLUGIN, "app.kubernetes.io/part-of=x", "--overwrite"),
         "ServiceAccount metadata.labels.app.kubernetes.io/part-of", "x", "kubectl-label"),
        (("patch", "daemonset", PLUGIN, "--type=merge", "-p",
          '{"spec": {"updateStrategy": {"rollingUpdate": {"maxUnavailable": "50%"}}}}'),
         "DaemonSet spec.updateStrategy.rollingUpdate.maxUnavailable", "50%", "kubectl-patch"),
    ],
)  # fmt: skip
def test_what_people_change_is_drift_with_its_author(
    bench: Bench, installed: str, kubectl: Kubectl, change: tuple[str, ...], path: str, live: str | None, by: str
) -> None:
    kubectl("-n", installed, *change)
    code, document = status(bench.kubeconfig)
    found = paths(document)
    assert code == 1
    assert list(found) == [path]
    assert (found[path]["live"], found[path]["by"], bool(found[path]["at"])) == (live, by, bool(by))


def test_what_others_add_is_no_drift_and_what_is_gone_is(bench: Bench, installed: str, kubectl: Kubectl) -> None:
    kubectl("-n", installed, "label", "daemonset", PLUGIN, "team=a")
    kubectl("-n", installed, "set", "env", f"daemonset/{PLUGIN}", "-c", "monitor", "MORE=1")
    kubectl(
        "-n",
        installed,
        "patch",
        "configmap",
        "volcano-vgpu-node-config",
        "--type=merge",
        "-p",
        '{"data": {"a": "b"}}',
    )
    assert status(bench.kubeconfig)[0] == 0
    kubectl("delete", "clusterrole", PLUGIN)
    kubectl("-n", installed, "delete", "configmap", "-l", "app.kubernetes.io/component=shim")
    code, document = status(bench.kubeconfig)
    assert (code, set(paths(document))) == (1, {"ClusterRole", "ConfigMap"})


def test_a_reader_sees_it_all_and_a_user_of_one_namespace_is_told_what_is_not_known(
    bench: Bench, installed: str, access: Access
) -> None:
    assert status(access.read_only(next(_names)))[0] == 0
    code, document = status(access.namespaced(next(_names), installed))
    assert code == 3
    assert {line.partition(":")[0] for line in document["unread"]} >= {"nodes", "DaemonSets"}
    assert document["pool"] is None


def test_without_an_installation_it_says_so(bench: Bench) -> None:
    code, document = status(bench.kubeconfig)
    assert (code, document["installed"], document["drift"]) == (0, None, None)


@pytest.mark.parametrize("trouble", ["closed", "expired", "wrong_token"])
def test_a_cluster_that_cannot_be_asked_is_unknown(access: Access, trouble: str) -> None:
    done = vgpuctl(getattr(access, trouble)(next(_names)), "status")
    assert done.returncode == 3
    assert "all is as it should be" not in done.stdout
    assert vgpuctl(getattr(access, trouble)(next(_names)), "history").returncode == 3


class TestMending:
    """What `doctor --fix` sends is taken by the API server, and each undo brings the former state back."""

    def mended(self, bench: Bench, check: str, get: Callable[[], Any], wanted: Any) -> None:
        before = get()
        done = vgpuctl(bench.kubeconfig, "doctor", "--only", check, "--fix", "--yes")
        assert get() == wanted, done.stderr
        record = json.loads(vgpuctl(bench.kubeconfig, "history", "--last", "1", "-o", "json").stdout)["entries"][0]
        assert record["undo"].startswith("kubectl ")
        bench.kubectl(*shlex.split(record["undo"])[1:])
        assert get() == before

    def test_a_quota_under_names_that_are_never_counted(self, bench: Bench, namespace: str, kubectl: Kubectl) -> None:
        kubectl(
            "-n",
            namespace,
            "create",
            "quota",
            "old",
            "--hard=volcano.sh/vgpu-number=3,limits.volcano.sh/vgpu-cores=200,pods=9",
        )

        def hard() -> Any:
            return json.loads(kubectl("-n", namespace, "get", "quota", "old", "-o", "json").stdout)["spec"]["hard"]

        counted = {"requests.volcano.sh/vgpu-number": "3", "requests.volcano.sh/vgpu-cores": "200", "pods": "9"}
        self.mended(bench, "quota-prefix", hard, counted)

    def test_a_monitor_that_reads_where_nothing_is_written(
        self, bench: Bench, installed: str, kubectl: Kubectl
    ) -> None:
        kubectl("-n", installed, "set", "env", f"daemonset/{PLUGIN}", "-c", "monitor", "HOOK_PATH=/tmp/vgpu")

        def path() -> str:
            text = kubectl("-n", installed, "get", "daemonset", PLUGIN, "-o", "json").stdout
            (_, monitor) = json.loads(text)["spec"]["template"]["spec"]["containers"]
            return str(next(one["value"] for one in monitor["env"] if one["name"] == "HOOK_PATH"))

        self.mended(bench, "monitor-path", path, "/usr/local/vgpu/vgpu")
