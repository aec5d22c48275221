"""The cluster source on a real API server: parts, rights, trouble, writes, changes as they happen."""

from __future__ import annotations

import itertools
import json
import os
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.access import Access
from tests.cluster.bench import Bench
from vgpuctl.model.change import Change, How, Target
from vgpuctl.model.delta import Delta, Kind, apply
from vgpuctl.model.facts import Facts, Part
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.sources.cluster import Cluster, Flags, find_access
from vgpuctl.tasks.load import load

pytestmark = pytest.mark.cluster

NAMESPACED = {Part.PODS, Part.QUOTAS, Part.PODGROUPS, Part.EVENTS}
_names = (f"source-{number}" for number in itertools.count())


def source(path: Path, timeout: float = 10.0, **more: Any) -> Cluster:
    """The source that a kubeconfig names."""
    flags = Flags(kubeconfig=str(path), **{key: more.pop(key) for key in ("as_user", "as_group") if key in more})
    access = find_access(flags)
    assert access is not None
    return Cluster(access, timeout=timeout, **more)


def quota(namespace: str, **hard: str) -> Change:
    """A quota in a namespace; `number` stands for requests.volcano.sh/vgpu-number."""
    amounts = {f"requests.volcano.sh/vgpu-{name}": value for name, value in hard.items()}
    body = {"metadata": {"name": "vgpu", "namespace": namespace}, "spec": {"hard": amounts}}
    return Change(Target("ResourceQuota", "vgpu", namespace), How.APPLY, body)


def pod(namespace: str, name: str, number: str = "1") -> Change:
    limits = {"volcano.sh/vgpu-number": number}
    container = {"name": "main", "image": "none", "resources": {"limits": limits}}
    body = {"metadata": {"name": name, "namespace": namespace}, "spec": {"containers": [container]}}
    return Change(Target("Pod", name, namespace), How.APPLY, body)


def until(check: Callable[[], bool], seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < end, "did not come true"
        time.sleep(0.05)


def test_an_administrator_reads_every_part(bench: Bench) -> None:
    cluster = source(bench.kubeconfig)
    facts = load([cluster], cluster.parts)
    assert {part.value: facts.part(part).reason for part in cluster.parts if not facts.part(part).known} == {}
    assert facts.version.need().startswith("v1.")
    assert all(facts.access.need().values())


def test_a_user_without_rights_is_denied_every_part_but_the_version(bench: Bench, access: Access) -> None:
    cluster = source(access.nobody(next(_names)))
    facts = load([cluster], cluster.parts)
    open_to_all = {Part.VERSION, Part.ACCESS}
    assert all(facts.part(part).denied for part in cluster.parts - open_to_all)
    assert not any(facts.access.need().values())


def test_a_team_user_reads_his_namespace_and_nothing_else(bench: Bench, access: Access, namespace: str) -> None:
    path = access.namespaced(next(_names), namespace)
    cluster = source(path, namespace=namespace)
    facts = load([cluster], cluster.parts)
    assert all(facts.part(part).known for part in NAMESPACED | {Part.NAMESPACES})
    assert [item.metadata.name for item in facts.namespaces.need()] == [namespace]
    assert facts.nodes.denied and facts.queues.denied
    assert facts.scope == f"namespace {namespace}"
    everywhere = source(path).read(Part.PODS)
    assert everywhere.denied and "-n NAMESPACE asks for one namespace" in everywhere.reason


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("expired", "the client certificate expired on "),
        ("wrong_token", "does not accept the credentials"),
        ("closed", "connection refused"),
    ],
)
def test_a_kubeconfig_that_does_not_work_says_why(bench: Bench, access: Access, kind: str, words: str) -> None:
    cluster = source(getattr(access, kind)(next(_names)), timeout=2)
    assert words in cluster.read(Part.PODS).reason
    with pytest.raises(Problem) as caught:
        cluster.write(quota("default", number="1"))
    assert caught.value.exit_code is Exit.UNKNOWN
    assert words in "; ".join(caught.value.lines())


def test_a_server_that_hangs_costs_one_time_limit(bench: Bench, access: Access) -> None:
    with access.hanging(next(_names)) as path:
        cluster = source(path, timeout=1)
        began = time.monotonic()
        facts = load([cluster], cluster.parts)
        assert time.monotonic() - began < 2.5
        assert "within 1 s" in facts.pods.reason


def test_a_server_that_is_paused_and_comes_back_is_read_again(bench: Bench) -> None:
    cluster = source(bench.kubeconfig, timeout=1)
    assert cluster.read(Part.NODES).known
    with bench.paused():
        assert "within 1 s" in cluster.read(Part.NODES).reason
    until(lambda: cluster.read(Part.NODES).known)


def test_another_ca_is_not_trusted(bench: Bench, tmp_path: Path) -> None:
    content = yaml.safe_load(bench.kubeconfig.read_text())
    del content["clusters"][0]["cluster"]["certificate-authority-data"]
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(content))
    assert "its certificate is not trusted" in source(path).read(Part.PODS).reason
    content["clusters"][0]["cluster"]["insecure-skip-tls-verify"] = True
    path.write_text(yaml.safe_dump(content))
    assert source(path).read(Part.PODS).known


