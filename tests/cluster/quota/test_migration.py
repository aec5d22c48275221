"""Quotas under names that are never counted are moved over, without a gap and without loss."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.cluster.bench import Bench
from tests.cluster.client import ApiError
from tests.cluster.plugin import Kubectl
from tests.cluster.quota.conftest import MEMORY, NUMBER, Vgpuctl

pytestmark = pytest.mark.cluster


class TestMigration:
    """Quotas under names that are never counted, as public guides write them."""

    def test_the_prefixed_keys_come_first_and_the_old_ones_go(
        self, vgpuctl: Vgpuctl, namespace: str, kubectl: Kubectl, quota: Any, make_pod: Callable[..., None]
    ) -> None:
        old = "--hard=volcano.sh/vgpu-number=2,limits.volcano.sh/vgpu-memory=4000,pods=10"
        kubectl("-n", namespace, "create", "quota", "team-quota", old)
        make_pod("free", number=3)  # the old names enforce nothing
        ran = vgpuctl("quota", "set", namespace, "4", "--yes", "-o", "json")
        assert ran.code == 0
        assert [(row["name"], row["action"]) for row in ran.json["changes"]] == [
            ("vgpu", "created"),
            ("team-quota", "configured"),
        ]
        assert quota()["spec"]["hard"] == {NUMBER: "4", MEMORY: "4k"}
        assert quota("team-quota")["spec"]["hard"] == {"pods": "10"}
        with pytest.raises(ApiError, match="exceeded quota: vgpu"):
            make_pod("too-many", number=2)

    def test_an_object_of_the_same_name_keeps_what_is_not_ours(
        self, vgpuctl: Vgpuctl, namespace: str, kubectl: Kubectl, quota: Any
    ) -> None:
        kubectl("-n", namespace, "create", "quota", "vgpu", "--hard=volcano.sh/vgpu-number=2,pods=10")
        assert vgpuctl("quota", "set", namespace, "4", "--yes").code == 0
        assert quota()["spec"]["hard"] == {NUMBER: "4", "pods": "10"}
        assert vgpuctl("quota", "set", namespace, "4").out.endswith("nothing to change\n")

    def test_without_a_terminal_it_needs_yes(
        self, vgpuctl: Vgpuctl, namespace: str, kubectl: Kubectl, quota: Any
    ) -> None:
        kubectl("-n", namespace, "create", "quota", "old", "--hard=volcano.sh/vgpu-number=2")
        ran = vgpuctl("quota", "set", namespace, "4")
        assert ran.code == 2
        assert "--yes" in ran.err
        assert quota() == {}
        assert quota("old")["spec"]["hard"] == {"volcano.sh/vgpu-number": "2"}

    def test_a_key_that_changed_meanwhile_is_left(
        self,
        vgpuctl: Vgpuctl,
        bench: Bench,
        namespace: str,
        kubectl: Kubectl,
        quota: Any,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        from vgpuctl.tasks.quota import work

        kubectl("-n", namespace, "create", "quota", "old", "--hard=volcano.sh/vgpu-number=2")
        counted = work._counted

        def change_meanwhile(*arguments: Any) -> bool:
            path = f"/api/v1/namespaces/{namespace}/resourcequotas/old"
            bench.client.request(
                "PATCH", path, {"spec": {"hard": {"volcano.sh/vgpu-number": "3"}}},
                content_type="application/merge-patch+json",
            )  # fmt: skip
            return counted(*arguments)

        monkeypatch.setattr(work, "_counted", change_meanwhile)
        ran = vgpuctl("quota", "set", namespace, "4", "--yes", "-o", "json")
        assert ran.code == 1
        assert "was changed by someone else meanwhile" in ran.err
        assert ran.actions() == {"ResourceQuota/vgpu": "created", "ResourceQuota/old": "failed"}
        assert quota("old")["spec"]["hard"] == {"volcano.sh/vgpu-number": "3"}


@pytest.fixture(scope="module")
def uncontrolled(bench: Bench) -> Iterator[Bench]:
    """A cluster in which nobody counts quotas; asks for `bench` to skip where it does."""
    with Bench(controllers=False) as running:
        yield running


class TestWaiting:
    def test_it_ends_with_its_own_code(self, vgpuctl: Vgpuctl, uncontrolled: Bench) -> None:
        ran = vgpuctl("quota", "set", "slow", "5", "--timeout", "1s", config=uncontrolled.kubeconfig)
        assert ran.code == 4
        assert "not within 1 s: " in ran.err
        assert "--timeout" in ran.err

    def test_an_interrupted_migration_leaves_the_old_keys_and_can_be_taken_up(self, uncontrolled: Bench) -> None:
        uncontrolled.kubectl("create", "namespace", "broken-off")
        uncontrolled.kubectl("-n", "broken-off", "create", "quota", "old", "--hard=volcano.sh/vgpu-number=2")
        command = [sys.executable, "-m", "vgpuctl", "quota", "set", "broken-off", "4", "--yes"]
        environment = {**os.environ, "KUBECONFIG": str(uncontrolled.kubeconfig)}
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
            assert process.stderr
            while "waiting:" not in (line := process.stderr.readline()):
                assert line, "ended before it waited"
            process.send_signal(signal.SIGINT)
            rest = process.stderr.read()
        assert process.returncode == 130
        assert "run the command again to finish" in rest
        base = "/api/v1/namespaces/broken-off/resourcequotas"
        assert uncontrolled.client.get(f"{base}/vgpu")["spec"]["hard"] == {NUMBER: "4"}
        assert uncontrolled.client.get(f"{base}/old")["spec"]["hard"] == {"volcano.sh/vgpu-number": "2"}
        history = uncontrolled.client.get("/api/v1/namespaces/kube-system/configmaps/vgpuctl-history")["data"]
        assert any("ResourceQuota broken-off/vgpu" in line for line in history.values())
