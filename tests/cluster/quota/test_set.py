"""`quota set` on a real API server: what it enforces, shows and leaves alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.cluster.bench import Bench
from tests.cluster.client import ApiError
from tests.cluster.plugin import Kubectl
from tests.cluster.quota.conftest import CORES, MEMORY, NUMBER, Vgpuctl

pytestmark = pytest.mark.cluster


class TestSet:
    def test_the_51st_vgpu_is_refused(self, vgpuctl: Vgpuctl, namespace: str, make_pod: Callable[..., None]) -> None:
        assert vgpuctl("quota", "set", namespace, "50").code == 0
        for index in range(5):
            make_pod(f"pod-{index}", number=10)
        with pytest.raises(ApiError, match=r"exceeded quota: vgpu.*limited: requests\.volcano\.sh/vgpu-number=50"):
            make_pod("one-too-many", number=1)

    def test_it_is_in_force_when_the_command_ends(self, vgpuctl: Vgpuctl, namespace: str, quota: Any) -> None:
        vgpuctl("quota", "set", namespace, "5", "--cores", "200")
        assert quota()["status"]["hard"] == {NUMBER: "5", CORES: "200"}

    def test_a_namespace_is_made_with_the_teams_labels(self, vgpuctl: Vgpuctl, bench: Bench, namespace: str) -> None:
        team = f"{namespace}-new"
        ran = vgpuctl("quota", "set", team, "5", "-o", "json")
        assert ran.actions() == {f"Namespace/{team}": "created", "ResourceQuota/vgpu": "created"}
        labels = bench.client.get(f"/api/v1/namespaces/{team}")["metadata"]["labels"]
        assert labels["app.kubernetes.io/managed-by"] == "vgpuctl"
        assert labels["vgpuctl.dev/team"] == team
        bench.client.delete(f"/api/v1/namespaces/{team}")

    def test_a_second_run_changes_nothing_and_says_so(self, vgpuctl: Vgpuctl, namespace: str, quota: Any) -> None:
        arguments = ("quota", "set", namespace, "5", "--cores", "200", "--priority", "high=2")
        assert vgpuctl(*arguments).code == 0
        before = quota()["metadata"]["resourceVersion"]
        again = vgpuctl(*arguments)
        assert again.code == 0
        assert again.out.endswith("nothing to change\n")
        assert quota()["metadata"]["resourceVersion"] == before

    def test_what_is_not_named_stays(self, vgpuctl: Vgpuctl, namespace: str, quota: Any) -> None:
        vgpuctl("quota", "set", namespace, "5", "--memory", "2000")
        ran = vgpuctl("quota", "set", namespace, "8", "-o", "json")
        assert quota()["spec"]["hard"] == {NUMBER: "8", MEMORY: "2k"}
        (row,) = ran.json["changes"]
        assert row["values"] == [{"path": NUMBER, "before": "5", "after": "8", "note": ""}]
        assert row["undo"] == f"vgpuctl quota set {namespace} 5 --memory 2000"

    def test_the_undo_it_shows_undoes_it(self, vgpuctl: Vgpuctl, namespace: str, quota: Any) -> None:
        vgpuctl("quota", "set", namespace, "5", "--memory", "2000")
        undo = vgpuctl("quota", "set", namespace, "8", "--memory", "9000", "-o", "json").json["changes"][0]["undo"]
        assert vgpuctl(*undo.split()[1:]).code == 0
        assert quota()["spec"]["hard"] == {NUMBER: "5", MEMORY: "2k"}

    def test_a_bare_number_says_what_it_was_taken_for(self, vgpuctl: Vgpuctl, namespace: str) -> None:
        assert "2000 was taken as 2000 memory units" in vgpuctl("quota", "set", namespace, "--memory", "2000").out

    def test_a_priority_has_a_class_and_a_scoped_quota(
        self, vgpuctl: Vgpuctl, bench: Bench, namespace: str, make_pod: Callable[..., None], quota: Any
    ) -> None:
        assert vgpuctl("quota", "set", namespace, "5", "--priority", "high=1").code == 0
        assert bench.client.get("/apis/scheduling.k8s.io/v1/priorityclasses/vgpu-high")["value"] == 10_000
        assert quota("vgpu-high")["spec"]["hard"] == {NUMBER: "1"}
        make_pod("high-0", priorityClassName="vgpu-high")
        make_pod("low-0", number=3)
        with pytest.raises(ApiError, match="exceeded quota: vgpu-high"):
            make_pod("high-1", priorityClassName="vgpu-high")

    def test_a_priority_without_a_known_value_needs_its_class(self, vgpuctl: Vgpuctl, namespace: str) -> None:
        ran = vgpuctl("quota", "set", namespace, "5", "--priority", "odd=1")
        assert ran.code == 1
        assert "there is no PriorityClass vgpu-odd" in ran.err

    def test_who_is_above_a_new_cap_is_told_and_nothing_evicted(
        self, vgpuctl: Vgpuctl, bench: Bench, namespace: str, make_pod: Callable[..., None]
    ) -> None:
        make_pod("big", number=8)
        ran = vgpuctl("quota", "set", namespace, "5")
        assert ran.code == 0
        assert "uses 8 vGPUs, 3 above the cap of 5: nothing is evicted" in ran.out
        assert bench.client.get(f"/api/v1/namespaces/{namespace}/pods/big")["metadata"].get("deletionTimestamp") is None

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (("kube-system", "5"), "system namespace"),
            (("volcano-system", "5"), "system namespace"),
            (("team", "5", "-n", "kube-public"), "system namespace"),
            (("Team", "5"), "cannot be a team's name"),
            (("team",), "no amount is given"),
            (("team", "5", "--memory", "8Xi"), "is not a size"),
            (("team", "5", "--priority", "high"), "is not understood"),
            (("team", "5", "--guarantee", "5"), "--guarantee needs --queue"),
            (("team", "5", "--dry-run=maybe"), "is not understood"),
            (("team", "5", "--timeout", "soon"), "is not understood"),
        ],
    )
    def test_wrong_use_is_told_before_anything_is_done(
        self, vgpuctl: Vgpuctl, arguments: tuple[str, ...], said: str
    ) -> None:
        ran = vgpuctl("quota", "set", *arguments)
        assert ran.code == 2
        assert said in ran.err
        assert ran.out == ""


class TestDryRun:
    @pytest.mark.parametrize("where", ["client", "server"])
    def test_nothing_is_changed(self, vgpuctl: Vgpuctl, bench: Bench, namespace: str, quota: Any, where: str) -> None:
        ran = vgpuctl("quota", "set", namespace, "5", f"--dry-run={where}", "-o", "json")
        assert ran.code == 0
        assert ran.json["dryRun"] == where
        assert ran.actions() == {"ResourceQuota/vgpu": "created"}
        assert quota() == {}
        fresh = f"{namespace}-fresh"
        assert vgpuctl("quota", "set", fresh, "5", f"--dry-run={where}").code == 0
        with pytest.raises(ApiError, match="not found"):
            bench.client.get(f"/api/v1/namespaces/{fresh}")

    def test_the_server_refuses_what_it_would_refuse(
        self, vgpuctl: Vgpuctl, bench: Bench, namespace: str, kubectl: Kubectl
    ) -> None:
        kubectl("-n", namespace, "create", "quota", "vgpu", f"--hard={NUMBER}=20")
        assert vgpuctl("quota", "set", namespace, "5", "--dry-run=client").code == 0
        assert vgpuctl("quota", "set", namespace, "5", "--dry-run=server").code == 1


class TestQueue:
    @pytest.fixture
    def queue(self, bench: Bench, namespace: str) -> Iterator[str]:
        yield f"q-{namespace}"
        try:
            bench.client.delete(f"/apis/scheduling.volcano.sh/v1beta1/queues/q-{namespace}")
        except ApiError as error:
            assert error.status == 404

    def test_namespaces_of_a_team_share_it(self, vgpuctl: Vgpuctl, bench: Bench, namespace: str, queue: str) -> None:
        other = f"{namespace}-b"
        ran = vgpuctl("quota", "set", "team", "5", "-n", f"{namespace},{other}", "--queue", queue, "--cores", "500")
        assert ran.code == 0
        spec = bench.client.get(f"/apis/scheduling.volcano.sh/v1beta1/queues/{queue}")["spec"]
        assert spec["capability"] == {"volcano.sh/vgpu-number": "5", "volcano.sh/vgpu-cores": "500"}
        for place in (namespace, other):
            annotations = bench.client.get(f"/api/v1/namespaces/{place}")["metadata"]["annotations"]
            assert annotations["scheduling.volcano.sh/queue-name"] == queue
        assert "before 1.13 it ignores memory and cores" in ran.out  # no scheduler tells its version here
        bench.client.delete(f"/api/v1/namespaces/{other}")

    def test_its_guarantee_is_within_its_capability(self, vgpuctl: Vgpuctl, namespace: str, queue: str) -> None:
        ran = vgpuctl("quota", "set", namespace, "5", "--queue", queue, "--guarantee", "6")
        assert ran.code == 1
        assert "cannot guarantee 6 number and cap it at 5" in ran.err

    def test_guarantees_fit_the_pool(self, vgpuctl: Vgpuctl, bench: Bench, namespace: str, queue: str) -> None:
        node = f"n-{namespace}"
        bench.client.post("/api/v1/nodes", {"metadata": {"name": node}})
        status = {
            "status": {"allocatable": {"volcano.sh/vgpu-number": "20"}, "capacity": {"volcano.sh/vgpu-number": "20"}}
        }
        bench.client.request(
            "PATCH", f"/api/v1/nodes/{node}/status", status, content_type="application/merge-patch+json"
        )
        try:
            ran = vgpuctl("quota", "set", namespace, "5000", "--queue", queue, "--guarantee", "4000")
            assert ran.code == 1
            assert "the guarantees of all queues would be" in ran.err
        finally:
            bench.client.delete(f"/api/v1/nodes/{node}")

    def test_delete_takes_the_queue_and_the_annotation(
        self, vgpuctl: Vgpuctl, bench: Bench, namespace: str, queue: str
    ) -> None:
        vgpuctl("quota", "set", namespace, "5", "--queue", queue)
        ran = vgpuctl("quota", "delete", namespace, "--yes", "-o", "json")
        assert ran.code == 0
        assert ran.actions() == {
            "ResourceQuota/vgpu": "deleted",
            f"Namespace/{namespace}": "configured",
            f"Queue/{queue}": "deleted",
        }
        annotations = bench.client.get(f"/api/v1/namespaces/{namespace}")["metadata"].get("annotations") or {}
        assert "scheduling.volcano.sh/queue-name" not in annotations