def test_a_server_name_replaces_the_host_in_the_check(bench: Bench, tmp_path: Path) -> None:
    content = yaml.safe_load(bench.kubeconfig.read_text())
    cluster = content["clusters"][0]["cluster"]
    path = tmp_path / "config"
    for name, good in (("localhost", True), ("elsewhere", False)):
        cluster["tls-server-name"] = name
        path.write_text(yaml.safe_dump(content))
        assert source(path).read(Part.PODS).known is good


def test_an_exec_plugin_lets_us_in_and_is_asked_again_when_its_token_ends(
    bench: Bench, access: Access, namespace: str, tmp_path: Path
) -> None:
    path = access.service_account(
        next(_names), [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}], namespace
    )
    content = yaml.safe_load(path.read_text())
    good = content["users"][0]["user"].pop("token")
    token, program = tmp_path / "token", tmp_path / "plugin"
    token.write_text("not-a-token")
    status = '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "%s"}}'
    program.write_text(f"#!/bin/sh\nprintf '{status}' \"$(cat {token})\"\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    content["users"][0]["user"]["exec"] = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": str(program),
    }
    path.write_text(yaml.safe_dump(content))
    cluster = source(path, namespace=namespace)
    assert "credentials" in cluster.read(Part.PODS).reason
    token.write_text(good)
    assert cluster.read(Part.PODS).known


def test_impersonation_asks_as_somebody_else(bench: Bench) -> None:
    reading = source(bench.kubeconfig, as_user="bob", as_group=("devs",)).read(Part.NODES)
    assert reading.denied
    masters = source(bench.kubeconfig, as_user="bob", as_group=("devs", "system:masters")).read(Part.NODES)
    assert masters.known


def test_a_selector_narrows_the_pods(bench: Bench, namespace: str) -> None:
    admin = source(bench.kubeconfig)
    for name, team in (("a", "red"), ("b", "blue")):
        change = pod(namespace, name)
        change.after["metadata"]["labels"] = {"team": team}
        admin.write(change)
    narrowed = source(bench.kubeconfig, namespace=namespace, selector="team=red")
    assert [item.metadata.name for item in narrowed.read(Part.PODS).need()] == ["a"]
    assert narrowed.scope == f"namespace {namespace}, pods with team=red"
    wrong = source(bench.kubeconfig, selector="team==in(").read(Part.PODS)
    assert not wrong.known and "selector" in wrong.reason


def test_what_is_applied_can_be_read_changed_and_deleted(bench: Bench, namespace: str) -> None:
    cluster = source(bench.kubeconfig)
    change = quota(namespace, number="5")
    assert cluster.get(change.target) is None
    cluster.write(change, dry_run=True)
    assert cluster.get(change.target) is None
    cluster.write(change)
    before = cluster.get(change.target)
    assert before is not None
    assert before["metadata"]["managedFields"][0]["manager"] == "vgpuctl"
    path = "/spec/hard/requests.volcano.sh~1vgpu-number"
    patch = [{"op": "replace", "path": path, "value": "6"}]
    version = before["metadata"]["resourceVersion"]
    until(lambda: bool((cluster.get(change.target) or {}).get("status", {}).get("hard")))
    bench.kubectl("-n", namespace, "label", "quota", "vgpu", "touched=yes")
    with pytest.raises(Problem, match="changed by someone else"):
        cluster.write(Change(change.target, How.PATCH, patch, resource_version=version))
    current = cluster.get(change.target)
    assert current is not None and current["spec"]["hard"]["requests.volcano.sh/vgpu-number"] == "5"
    cluster.write(Change(change.target, How.PATCH, patch, resource_version=current["metadata"]["resourceVersion"]))
    assert cluster.get(change.target)["spec"]["hard"]["requests.volcano.sh/vgpu-number"] == "6"  # type: ignore[index]
    gone = Change(change.target, How.DELETE, None)
    cluster.write(gone, dry_run=True)
    assert cluster.get(change.target) is not None
    cluster.write(gone)
    assert cluster.get(change.target) is None
    assert cluster.write(gone) == {}


