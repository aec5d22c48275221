"""`config apply`, `config migrate` and `card cordon` on a cluster whose plugin and scheduler live."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.access import Access
from tests.cluster.client import MERGE
from tests.cluster.pool import load, read
from tests.cluster.quota.conftest import pod
from tests.install.conftest import Ran, Vgpuctl
from tests.install.rig import GPU_NODES, HERE, NODES, Rig
from vgpuctl.model.problem import Problem
from vgpuctl.sources.cluster import Cluster

pytestmark = pytest.mark.cluster

DEVICE = "/api/v1/namespaces/kube-system/configmaps/volcano-vgpu-device-config"
NODE = "/api/v1/namespaces/kube-system/configmaps/volcano-vgpu-node-config"
CONF = "/api/v1/namespaces/volcano-system/configmaps/volcano-scheduler-configmap"
SCHEDULER = "/apis/apps/v1/namespaces/volcano-system/deployments/volcano-scheduler"
QUOTA = "/api/v1/namespaces/ai-team/resourcequotas/vgpu"
QUEUE = "/apis/scheduling.volcano.sh/v1beta1/queues/rig-queue"
REGISTER = "volcano.sh/node-vgpu-register"
MEMORY = "volcano.sh/vgpu-memory"
BY_HAND = read(HERE / "by-hand.yaml")
TEXT: str = BY_HAND[0]["data"]["device-config.yaml"]
FIRST, SECOND = (card.uuid for card in NODES["gpu-1"][:2])


@pytest.fixture
def pool(rig: Rig) -> Rig:
    """The plugin as upstream's manifest has it, node config included; factor 10, 8 vGPUs a card."""
    config = {"name": "config", "configMap": {"name": "volcano-vgpu-node-config", "optional": True}}
    objects: list[Any] = json.loads(json.dumps(BY_HAND))
    spec = next(item for item in objects if item["kind"] == "DaemonSet")["spec"]["template"]["spec"]
    spec["volumes"].append(config)
    spec["containers"][0]["volumeMounts"].append({"name": "config", "mountPath": "/config"})
    load(rig.bench, objects[:1])
    time.sleep(1 - time.time() % 1)  # times tell seconds only: the pods are to start in a later one
    load(rig.bench, objects[1:])
    rig.wait("the plugin registered every card", rig.settled)
    rig.bench.kubectl("-n", "volcano-system", "rollout", "restart", "deployment", "volcano-scheduler")
    rig.wait("the scheduler has read it too", rig.volcano_runs)
    return rig


@pytest.fixture
def run(pool: Rig, vgpuctl: Vgpuctl) -> Vgpuctl:
    return lambda *arguments, **options: vgpuctl(*arguments, config=pool.kubeconfig, **options)


def device(**values: object) -> str:
    """The pool's device config with other values."""
    text = TEXT
    for key, value in values.items():
        text = "".join(
            f"  {key}: {value}\n" if line.strip().startswith(f"{key}:") else line for line in text.splitlines(True)
        )
    return text


def node_map(text: str) -> dict[str, Any]:
    metadata = {"name": "volcano-vgpu-node-config", "namespace": "kube-system"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"config.json": text}}


def cards(pool: Rig, node: str) -> dict[str, tuple[int, int]]:
    """UUID → vGPUs and units, as the node registers its cards."""
    text = pool.client.get(f"/api/v1/nodes/{node}")["metadata"]["annotations"][REGISTER]
    rows = [part.split(",") for part in text.split(":") if "," in part]
    return {row[0]: (int(row[1]), int(row[2])) for row in rows}


def plugin_pods(pool: Rig) -> dict[str, str]:
    """Node → uid of the plugin's pod."""
    return {
        item["spec"]["nodeName"]: item["metadata"]["uid"]
        for item in pool.pods("kube-system", "name=volcano-device-plugin")
    }


