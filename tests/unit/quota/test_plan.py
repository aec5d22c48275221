"""From a wish to Changes: what is sent, what is told, what cannot be."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.quota.memory import MemoryCluster
from vgpuctl.model.change import How
from vgpuctl.model.facts import Part
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.model.quota.team import Amounts, Team, TeamQueue
from vgpuctl.model.reading import Missing
from vgpuctl.tasks.apply import Conduct, Outcome
from vgpuctl.tasks.quota.export import export
from vgpuctl.tasks.quota.work import give, listed, take

NUMBER, MEMORY, CORES = (f"requests.volcano.sh/vgpu-{what}" for what in ("number", "memory", "cores"))


def config(factor: int = 10, **names: str) -> dict[str, Any]:
    lines = [f"  gpuMemoryFactor: {factor}", *(f"  {key}: {value}" for key, value in names.items())]
    return {
        "kind": "ConfigMap",
        "metadata": {"name": "volcano-vgpu-device-config", "namespace": "kube-system"},
        "data": {"device-config.yaml": "\n".join(["nvidia:", *lines])},
    }


def node(number: int = 40, memory: int = 8000) -> dict[str, Any]:
    allocatable = {"volcano.sh/vgpu-number": str(number), "volcano.sh/vgpu-memory": str(memory)}
    return {"kind": "Node", "metadata": {"name": "n1"}, "status": {"allocatable": allocatable}}


def space(name: str = "team") -> dict[str, Any]:
    return {"kind": "Namespace", "metadata": {"name": name}}


def quota(name: str, hard: dict[str, str], namespace: str = "team") -> dict[str, Any]:
    return {"kind": "ResourceQuota", "metadata": {"name": name, "namespace": namespace}, "spec": {"hard": hard}}


def scheduler(image: str) -> dict[str, Any]:
    container = {"name": "volcano-scheduler", "image": image}
    labels = {"app": "volcano-scheduler"}
    return {
        "kind": "Deployment",
        "metadata": {"name": "volcano-scheduler", "namespace": "volcano-system"},
        "spec": {"template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}}},
    }


def queue(name: str, **spec: Any) -> dict[str, Any]:
    return {"kind": "Queue", "metadata": {"name": name}, "spec": spec}


def run(cluster: MemoryCluster, *teams: Team, merge: bool = True) -> Outcome:
    return give(cluster, teams, Conduct(lambda _: None, yes=True, pause=lambda _: None), merge=merge)


def hard(cluster: MemoryCluster, name: str = "vgpu", namespace: str = "team") -> dict[str, str]:
    found: dict[str, str] = cluster.objects_[("ResourceQuota", namespace, name)]["spec"]["hard"]
    return found


class TestMemory:
    @pytest.mark.parametrize(
        ("size", "units"),
        [("200Gi", 20480), ("200GiB", 20480), ("2000Mi", 200), ("2001Mi", 201), ("20%", 1600), ("1234", 1234)],
    )
    def test_sizes_become_units_of_the_pool(self, size: str, units: int) -> None:
        cluster = MemoryCluster(config(), node(), space())
        run(cluster, Team(name="team", memory=size))
        assert hard(cluster) == {MEMORY: str(units)}

    def test_a_size_without_a_factor_is_not_guessed(self) -> None:
        cluster = MemoryCluster(space())
        with pytest.raises(Missing, match="factor is not known"):
            run(cluster, Team(name="team", memory="20Gi"))
        assert cluster.sent == []

    def test_a_part_of_an_unknown_pool_is_not_guessed(self) -> None:
        cluster = MemoryCluster(config(), space())
        cluster.denied.add(Part.NODES)
        with pytest.raises(Missing, match="part of the pool, whose size is not known"):
            run(cluster, Team(name="team", memory="20%"))

    def test_configured_names_are_used(self) -> None:
        cluster = MemoryCluster(config(resourceCountName="volcano.sh/slices"), space())
        run(cluster, Team(name="team", number=3))
        assert hard(cluster) == {"requests.volcano.sh/slices": "3"}


class TestMigration:
    def test_steps_come_in_an_order_without_a_gap(self) -> None:
        cluster = MemoryCluster(
            space(), quota("old", {"volcano.sh/vgpu-number": "9", "limits.volcano.sh/vgpu-cores": "80"})
        )
        run(cluster, Team(name="team", number=5))
        assert [(change.target.name, change.how) for change, _ in cluster.sent] == [
            ("vgpu", How.APPLY),
            ("old", How.PATCH),
        ]
        assert hard(cluster) == {NUMBER: "5", CORES: "80"}
        assert hard(cluster, "old") == {}

    def test_old_keys_stay_while_nobody_counts_the_new_ones(self) -> None:
        cluster = MemoryCluster(space(), quota("old", {"volcano.sh/vgpu-number": "9"}))
        cluster.counts = False
        clock = iter(range(1000))
        conduct = Conduct(lambda _: None, yes=True, now=lambda: float(next(clock)), pause=lambda _: None)
        outcome = give(cluster, [Team(name="team", number=5)], conduct, merge=True)
        assert outcome.exit_code is Exit.TIMEOUT
        assert hard(cluster, "old") == {"volcano.sh/vgpu-number": "9"}

    def test_the_least_of_several_old_caps_counts(self) -> None:
        cluster = MemoryCluster(
            space(), quota("a", {"volcano.sh/vgpu-memory": "900"}), quota("b", {"limits.volcano.sh/vgpu-memory": "500"})
        )
        run(cluster, Team(name="team", number=5))
        assert hard(cluster) == {NUMBER: "5", MEMORY: "500"}

    def test_a_file_states_all(self) -> None:
        cluster = MemoryCluster(space(), quota("old", {"volcano.sh/vgpu-memory": "900"}))
        run(cluster, Team(name="team", number=5), merge=False)
        assert hard(cluster) == {NUMBER: "5"}
        assert hard(cluster, "old") == {}


class TestNotes:
    def notes(self, cluster: MemoryCluster, **team: Any) -> str:
        return "\n".join(run(cluster, Team(name="team", **team)).changes.notes)

    def test_another_quota_that_decides(self) -> None:
        cluster = MemoryCluster(space(), quota("theirs", {NUMBER: "2"}))
        assert "quota team/theirs limits number to 2 too; the smaller one decides" in self.notes(cluster, number=5)

    def test_more_than_the_pool(self) -> None:
        assert "more than the pool offers (40)" in self.notes(MemoryCluster(space(), node()), number=41)

    def test_a_queue_that_caps_lower(self) -> None:
        cluster = MemoryCluster(space())
        run(cluster, Team(name="team", number=5, queue=TeamQueue(name="q")))
        assert "queue q caps number at 5; --queue q gives it the same amounts" in self.notes(cluster, number=9)
        assert "caps number" not in self.notes(cluster, number=4)

    @pytest.mark.parametrize(
        ("image", "said"),
        [
            ("volcanosh/vc-scheduler:v1.12.2", "Volcano 1.12.2 ignores memory and cores of queue q"),
            ("volcanosh/vc-scheduler:v1.13.0", ""),
            ("volcanosh/vc-scheduler:latest", "before 1.13 it ignores memory and cores of queue q"),
        ],
    )
    def test_what_an_old_volcano_does_not_keep(self, image: str, said: str) -> None:
        cluster = MemoryCluster(space(), scheduler(image))
        notes = self.notes(cluster, number=5, cores=100, queue=TeamQueue(name="q"))
        assert said in notes
        assert bool(said) == ("ignores memory" in notes)


class TestQueue:
    def test_its_other_settings_stay(self) -> None:
        cluster = MemoryCluster(space(), queue("q", weight=7, capability={"cpu": "9", "volcano.sh/vgpu-number": "2"}))
        run(cluster, Team(name="team", number=5, queue=TeamQueue(name="q")))
        (body,) = (change.after for change, _ in cluster.sent if change.target.kind == "Queue")
        assert body["spec"] == {"weight": 7, "capability": {"volcano.sh/vgpu-number": "5"}}

    @pytest.mark.parametrize(
        ("others", "mine", "fine"), [(30, 10, True), (30, 11, False), (0, 40, True), (0, 41, False)]
    )
    def test_guarantees_leave_something_of_the_pool(self, others: int, mine: int, fine: bool) -> None:
        cluster = MemoryCluster(
            space(), node(40), queue("other", guarantee={"resource": {"volcano.sh/vgpu-number": str(others)}})
        )
        team = Team(name="team", number=50, queue=TeamQueue(name="q", guarantee=Amounts(number=mine)))
        if fine:
            assert run(cluster, team).exit_code is Exit.FINE
            return
        with pytest.raises(Problem, match="the guarantees of all queues would be") as raised:
            run(cluster, team)
        assert raised.value.exit_code is Exit.FINDINGS
        assert cluster.sent == []


class TestRoundTrip:
    TEAMS = (
        Team(name="a", number=5, memory="200Gi", cores=300),
        Team(name="b", namespaces=["b", "b-dev"], number=2, priorities={"high": 1}),
        Team(name="c", number=4, queue=TeamQueue(name="q", guarantee=Amounts(number=2))),
        Team(name="d", cores=50, queue=TeamQueue(name="r", capability=Amounts(number=9))),
    )

    def test_what_is_exported_reads_back(self) -> None:
        cluster = MemoryCluster(config(), node())
        assert run(cluster, *self.TEAMS, merge=False).exit_code is Exit.FINE
        exported, notes = export((cluster,))
        assert exported.teams == list(self.TEAMS)
        assert notes == []
        before = len(cluster.sent)
        run(cluster, *exported.teams, merge=False)
        assert len(cluster.sent) == before

    def test_a_team_whose_namespace_is_being_deleted_is_not_exported(self) -> None:
        cluster = MemoryCluster(config(), node())
        run(cluster, *self.TEAMS)
        cluster.objects_[("Namespace", "", "a")]["metadata"]["deletionTimestamp"] = "2026-12-01T08:00:00Z"
        assert [team.name for team in export((cluster,))[0].teams] == ["b", "c", "d"]

    @pytest.mark.parametrize("factor", [1, 3, 10, 11, 20, 1024])
    def test_memory_stays_the_same_units(self, factor: int) -> None:
        cluster = MemoryCluster(config(factor), node())
        run(cluster, Team(name="a", memory="200Gi"))
        units = hard(cluster, namespace="a")
        run(cluster, *export((cluster,))[0].teams, merge=False)
        assert hard(cluster, namespace="a") == units

    def test_delete_takes_all_of_it_and_nothing_else(self) -> None:
        cluster = MemoryCluster(config(), node(), quota("theirs", {NUMBER: "2"}, "c"))
        run(cluster, *self.TEAMS)
        conduct = Conduct(lambda _: None, yes=True)
        for team in self.TEAMS:
            assert take(cluster, team.name, conduct).exit_code is Exit.FINE
        left = {(kind, name) for kind, _, name in cluster.objects_ if kind in ("ResourceQuota", "Queue")}
        assert left == {("ResourceQuota", "theirs")}
        again = take(cluster, "a", conduct)
        assert again.changes.changes == []
        assert again.changes.notes == ["team a has no quota that vgpuctl made"]

    def test_a_queue_that_another_team_uses_stays(self) -> None:
        cluster = MemoryCluster(config(), node())
        run(
            cluster,
            Team(name="a", number=1, queue=TeamQueue(name="q")),
            Team(name="b", number=1, queue=TeamQueue(name="q")),
        )
        take(cluster, "a", Conduct(lambda _: None, yes=True))
        assert ("Queue", "", "q") in cluster.objects_


class TestList:
    def test_what_cannot_be_read_is_said_and_stays_unknown(self) -> None:
        cluster = MemoryCluster(quota("vgpu", {NUMBER: "5"}))
        cluster.denied |= {Part.PODS, Part.QUEUES}
        quotas = listed((cluster,))
        (share,) = quotas.shares
        assert share.holds is None
        assert share.pending is None
        assert [line.partition(":")[0] for line in quotas.unread] == ["pods", "queues", "gpuMemoryFactor"]

    @pytest.mark.parametrize(("scope", "names"), [("", ["mine", "other"]), ("namespace team", ["mine"])])
    def test_one_namespace_shows_its_own_queue_only(self, scope: str, names: list[str]) -> None:
        capability = {"volcano.sh/vgpu-number": "2"}
        cluster = MemoryCluster(queue("mine", capability=capability), queue("other", capability=capability), space())
        run(cluster, Team(name="team", number=5, queue=TeamQueue(name="mine")))
        cluster.scope = scope
        assert [found.name for found in listed((cluster,)).queues] == names

    def test_without_quotas_there_is_no_list(self) -> None:
        cluster = MemoryCluster()
        cluster.denied.add(Part.QUOTAS)
        with pytest.raises(Missing, match="no permission"):
            listed((cluster,))