def test_a_field_of_another_manager_is_a_conflict_until_forced(bench: Bench, namespace: str) -> None:
    cluster = source(bench.kubeconfig)
    bench.kubectl("-n", namespace, "create", "quota", "vgpu", "--hard=requests.volcano.sh/vgpu-number=5")
    with pytest.raises(Problem) as caught:
        cluster.write(quota(namespace, number="6"))
    assert caught.value.exit_code is Exit.FINDINGS
    assert "conflicts with what kubectl-create manages" in caught.value.what
    assert cluster.write(quota(namespace, number="6"), force=True)["spec"]["hard"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (quota("no-such-namespace", number="1"), 'namespaces "no-such-namespace" not found'),
        (quota("default", number="many"), "is invalid"),
        (Change(Target("Thing", "x", "", "example.com/v1"), How.APPLY, {}), "knows no kind Thing of example.com/v1"),
        (
            Change(
                Target("Queue", "q", "", "scheduling.volcano.sh/v1beta1"),
                How.APPLY,
                {"metadata": {"name": "q"}, "spec": {"weight": "heavy"}},
            ),
            "is invalid",
        ),
    ],
)
def test_an_object_that_is_refused_is_a_finding(bench: Bench, change: Change, words: str) -> None:
    with pytest.raises(Problem) as caught:
        source(bench.kubeconfig).write(change)
    assert caught.value.exit_code is Exit.FINDINGS
    lines = caught.value.lines()
    assert words in "; ".join(lines) and len(lines) <= 3 and all(len(line) < 500 for line in lines)


def test_a_full_quota_refuses_the_pod(bench: Bench, namespace: str) -> None:
    cluster = source(bench.kubeconfig)
    cluster.write(quota(namespace, number="2"))
    until(lambda: bool((cluster.get(quota(namespace).target) or {}).get("status", {}).get("hard")))
    cluster.write(pod(namespace, "fits", "2"))
    with pytest.raises(Problem) as caught:
        cluster.write(pod(namespace, "third"))
    assert caught.value.exit_code is Exit.FINDINGS
    assert caught.value.what == f"pods {namespace}/third is refused by a quota"


def test_a_refused_write_without_the_right_is_unknown(bench: Bench, access: Access, namespace: str) -> None:
    with pytest.raises(Problem) as caught:
        source(access.read_only(next(_names))).write(quota(namespace, number="1"))
    assert caught.value.exit_code is Exit.UNKNOWN
    assert caught.value.what == "no permission" and "cannot patch" in caught.value.why


def test_deltas_follow_what_happens_and_survive_a_restart(bench: Bench, namespace: str) -> None:
    cluster = source(bench.kubeconfig, namespace=namespace)
    cluster.write(pod(namespace, "first"))
    facts = load([cluster], [Part.PODS])
    stop = threading.Event()
    bunches: list[list[Delta]] = []
    thread = threading.Thread(target=lambda: bunches.extend(cluster.follow(Part.PODS, stop.is_set)), daemon=True)
    thread.start()

    def names() -> list[str]:
        found: Facts = apply(facts, [delta for bunch in list(bunches) for delta in bunch], time.time())
        return [item.metadata.name for item in found.pods.need()]

    cluster.write(pod(namespace, "second"))
    until(lambda: names() == ["first", "second"])
    bench.restart()
    gone = Change(Target("Pod", "first", namespace), How.DELETE, None)
    until(lambda: _tried(cluster, gone))
    bench.client.delete(f"/api/v1/namespaces/{namespace}/pods/first", grace=0)
    until(lambda: names() == ["second"], 20)
    stop.set()
    cluster.write(pod(namespace, "third"))
    thread.join(10)
    assert any(delta.kind is Kind.SET for bunch in bunches for delta in bunch)


def _tried(cluster: Cluster, change: Change) -> bool:
    try:
        cluster.write(change)
    except Problem:
        return False
    return True


def test_configmaps_are_found_where_the_scheduler_is_told_to_look(bench: Bench, namespace: str) -> None:
    admin = source(bench.kubeconfig)

    def configmap(space: str, name: str, key: str, text: str) -> None:
        body = {"metadata": {"name": name, "namespace": space}, "data": {key: text}}
        admin.write(Change(Target("ConfigMap", name, space), How.APPLY, body))

    arguments = f"deviceshare.KnownGeometriesCMName: pool\ndeviceshare.KnownGeometriesCMNamespace: {namespace}\n"
    other = f"{namespace}-volcano"
    bench.client.post("/api/v1/namespaces", {"metadata": {"name": other}})
    try:
        configmap(other, "volcano-scheduler-configmap", "volcano-scheduler.conf", arguments)
        configmap(namespace, "pool", "device-config.yaml", "nvidia: {}")
        configmap(namespace, "unrelated", "x", "y")
        found = {(item.metadata.namespace, item.metadata.name) for item in admin.read(Part.CONFIGMAPS).need()}
        assert {(other, "volcano-scheduler-configmap"), (namespace, "pool")} <= found
        assert (namespace, "unrelated") not in found
    finally:
        bench.client.delete(f"/api/v1/namespaces/{other}")


def test_a_proxy_is_used_unless_the_host_is_exempt(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    content = yaml.safe_load(bench.kubeconfig.read_text())
    path = tmp_path / "config"
    content["clusters"][0]["cluster"]["proxy-url"] = "http://127.0.0.1:1"
    path.write_text(json.dumps(content))
    assert "the proxy does not work" in source(path, timeout=2).read(Part.PODS).reason
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    assert source(bench.kubeconfig).read(Part.PODS).known, "loopback is never proxied"
    assert "KUBECONFIG" not in os.environ