def scheduler_template(pool: Rig) -> dict[str, str]:
    found: dict[str, str] = pool.client.get(SCHEDULER)["spec"]["template"]["metadata"].get("annotations", {})
    return found


def actions(ran: Ran) -> dict[str, str]:
    return {f"{row['objectKind']}/{row['name']}": row["action"] for row in ran.json["changes"]}


class TestApply:
    def test_what_only_the_plugin_reads_restarts_only_the_plugin(self, pool: Rig, run: Vgpuctl) -> None:
        before = plugin_pods(pool)
        ran = run("config", "apply", "-", "--yes", "-o", "json", stdin=device(deviceSplitCount=4))
        assert ran.code == 0, ran.err
        assert "deviceSplitCount 8 → 4 (each card is divided into 4 vGPUs)" in ran.err
        assert all(split == 4 for node in GPU_NODES for split, _ in cards(pool, node).values())
        assert set(plugin_pods(pool).values()).isdisjoint(before.values())
        assert "vgpuctl.dev/restarted" not in scheduler_template(pool)
        again = run("config", "apply", "-", "--yes", "-o", "json", stdin=device(deviceSplitCount=4))
        assert again.code == 0, again.err
        assert actions(again)["ConfigMap/volcano-vgpu-device-config"] == "unchanged"

    def test_undo_brings_the_old_text_back(self, pool: Rig, run: Vgpuctl) -> None:
        ran = run("config", "apply", "-", "--yes", "-o", "json", stdin=device(deviceSplitCount=4))
        command = ran.json["changes"][0]["undo"]
        assert command.startswith("kubectl ") and command.endswith(" | vgpuctl config apply -")
        found = pool.bench.kubectl(*_words(command)[1:]).stdout
        assert found == TEXT

    def test_comments_alone_restart_nobody(self, pool: Rig, run: Vgpuctl) -> None:
        before = plugin_pods(pool)
        ran = run("config", "apply", "-", "--yes", "-o", "json", stdin="# the pool\n" + TEXT)
        assert ran.code == 0, ran.err
        assert pool.client.get(DEVICE)["data"]["device-config.yaml"] == "# the pool\n" + TEXT
        assert plugin_pods(pool) == before

    def test_a_node_s_value_restarts_the_plugin_there_only(self, pool: Rig, run: Vgpuctl) -> None:
        before = plugin_pods(pool)
        text = '{"nodeconfig": [{"name": "gpu-2", "devicesplitcount": 3}]}'
        ran = run("config", "apply", "-", "--yes", stdin=text)
        assert ran.code == 0, ran.err
        after = plugin_pods(pool)
        assert [node for node in GPU_NODES if before[node] != after[node]] == ["gpu-2"]
        assert {split for split, _ in cards(pool, "gpu-2").values()} == {3}

    def test_an_invalid_file_changes_nothing(self, pool: Rig, run: Vgpuctl) -> None:
        ran = run("config", "apply", "-", "--yes", stdin=device(gpuMemoryFactor=0))
        assert ran.code == 1
        assert "factor-zero" in ran.out
        assert pool.client.get(DEVICE)["data"]["device-config.yaml"] == TEXT

    def test_a_plugin_that_does_not_come_up_is_told_with_its_reason(self, pool: Rig, run: Vgpuctl) -> None:
        with pool.trouble("gpu-1", "ImagePullBackOff"):
            text = device(deviceSplitCount=4)
            ran = run("config", "apply", "-", "--yes", "--timeout", "5s", stdin=text)
        assert ran.code == 4
        assert "gpu-1" in ran.err and "ImagePullBackOff" in ran.err
        ran = run("config", "apply", "-", "--yes", stdin=text)
        assert ran.code == 0, ran.err
        assert {split for split, _ in cards(pool, "gpu-1").values()} == {4}

    def test_what_helm_keeps_is_refused_with_the_value_to_set(self, pool: Rig, run: Vgpuctl) -> None:
        notes = {"meta.helm.sh/release-name": "vgpu", "meta.helm.sh/release-namespace": "kube-system"}
        pool.client.request("PATCH", DEVICE, {"metadata": {"annotations": notes}}, content_type=MERGE)
        ran = run("config", "apply", "-", "--yes", stdin=device(deviceSplitCount=4))
        assert ran.code == 1
        assert "Helm release vgpu" in ran.err
        assert "deviceConfig.nvidia" in ran.err and "deviceSplitCount: 4" in ran.err
        assert pool.client.get(DEVICE)["data"]["device-config.yaml"] == TEXT

    def test_a_file_for_a_place_that_is_not_read_is_refused(self, pool: Rig, run: Vgpuctl) -> None:
        map_ = {**BY_HAND[0], "metadata": {"name": "volcano-vgpu-device-config", "namespace": "volcano-system"}}
        ran = run("config", "apply", "-", "--yes", stdin=json.dumps(map_))
        assert ran.code == 1
        assert "volcano-system/volcano-vgpu-device-config, which is not read" in ran.err

    def test_a_map_that_is_not_there_is_made_and_one_of_ours_stays_ours(self, pool: Rig, run: Vgpuctl) -> None:
        text = '{"nodeconfig": [{"name": "gpu-2", "devicesplitcount": 3}]}'
        ran = run("config", "apply", "-", "--yes", "-o", "json", stdin=text)
        assert actions(ran) == {"ConfigMap/volcano-vgpu-node-config": "created"}
        found = pool.client.get(NODE)
        assert found["metadata"]["labels"] == {"app.kubernetes.io/managed-by": "vgpuctl"}
        pool.client.request("PATCH", NODE, {"metadata": {"labels": {"team": "platform"}}}, content_type=MERGE)
        ran = run("config", "apply", "-", stdin=text.replace("3", "5"))  # it is ours: no question
        assert ran.code == 0, ran.err
        assert "restarts the plugin on gpu-2" in ran.err
        found = pool.client.get(NODE)
        assert found["metadata"]["labels"] == {"app.kubernetes.io/managed-by": "vgpuctl", "team": "platform"}
        assert found["metadata"]["annotations"]["vgpuctl.dev/before.config.json"] == text

    @pytest.mark.parametrize("ours", [False, True])
    def test_of_two_at_once_the_later_is_told(
        self, pool: Rig, run: Vgpuctl, monkeypatch: pytest.MonkeyPatch, ours: bool
    ) -> None:
        def text(split: int) -> str:
            return f'{{"nodeconfig": [{{"name": "gpu-2", "devicesplitcount": {split}}}]}}'

        write = Cluster.write
        if ours:
            assert run("config", "apply", "-", "--yes", stdin=text(3)).code == 0
        else:
            load(pool.bench, [node_map(text(3))])

        def after_another(self: Cluster, change: Any, **options: Any) -> Any:
            if change.target.name == "volcano-vgpu-node-config":
                pool.client.request("PATCH", NODE, {"data": {"config.json": text(6)}}, content_type=MERGE)
            return write(self, change, **options)

        monkeypatch.setattr(Cluster, "write", after_another)
        ran = run("config", "apply", "-", "--yes", "-o", "json", stdin=text(4))
        assert ran.code == 1
        assert "was changed by someone else meanwhile" in ran.err
        assert [row["action"] for row in ran.json["changes"]] == ["failed"]
        assert pool.client.get(NODE)["data"]["config.json"] == text(6)

    def test_dry_runs_and_missing_rights_change_nothing(self, pool: Rig, run: Vgpuctl, vgpuctl: Vgpuctl) -> None:
        reader = Access(pool.bench).read_only("looks-only")
        before = pool.contents()
        for where in ("client", "server"):
            ran = run("config", "apply", "-", f"--dry-run={where}", stdin=device(deviceSplitCount=4))
            assert (ran.code, "nothing was changed" in ran.out) == (0, True), ran.err
        ran = vgpuctl("config", "apply", "-", "--yes", config=reader, stdin=device(deviceSplitCount=4))
        assert ran.code == 3
        assert "configmaps" in ran.err and "permission" in ran.err
        assert pool.contents() == before

    def test_the_scheduler_is_restarted_for_what_a_reload_does_not_take(self, pool: Rig, run: Vgpuctl) -> None:
        text = pool.client.get(CONF)["data"]["volcano-scheduler.conf"]
        share = "  - name: deviceshare\n    arguments:\n      deviceshare.VGPUEnable: true\n"
        before = plugin_pods(pool)
        ran = run("config", "apply", "-", "--yes", stdin=text + share)
        assert ran.code == 0, ran.err
        moment = scheduler_template(pool)["vgpuctl.dev/restarted"]
        weight = "      deviceshare.SchedulePolicy: binpack\n      deviceshare.ScheduleWeight: 10\n"
        ran = run("config", "apply", "-", "--yes", stdin=text + share + weight)
        assert ran.code == 0, ran.err
        assert "the policy ranks nodes with weight 10" in ran.err
        assert scheduler_template(pool)["vgpuctl.dev/restarted"] == moment
        assert plugin_pods(pool) == before

    def test_diff_is_one_on_drift_and_zero_when_equal(self, pool: Rig, run: Vgpuctl) -> None:
        assert run("config", "diff", "-", stdin="# same\n" + TEXT).code == 0
        ran = run("config", "diff", "-", "-o", "json", stdin=device(deviceSplitCount=4))
        assert ran.code == 1
        assert [(row["key"], row["before"], row["after"]) for row in ran.json["compared"][0]["differences"]] == [
            ("deviceSplitCount", "8", "4")
        ]


