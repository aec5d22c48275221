"""What others own, forbid or do not answer: a clear line and the right exit code."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.access import Access
from tests.cluster.bench import Bench
from tests.cluster.plugin import Kubectl
from tests.cluster.quota.conftest import NUMBER, Vgpuctl

pytestmark = pytest.mark.cluster


class TestRefusals:
    def test_a_field_of_another_manager_is_a_conflict(
        self, vgpuctl: Vgpuctl, namespace: str, kubectl: Kubectl, quota: Any
    ) -> None:
        kubectl("-n", namespace, "create", "quota", "vgpu", f"--hard={NUMBER}=20")
        ran = vgpuctl("quota", "set", namespace, "5")
        assert ran.code == 1
        assert "conflicts with what kubectl-create manages" in ran.err
        assert quota()["spec"]["hard"] == {NUMBER: "20"}
        assert vgpuctl("quota", "set", namespace, "5", "--force-conflicts").code == 0
        assert quota()["spec"]["hard"] == {NUMBER: "5"}

    def test_admission_that_refuses_is_a_finding(self, vgpuctl: Vgpuctl, bench: Bench, namespace: str) -> None:
        base = "/apis/admissionregistration.k8s.io/v1"
        match = {
            "resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["resourcequotas"]}
            ],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        }
        policy = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": namespace},
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": match,
                "validations": [{"expression": "false", "message": "quotas are frozen"}],
            },
        }
        binding = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": namespace},
            "spec": {"policyName": namespace, "validationActions": ["Deny"]},
        }
        bench.client.apply(f"{base}/validatingadmissionpolicies/{namespace}", policy)
        bench.client.apply(f"{base}/validatingadmissionpolicybindings/{namespace}", binding)
        try:
            deadline = time.monotonic() + 30
            ran = vgpuctl("quota", "set", namespace, "5")
            while ran.code == 0 and time.monotonic() < deadline:  # a policy takes a moment to be in force
                time.sleep(0.3)
                ran = vgpuctl("quota", "set", namespace, str(int(time.monotonic())))
            assert ran.code == 1
            assert "quotas are frozen" in ran.err
        finally:
            bench.client.delete(f"{base}/validatingadmissionpolicybindings/{namespace}")
            bench.client.delete(f"{base}/validatingadmissionpolicies/{namespace}")

    def test_no_permission_could_not_be_found_out(self, vgpuctl: Vgpuctl, access: Access, namespace: str) -> None:
        nobody = access.nobody(f"nobody-{namespace}")
        for arguments in (
            ("set", namespace, "5"),
            ("list",),
            ("list", "-n", namespace),
            ("delete", namespace),
            ("export",),
        ):
            ran = vgpuctl("quota", *arguments, config=nobody)
            assert (ran.code, ran.out) == (3, ""), arguments
            assert "no permission to list resourcequotas" in ran.err

    def test_a_reader_cannot_write(self, vgpuctl: Vgpuctl, access: Access, namespace: str, quota: Any) -> None:
        reader = access.read_only(f"reader-{namespace}")
        ran = vgpuctl("quota", "set", namespace, "5", "-o", "json", config=reader)
        assert ran.code == 3
        assert ran.actions() == {"ResourceQuota/vgpu": "failed"}
        assert quota() == {}
        assert vgpuctl("quota", "set", namespace, "5", "--dry-run=client", config=reader).code == 0

    def test_no_cluster(self, vgpuctl: Vgpuctl, access: Access, tmp_path: Path) -> None:
        assert vgpuctl("quota", "set", "team", "5", config=access.closed("closed-quota")).code == 3
        assert vgpuctl("quota", "list", config=tmp_path / "none").code in (2, 3)


class TestOneNamespace:
    """A team's own user, with rights in one namespace only."""

    def test_sets_lists_and_deletes(self, vgpuctl: Vgpuctl, access: Access, namespace: str, quota: Any) -> None:
        user = access.namespaced(f"team-{namespace}", namespace)
        ran = vgpuctl("quota", "set", namespace, "5", config=user)
        assert ran.code == 0
        assert quota()["status"]["hard"] == {NUMBER: "5"}
        assert "could not be recorded" in ran.err  # the history is in kube-system
        ran = vgpuctl("quota", "list", "-n", namespace, "-o", "json", config=user)
        assert ran.code == 0
        (share,) = ran.json["shares"]
        assert (share["namespace"], share["hard"]["number"], share["used"]["number"]) == (namespace, 5, 0)
        assert vgpuctl("quota", "delete", namespace, "-n", namespace, "--yes", config=user).code == 0
        assert quota() == {}

    def test_a_size_needs_the_factor_which_it_cannot_read(
        self, vgpuctl: Vgpuctl, access: Access, namespace: str
    ) -> None:
        user = access.namespaced(f"team-{namespace}", namespace)
        ran = vgpuctl("quota", "set", namespace, "5", "--memory", "20Gi", config=user)
        assert ran.code == 3
        assert "the pool's factor is not known" in ran.err
