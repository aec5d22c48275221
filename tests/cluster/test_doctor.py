"""`vgpuctl doctor` on a real API server: broken pools, users without rights, servers that do not answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.access import Access
from tests.cluster.bench import Bench

pytestmark = pytest.mark.cluster
LOCK = "hamivgpu"
REGISTER = "volcano.sh/node-vgpu-register"


def doctor(kubeconfig: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "vgpuctl", "doctor", "--kubeconfig", str(kubeconfig), *arguments],
        capture_output=True,
        text=True,
        env={**os.environ},
        check=False,
        timeout=90,
    )


def results(done: subprocess.CompletedProcess[str]) -> dict[str, list[dict[str, Any]]]:
    """The results by check, of a run with -o json."""
    found: dict[str, list[dict[str, Any]]] = {}
    for result in json.loads(done.stdout)["results"]:
        found.setdefault(result["check"], []).append(result)
    return found


def test_a_broken_pool_is_told_node_by_node(bench: Bench, pool: Callable[[str], object]) -> None:
    pool("broken.yaml")
    done = doctor(bench.kubeconfig, "-o", "json")
    assert done.returncode == 1, done.stderr
    found = results(done)
    assert "fail" not in {result["status"] for result in found["api"]}
    failed = {check for check, rows in found.items() if any(row["status"] == "fail" for row in rows)}
    assert {"memory-entries", "allocatable"} & failed, failed
    told = json.dumps([row for rows in found.values() for row in rows if row["status"] == "fail"])
    assert "overflow" in told
    assert all(row["remedy"] for rows in found.values() for row in rows if row["status"] == "fail")


def test_the_same_answer_in_every_form(bench: Bench, pool: Callable[[str], object]) -> None:
    pool("broken.yaml")
    assert {doctor(bench.kubeconfig, "-o", form).returncode for form in ("table", "short", "yaml", "junit")} == {1}


def test_a_node_lock_is_mended_by_fix(bench: Bench, pool: Callable[[str], object], kubectl: Any) -> None:
    pool("company.yaml")
    nodes = json.loads(kubectl("get", "nodes", "-o", "json").stdout)["items"]
    names = [node["metadata"]["name"] for node in nodes if REGISTER in node["metadata"].get("annotations", {})]
    node = names[0]
    kubectl("annotate", "node", node, f"{LOCK}=for-ever")
    before = doctor(bench.kubeconfig, "--only", "node-lock", "-o", "json")
    assert before.returncode == 1 and node in before.stdout
    asked = doctor(bench.kubeconfig, "--only", "node-lock", "--fix")
    assert asked.returncode == 2, "without a terminal it wants --yes"
    dry = doctor(bench.kubeconfig, "--only", "node-lock", "--fix", "--yes", "--dry-run=server")
    assert dry.returncode == 1, dry.stderr
    done = doctor(bench.kubeconfig, "--only", "node-lock", "--fix", "--yes")
    assert done.returncode == 0, done.stderr
    annotations = json.loads(kubectl("get", "node", node, "-o", "json").stdout)["metadata"]["annotations"]
    assert LOCK not in annotations
    assert node in kubectl("get", "configmap", "vgpuctl-history", "-n", "kube-system", "-o", "yaml").stdout


class TestTrouble:
    """Each is told clearly, within the time limit."""

    def check(self, done: subprocess.CompletedProcess[str], began: float, code: int = 3, limit: float = 30.0) -> None:
        assert time.monotonic() - began < limit
        assert done.returncode == code, (done.returncode, done.stdout[-2000:], done.stderr)
        assert "Traceback" not in done.stdout + done.stderr and "crash" not in done.stderr

    def test_a_user_without_rights_lacks_access_and_the_rest_is_unknown(self, access: Access) -> None:
        began = time.monotonic()
        done = doctor(access.nobody("doctor-nobody"), "-o", "json")
        self.check(done, began)
        found = results(done)
        failed = {check for check, rows in found.items() if any(row["status"] == "fail" for row in rows)}
        assert failed == set()
        assert found["access"][0]["status"] == "unknown" and "no right to list nodes" in found["access"][0]["summary"]
        assert "no permission" in json.dumps(found["allocatable"])

    def test_a_user_without_rights_is_unknown_where_rights_are_not_asked_about(self, access: Access) -> None:
        began = time.monotonic()
        self.check(doctor(access.nobody("doctor-nobody-2"), "--skip", "access"), began)

    def test_a_user_of_one_namespace_sees_its_quotas(self, access: Access, namespace: str) -> None:
        began = time.monotonic()
        done = doctor(
            access.namespaced("doctor-team", namespace), "-n", namespace, "--only", "quota-prefix", "-o", "json"
        )
        self.check(done, began, code=0)
        assert {row["status"] for row in results(done)["quota-prefix"]} <= {"pass", "skip"}

    @pytest.mark.parametrize("trouble", ["closed", "expired", "wrong_token"])
    def test_a_server_that_refuses(self, trouble: str, access: Access) -> None:
        began = time.monotonic()
        path = getattr(access, trouble)(f"doctor-{trouble.replace('_', '-')}")
        self.check(doctor(path), began)

    def test_a_server_that_hangs(self, access: Access) -> None:
        began = time.monotonic()
        with access.hanging("doctor-hanging") as path:
            self.check(doctor(path, "--request-timeout", "2s"), began)