@pytest.fixture
def work(pool: Rig) -> Iterator[Rig]:
    """What is written in memory units: a Deployment, a CronJob, a Volcano Job, a pod, a quota, a queue."""
    template = pod("x", memory=200)["spec"]
    labels = {"matchLabels": {"app": "serve"}}
    objects: list[dict[str, Any]] = [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "serve", "namespace": "ai-team"},
            "spec": {
                "replicas": 1,
                "selector": labels,
                "template": {"metadata": {"labels": labels["matchLabels"]}, "spec": template},
            },
        },
        {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "metadata": {"name": "nightly", "namespace": "ai-team"},
            "spec": {
                "schedule": "0 3 * * *",
                "jobTemplate": {"spec": {"template": {"spec": {**template, "restartPolicy": "Never"}}}},
            },
        },
        {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "metadata": {"name": "train", "namespace": "ai-team"},
            "spec": {"tasks": [{"name": "worker", "replicas": 1, "template": {"spec": template}}]},
        },
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "alone", "namespace": "ai-team"}, "spec": template},
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "vgpu", "namespace": "ai-team"},
            "spec": {"hard": {f"requests.{MEMORY}": "4000", "pods": "20"}},
        },
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": {"name": "rig-queue"},
            "spec": {"weight": 1, "capability": {MEMORY: "3001"}},
        },
    ]
    load(pool.bench, objects)
    pool.wait("its pod is made", lambda: len(pool.pods("ai-team")) == 2)
    return pool


