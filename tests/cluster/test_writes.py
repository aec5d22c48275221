"""Ways of writing that only a real API server can judge."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.bench import Bench
from vgpuctl.model.change import Change, How, Target
from vgpuctl.model.problem import Problem
from vgpuctl.sources.cluster import Cluster, Flags, find_access

pytestmark = pytest.mark.cluster
ODD = "a <b> & c -> d \u2028 ü \\ \"q\" 'q'\ttab\r\n"


@pytest.fixture
def cluster(bench: Bench) -> Iterator[Cluster]:
    access = find_access(Flags(str(bench.kubeconfig)))
    assert access
    yield Cluster(access)


def config_map(namespace: str, text: str = ODD) -> tuple[Target, dict[str, Any]]:
    return Target("ConfigMap", "odd", namespace), {
        "metadata": {"name": "odd", "namespace": namespace},
        "data": {"k": text},
    }


def replacing(target: Target, old: str, new: str) -> Change:
    path = "/data/k"
    operations = [{"op": "test", "path": path, "value": old}, {"op": "replace", "path": path, "value": new}]
    return Change(target, How.PATCH, operations)


def test_a_patch_tests_any_text(cluster: Cluster, namespace: str) -> None:
    """The API server compares a tested value byte by byte, as Go writes it."""
    target, body = config_map(namespace)
    cluster.write(Change(target, How.CREATE, body))
    assert cluster.write(replacing(target, ODD, f"{ODD}2"))["data"] == {"k": f"{ODD}2"}
    with pytest.raises(Problem) as raised:
        cluster.write(replacing(target, ODD, "3"))
    assert raised.value.status == 422


def test_what_is_there_is_not_created_again(cluster: Cluster, namespace: str) -> None:
    target, body = config_map(namespace)
    cluster.write(Change(target, How.CREATE, body))
    with pytest.raises(Problem) as raised:
        cluster.write(Change(target, How.CREATE, body))
    assert raised.value.status == 409


def test_a_merge_may_come_twice(cluster: Cluster, namespace: str) -> None:
    target, body = config_map(namespace)
    cluster.write(Change(target, How.CREATE, {**body, "metadata": {**body["metadata"], "annotations": {"a": "1"}}}))
    gone = Change(target, How.MERGE, {"metadata": {"annotations": {"a": None}}})
    for _ in range(2):
        assert "annotations" not in cluster.write(gone)["metadata"]


def test_what_we_may_is_told_without_trying(cluster: Cluster, namespace: str) -> None:
    target, _ = config_map(namespace)
    assert cluster.may("patch", target) == (f"configmaps in {namespace}", True)
    assert cluster.may("create", Target("ClusterRole", "x", "", "rbac.authorization.k8s.io/v1")) == (
        "clusterroles.rbac.authorization.k8s.io",
        True,
    )
    with pytest.raises(Problem, match="knows no kind PodMonitor"):
        cluster.may("create", Target("PodMonitor", "x", namespace, "monitoring.coreos.com/v1"))
