"""What teams have: list, delete, apply, export, and the record of it."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.bench import Bench
from tests.cluster.plugin import Kubectl
from tests.cluster.quota.conftest import NUMBER, Vgpuctl

pytestmark = pytest.mark.cluster


class TestList:
    def test_it_joins_caps_counts_and_what_pods_hold(
        self, vgpuctl: Vgpuctl, bench: Bench, namespace: str, make_pod: Callable[..., None]
    ) -> None:
        vgpuctl("quota", "set", namespace, "10", "--memory", "9000")
        make_pod("running", number=2, memory=3000, nodeName="somewhere")
        make_pod("waiting", number=1, memory=500)
        deadline = time.monotonic() + 20
        while True:
            (share,) = vgpuctl("quota", "list", "-n", namespace, "-o", "json").json["shares"]
            if (share["used"]["number"] == 3) or time.monotonic() > deadline:
                break
        assert share["used"]["memoryUnits"] == 3500
        assert (share["holds"]["number"], share["holds"]["memoryUnits"]) == (2, 6000)
        assert (share["pending"]["number"], share["pendingPods"]) == (1, 1)
        assert any("counted once for a container with several vGPUs" in problem for problem in share["problems"])

    def test_quotas_that_enforce_nothing_are_flagged(self, vgpuctl: Vgpuctl, namespace: str, kubectl: Kubectl) -> None:
        kubectl("-n", namespace, "create", "quota", "old", "--hard=volcano.sh/vgpu-number=2")
        ran = vgpuctl("quota", "list", "-n", namespace)
        assert ran.code == 0
        assert f"! {namespace}/old: volcano.sh/vgpu-number enforces nothing" in ran.out

    def test_a_namespace_without_a_quota_is_shown(
        self, vgpuctl: Vgpuctl, namespace: str, make_pod: Callable[..., None]
    ) -> None:
        make_pod("free")
        assert f"! {namespace}: no quota" in vgpuctl("quota", "list", "-n", namespace).out

    def test_live_lint_names_the_objects(self, vgpuctl: Vgpuctl, namespace: str, kubectl: Kubectl) -> None:
        kubectl("-n", namespace, "create", "quota", "old", "--hard=limits.volcano.sh/vgpu-number=2")
        ran = vgpuctl("quota", "lint", "--live", "-n", namespace, "-o", "json")
        assert ran.code == 1
        rows = [row for row in ran.json["findings"] if row["severity"] == "error"]
        assert [(row["rule"], row["file"]) for row in rows] == [("quota-prefix", f"ResourceQuota {namespace}/old")]


class TestDelete:
    @pytest.mark.parametrize(("answer", "code", "left"), [("n", 1, True), ("", 1, True), ("y", 0, False)])
    def test_a_person_is_asked_on_a_terminal(
        self, vgpuctl: Vgpuctl, bench: Bench, namespace: str, quota: Any, answer: str, code: int, left: bool
    ) -> None:
        vgpuctl("quota", "set", namespace, "5")
        controller, terminal = pty.openpty()
        command = [sys.executable, "-m", "vgpuctl", "quota", "delete", namespace]
        environment = {**os.environ, "KUBECONFIG": str(bench.kubeconfig)}
        with subprocess.Popen(
            command, stdin=terminal, stdout=subprocess.PIPE, stderr=terminal, env=environment
        ) as process:
            os.close(terminal)
            shown = b""
            while b"[y/N]" not in shown:
                shown += os.read(controller, 4096)
            os.write(controller, f"{answer}\n".encode())
            process.wait(60)
        os.close(controller)
        assert process.returncode == code
        assert f"{NUMBER} 5".encode() in shown  # told before it is asked
        assert bool(quota()) == left


class TestApplyAndExport:
    TEAMS = 200

    def test_200_teams_go_round(self, vgpuctl: Vgpuctl, bench: Bench, namespace: str, tmp_path: Path) -> None:
        names = [f"{namespace}-{index:03}" for index in range(self.TEAMS)]
        teams = [
            {"name": name, "number": index + 1, **({"cores": 100 * (index + 1)} if index % 2 else {})}
            for index, name in enumerate(names)
        ]
        file = tmp_path / "teams.yaml"
        file.write_text(yaml.safe_dump({"apiVersion": "vgpuctl.dev/v1", "kind": "Teams", "teams": teams}))
        try:
            ran = vgpuctl("quota", "apply", "-f", str(file), "-o", "json")
            assert ran.code == 0, ran.err
            assert len(ran.json["changes"]) == 2 * self.TEAMS
            exported = yaml.safe_load(vgpuctl("quota", "export").out)
            assert [team for team in exported["teams"] if team["name"].startswith(f"{namespace}-")] == teams
            again = vgpuctl("quota", "apply", "-f", "-", "-o", "json", stdin=yaml.safe_dump(exported))
            assert again.code == 0
            assert {row["action"] for row in again.json["changes"]} == {"unchanged"}
        finally:
            for name in names:
                bench.client.delete(f"/api/v1/namespaces/{name}")

    def test_it_is_exact_where_set_adds(self, vgpuctl: Vgpuctl, namespace: str, quota: Any) -> None:
        head = "apiVersion: vgpuctl.dev/v1\nkind: Teams\nteams:\n"
        vgpuctl("quota", "set", namespace, "5", "--cores", "100")
        ran = vgpuctl("quota", "apply", "-f", "-", stdin=f"{head}- {{name: {namespace}, number: 6}}\n")
        assert ran.code == 0
        assert quota()["spec"]["hard"] == {NUMBER: "6"}

    def test_one_team_that_fails_does_not_stop_the_others(
        self, vgpuctl: Vgpuctl, bench: Bench, namespace: str, kubectl: Kubectl, quota: Any
    ) -> None:
        other = f"{namespace}-b"
        kubectl("create", "namespace", other)
        kubectl("-n", other, "create", "quota", "vgpu", f"--hard={NUMBER}=20")
        head = "apiVersion: vgpuctl.dev/v1\nkind: Teams\nteams:\n"
        text = f"{head}- {{name: {other}, number: 1}}\n- {{name: {namespace}, number: 2}}\n"
        ran = vgpuctl("quota", "apply", "-f", "-", stdin=text)
        assert ran.code == 1
        assert quota()["spec"]["hard"] == {NUMBER: "2"}
        bench.client.delete(f"/api/v1/namespaces/{other}")

    def test_a_wrong_file_changes_nothing(self, vgpuctl: Vgpuctl, namespace: str, quota: Any) -> None:
        text = (
            "apiVersion: vgpuctl.dev/v1\nkind: Teams\nteams:\n"
            f"- {{name: {namespace}, number: 5}}\n- name: kube-system\n  numbr: 5\n"
        )
        ran = vgpuctl("quota", "apply", "-f", "-", "-o", "json", stdin=text)
        assert ran.code == 1
        places = [(row["line"], row["rule"]) for row in ran.json["findings"]]
        assert places == [(6, "field-misspelt"), (5, "name")]
        assert quota() == {}


class TestHistory:
    def test_each_change_is_an_event_and_a_line(self, vgpuctl: Vgpuctl, bench: Bench, namespace: str) -> None:
        vgpuctl("quota", "set", namespace, "5")
        vgpuctl("quota", "set", namespace, "7")
        data = bench.client.get("/api/v1/namespaces/kube-system/configmaps/vgpuctl-history")["data"]
        lines = [json.loads(data[key]) for key in sorted(data)]
        mine = [line for line in lines if line["what"] == f"ResourceQuota {namespace}/vgpu"]
        assert [line["change"] for line in mine] == [f"{NUMBER} none → 5", f"{NUMBER} 5 → 7"]
        assert {line["who"] for line in mine} == {"administrator"}
        assert mine[1]["undo"] == f"vgpuctl quota set {namespace} 5"
        events = bench.client.get(f"/api/v1/namespaces/{namespace}/events")["items"]
        assert sorted(event["message"] for event in events) == [
            f"administrator by vgpuctl: {NUMBER} 5 → 7",
            f"administrator by vgpuctl: {NUMBER} none → 5",
        ]

    def test_the_last_500_are_kept(self, vgpuctl: Vgpuctl, bench: Bench, namespace: str) -> None:
        path = "/api/v1/namespaces/kube-system/configmaps/vgpuctl-history"
        vgpuctl("quota", "set", namespace, "5")
        old = {f"20200101T000000.{index:06}Z": "{}" for index in range(500)}
        bench.client.request("PATCH", path, {"data": old}, content_type="application/merge-patch+json")
        vgpuctl("quota", "set", namespace, "6")
        data = bench.client.get(path)["data"]
        assert len(data) == 500
        assert f"{NUMBER} 5 → 6" in data[max(data)]
        bench.client.delete(path)