class TestFactor:
    def test_everything_that_would_mean_something_else_is_listed_and_refused(self, work: Rig, run: Vgpuctl) -> None:
        ran = run("config", "apply", "-", "--yes", "-o", "json", stdin=device(gpuMemoryFactor=16))
        assert ran.code == 1
        rows = [
            (row["objectKind"], row["name"], row["mibBefore"], row["mibAfter"], row["pods"]) for row in ran.json["uses"]
        ]
        assert sorted(rows) == [
            ("CronJob", "nightly", 2000, 3200, 0),
            ("Deployment", "serve", 2000, 3200, 1),
            ("Job", "train", 2000, 3200, 0),
            ("Pod", "alone", 2000, 3200, 1),
            ("Queue", "rig-queue", 30010, 48016, 0),
            ("ResourceQuota", "vgpu", 40000, 64000, 0),
        ]
        assert work.client.get(DEVICE)["data"]["device-config.yaml"] == TEXT

    def test_named_and_brought_over_it_is_done(self, work: Rig, run: Vgpuctl) -> None:
        arguments = ("--accept", "*/ai-team/*", "--migrate", "--yes", "-o", "json")
        ran = run("config", "apply", "-", *arguments, stdin=device(gpuMemoryFactor=16))
        assert ran.code == 0, ran.err
        assert work.client.get(QUOTA)["spec"]["hard"] == {f"requests.{MEMORY}": "2500", "pods": "20"}
        assert work.client.get(QUEUE)["spec"]["capability"] == {MEMORY: "1876"}  # 30010 MiB are 1875.6 units
        assert {units for _, units in cards(work, "gpu-1").values()} == {81559 // 16}
        assert "vgpuctl.dev/restarted" in scheduler_template(work)
        assert "6 MiB more than before" in ran.err
        again = run("config", "apply", "-", *arguments, stdin=device(gpuMemoryFactor=16))
        assert actions(again)["ConfigMap/volcano-vgpu-device-config"] == "unchanged"
        assert not any(name.startswith(("ResourceQuota", "Queue")) for name in actions(again))

    def test_a_list_names_what_is_agreed_to(self, work: Rig, run: Vgpuctl, tmp_path: Path) -> None:
        new = device(gpuMemoryFactor=16)
        listed = run("config", "apply", "-", "-o", "name", stdin=new).out.splitlines()
        assert "Deployment/ai-team/serve" in listed and "Queue/rig-queue" in listed
        agreed = tmp_path / "agreed"
        agreed.write_text("\n".join(name for name in listed if not name.startswith("Queue")), encoding="utf-8")
        ran = run("config", "apply", "-", "--accept", f"@{agreed}", "--yes", "-o", "json", stdin=new)
        assert ran.code == 1
        assert [row["name"] for row in ran.json["uses"] if not row["accepted"]] == ["rig-queue"]

    def test_caps_that_were_brought_over_are_not_brought_over_twice(self, work: Rig, run: Vgpuctl) -> None:
        assert run("config", "migrate", "--factor", "16", "--yes").code == 0
        assert work.client.get(QUOTA)["spec"]["hard"][f"requests.{MEMORY}"] == "2500"
        ran = run("config", "migrate", "--factor", "16", "--yes", "-o", "json")
        assert (ran.code, ran.json["changes"]) == (0, [])
        ran = run("config", "apply", "-", "-o", "json", stdin=device(gpuMemoryFactor=16))
        assert {row["objectKind"] for row in ran.json["uses"]} == {"CronJob", "Deployment", "Job", "Pod"}
        # Whoever changes the amount takes the mark's meaning away.
        hard = {"spec": {"hard": {f"requests.{MEMORY}": "2600"}}}
        work.client.request("PATCH", QUOTA, hard, content_type=MERGE)
        ran = run("config", "apply", "-", "-o", "json", stdin=device(gpuMemoryFactor=16))
        assert "ResourceQuota" in {row["objectKind"] for row in ran.json["uses"]}

    @pytest.mark.parametrize("writes", [1, 2, 3, 4])
    def test_broken_off_at_any_write_and_run_again_it_ends_the_same(
        self, work: Rig, run: Vgpuctl, monkeypatch: pytest.MonkeyPatch, writes: int
    ) -> None:
        arguments = ("config", "apply", "-", "--accept", "*/ai-team/*", "--migrate", "--yes", "--timeout", "30s")
        done = iter(range(100))
        write = Cluster.write

        def interrupted(self: Cluster, change: Any, **options: Any) -> Any:
            if change.target.name != "vgpuctl-history" and next(done) == writes:
                raise Problem("the network is gone")
            return write(self, change, **options)

        time.sleep(1.1)  # the API server's times tell seconds only, and the nodes registered just now
        with monkeypatch.context() as patch:
            patch.setattr(Cluster, "write", interrupted)
            assert run(*arguments, stdin=device(gpuMemoryFactor=16)).code == 3
        ran = run(*arguments, stdin=device(gpuMemoryFactor=16))
        assert ran.code == 0, ran.err
        assert work.client.get(QUOTA)["spec"]["hard"][f"requests.{MEMORY}"] == "2500"
        assert work.client.get(QUEUE)["spec"]["capability"] == {MEMORY: "1876"}
        assert {units for _, units in cards(work, "gpu-1").values()} == {81559 // 16}
        assert "vgpuctl.dev/restarted" in scheduler_template(work)

    def test_what_cannot_be_listed_cannot_be_agreed_to(self, work: Rig, run: Vgpuctl, vgpuctl: Vgpuctl) -> None:
        rules = [
            {"apiGroups": ["", "scheduling.volcano.sh"], "resources": ["*"], "verbs": ["get", "list"]},
            {"apiGroups": ["apps"], "resources": ["daemonsets", "deployments"], "verbs": ["get", "list"]},
        ]
        some = Access(work.bench).user("sees-some", rules)
        new = device(gpuMemoryFactor=16)
        ran = vgpuctl("config", "apply", "-", "--accept", "*/ai-team/*", "--yes", config=some, stdin=new)
        assert (ran.code, ran.out) == (3, "")
        assert "what a new factor would change is not known" in ran.err
        assert "statefulsets" in ran.err
        assert work.client.get(DEVICE)["data"]["device-config.yaml"] == TEXT

    def test_undo_of_a_cap_is_exact(self, work: Rig, run: Vgpuctl) -> None:
        ran = run("config", "migrate", "--factor", "16", "--yes", "-o", "json")
        for row in ran.json["changes"]:
            work.bench.kubectl(*_words(row["undo"])[1:])
        assert work.client.get(QUOTA)["spec"]["hard"][f"requests.{MEMORY}"] == "4k"
        assert work.client.get(QUEUE)["spec"]["capability"] == {MEMORY: "3001"}


class TestCard:
    @pytest.mark.parametrize("named", ["0", FIRST[4:]])
    def test_a_card_goes_and_comes_back(self, pool: Rig, run: Vgpuctl, named: str) -> None:
        pool.client.post("/api/v1/namespaces/ai-team/pods", pod("train", memory=100))
        pool.wait("the pod runs", lambda: [item["status"]["phase"] for item in pool.pods("ai-team")] == ["Running"])
        before = plugin_pods(pool)
        ran = run("card", "cordon", f"gpu-1/{named}", "--yes", "-o", "json")
        assert ran.code == 0, ran.err
        assert FIRST not in cards(pool, "gpu-1") and SECOND in cards(pool, "gpu-1")
        after = plugin_pods(pool)
        assert [node for node in GPU_NODES if before[node] != after[node]] == ["gpu-1"]
        assert "1 pod still uses it and keeps it: ai-team/train" in ran.json["notes"]
        assert (f"index 0 is {FIRST}" in ran.json["notes"]) == (named == "0")
        assert pool.pods("ai-team")[0]["status"]["phase"] == "Running"
        undo = ran.json["changes"][0]["undo"]
        assert undo == f"vgpuctl card uncordon gpu-1/{0 if named == '0' else FIRST}"
        again = run("card", "cordon", f"gpu-1/{named}", "-o", "json")
        assert (again.code, again.json["changes"]) == (0, [])
        assert "of gpu-1 is out of service already" in again.json["notes"][0]
        text = pool.client.get(NODE)["data"]["config.json"]
        assert run("config", "validate", "-", "--kind", "node-config", stdin=text).code == 0
        back = run(*undo.split()[1:])
        assert back.code == 0, back.err
        assert FIRST in cards(pool, "gpu-1")

    def test_a_second_one_leaves_the_nodes_of_others_alone_and_the_rest_is_told(self, pool: Rig, run: Vgpuctl) -> None:
        """Although every other pod of the plugin is older than the last change of the text."""
        assert run("card", "cordon", "gpu-1/0", "--yes").code == 0
        time.sleep(1.0)  # times are whole seconds: a pod of the same one may have begun before
        first = _plugin_on(pool, "gpu-1")
        pool.client.delete(f"/api/v1/namespaces/kube-system/pods/{first}", grace=0)
        pool.wait("another runs", lambda: _plugin_on(pool, "gpu-1") not in ("", first) and pool.settled())
        before = plugin_pods(pool)
        for card in (NODES["gpu-2"][0].uuid, "0"):
            assert run("card", "cordon", f"gpu-2/{card}", "--yes").code == 0
        after = plugin_pods(pool)
        assert [node for node in GPU_NODES if before[node] != after[node]] == ["gpu-2"]
        back = run("card", "uncordon", "gpu-2/0", "--yes", "-o", "json")
        assert f"still out of service on gpu-2: {NODES['gpu-2'][0].uuid}" in back.json["notes"]

    def test_the_rest_of_the_node_config_stays_as_it_was(self, pool: Rig, run: Vgpuctl) -> None:
        entries = '{"name": "gpu-3", "devicesplitcount": 4},\n\t\t{"name": "gpu-1",  "operatingmode": "hami-core"}'
        text = f'{{\n\t"nodeconfig": [\n\t\t{entries}\n\t]\n}}\n'
        load(pool.bench, [node_map(text)])
        assert run("card", "cordon", f"gpu-1/{FIRST[4:]}", "--yes").code == 0
        entry = f'"operatingmode": "hami-core", "filterdevices": {{"uuid": ["{FIRST}"]}}}}'
        assert pool.client.get(NODE)["data"]["config.json"] == text.replace('"operatingmode": "hami-core"}', entry)

    def test_what_is_not_there_is_told_with_what_is(self, pool: Rig, run: Vgpuctl) -> None:
        for card, code, words in (
            ("gpu-9/0", 1, ("there is no node gpu-9", "gpu-1")),
            ("cpu-1/0", 1, ("there is no node cpu-1", "registers no card")),
            ("gpu-1/9", 1, ("gpu-1 has no card 9", FIRST)),
            ("gpu-1/GPU-ffff", 1, ("gpu-1 has no card GPU-ffff", SECOND)),
            ("gpu-1/GPU-a", 1, ("begins several UUIDs", FIRST, SECOND)),
            ("gpu-1", 2, ("NODE/GPU",)),
        ):
            ran = run("card", "cordon", card, "--yes")
            assert (ran.code, ran.out) == (code, ""), card
            assert all(word in ran.err for word in words), ran.err

    def test_the_last_card_is_not_taken(self, pool: Rig, run: Vgpuctl) -> None:
        assert run("card", "cordon", "gpu-3/0", "--yes").code == 0
        for last in (NODES["gpu-3"][1].uuid, "1"):
            ran = run("card", "cordon", f"gpu-3/{last}", "--yes")
            assert ran.code == 1
            assert "kubectl cordon gpu-3" in ran.err

    def test_a_dry_run_changes_nothing(self, pool: Rig, run: Vgpuctl) -> None:
        before = pool.contents()
        for where in ("client", "server"):
            assert run("card", "cordon", "gpu-1/0", f"--dry-run={where}").code == 0
        assert FIRST in cards(pool, "gpu-1")
        assert pool.contents() == before


def _plugin_on(pool: Rig, node: str) -> str:
    """The name of the plugin's pod on a node, "" for none."""
    pods = pool.pods("kube-system", "name=volcano-device-plugin")
    return next((item["metadata"]["name"] for item in pods if item["spec"].get("nodeName") == node), "")


def _words(command: str) -> list[str]:
    return shlex.split(command.partition(" | ")[0])
