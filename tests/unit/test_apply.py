"""Changes are shown, asked about, sent, waited for and recorded in one way."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from tests.unit.quota.memory import MemoryCluster
from vgpuctl.model.change import Change, How, Line, Target
from vgpuctl.model.changes import Action
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.tasks.apply import Conduct, Group, Reversible, Wait, apply, takes_away
from vgpuctl.tasks.history import KEPT, PLACE, ROOM

QUOTA = Target("ResourceQuota", "vgpu", "team")


def ours(name: str = "vgpu", number: int = 5, before: Any = None) -> Change:
    body = {"metadata": {"name": name, "namespace": "team"}, "spec": {"hard": {"n": str(number)}}}
    line = Line("n", None, str(number))
    return Change(Target("ResourceQuota", name, "team"), How.APPLY, body, before, (line,), undo="undo it")


def gone(name: str = "vgpu") -> Change:
    return Change(Target("ResourceQuota", name, "team"), How.DELETE, None, {"metadata": {}}, (Line("n", "5", None),))


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def conduct(said: list[str]) -> Callable[..., Conduct]:
    """conduct(**changes): no terminal, a clock that runs a second at each look."""
    clock = iter(range(1_800_000_000, 1_900_000_000))

    def make(**changes: Any) -> Conduct:
        return Conduct(said.append, **{"now": lambda: float(next(clock)), "pause": lambda _: None, **changes})

    return make


def history(cluster: MemoryCluster) -> list[dict[str, Any]]:
    found = cluster.get(PLACE)
    return [json.loads(found["data"][key]) for key in sorted(found["data"])] if found else []


class TestPreview:
    def test_old_and_new_are_told_before_anything_is_sent(self, conduct: Any, said: list[str]) -> None:
        cluster = MemoryCluster()
        cluster.fail[str(QUOTA)] = Problem("no", exit_code=Exit.FINDINGS)
        apply(cluster, [Group([ours()])], conduct())
        assert said[0] == "ResourceQuota team/vgpu: create: n none → 5"

    @pytest.mark.parametrize(("where", "sent"), [("client", []), ("server", [True])])
    def test_a_dry_run_keeps_nothing(self, conduct: Any, where: str, sent: list[bool]) -> None:
        cluster = MemoryCluster()
        never = Wait("never", lambda: False)
        outcome = apply(cluster, [Group([ours(), never, gone()])], conduct(dry_run=where))
        assert [dry for _, dry in cluster.sent] == sent * 2
        assert cluster.objects_ == {}
        assert cluster.created == []
        assert outcome.changes.dry_run == where
        assert [row.action for row in outcome.changes.changes] == [Action.CREATED, Action.DELETED]

    def test_what_is_right_already_is_told_and_not_sent(self, conduct: Any) -> None:
        cluster = MemoryCluster()
        outcome = apply(cluster, [Group([], [ours()])], conduct())
        assert [row.action for row in outcome.changes.changes] == [Action.UNCHANGED]
        assert cluster.sent == []


class TestQuestion:
    def test_our_own_objects_need_none(self, conduct: Any) -> None:
        def ask(question: str) -> bool:
            raise AssertionError(question)

        assert apply(MemoryCluster(), [Group([ours()])], conduct(ask=ask)).exit_code is Exit.FINE

    @pytest.mark.parametrize("how", [How.DELETE, How.PATCH])
    def test_without_a_terminal_and_without_yes_it_is_wrong_use(self, conduct: Any, how: How) -> None:
        cluster = MemoryCluster()
        with pytest.raises(Problem) as raised:
            apply(cluster, [Group([ours("first"), Change(QUOTA, how, [])])], conduct())
        assert raised.value.exit_code is Exit.USAGE
        assert "--yes" in raised.value.remedy
        assert cluster.sent == []  # nothing half done

    def test_a_person_may_say_no(self, conduct: Any) -> None:
        cluster = MemoryCluster()
        with pytest.raises(Problem, match="nothing was changed") as raised:
            apply(cluster, [Group([gone()])], conduct(ask=lambda _: False))
        assert raised.value.exit_code is Exit.FINDINGS
        assert cluster.sent == []

    def test_the_question_names_the_objects(self, conduct: Any) -> None:
        asked: list[str] = []
        apply(MemoryCluster(), [Group([gone()])], conduct(ask=lambda question: not asked.append(question)))
        assert asked == ["Go on (ResourceQuota team/vgpu)?"]

    def test_yes_answers(self, conduct: Any) -> None:
        cluster = MemoryCluster()
        assert apply(cluster, [Group([gone()])], conduct(yes=True)).exit_code is Exit.FINE
        assert len(cluster.sent) == 1


class TestFailure:
    def test_the_rest_of_a_group_is_left_and_the_next_is_tried(self, conduct: Any) -> None:
        cluster = MemoryCluster()
        cluster.fail[str(QUOTA)] = Problem("refused", "by a webhook", exit_code=Exit.FINDINGS)
        outcome = apply(cluster, [Group([ours(), ours("later")]), Group([ours("other")])], conduct())
        rows = {row.name: (row.action, row.error) for row in outcome.changes.changes}
        assert rows == {
            "vgpu": (Action.FAILED, "refused; by a webhook"),
            "later": (Action.UNDONE, "after: refused"),
            "other": (Action.CREATED, ""),
        }
        assert outcome.exit_code is Exit.FINDINGS

    @pytest.mark.parametrize(
        ("codes", "code"),
        [
            ((Exit.UNKNOWN,), Exit.UNKNOWN),
            ((Exit.UNKNOWN, Exit.FINDINGS), Exit.FINDINGS),
            ((Exit.TIMEOUT, Exit.UNKNOWN), Exit.UNKNOWN),
        ],
    )
    def test_a_failure_beats_an_unknown(self, conduct: Any, codes: tuple[Exit, ...], code: Exit) -> None:
        cluster = MemoryCluster()
        groups = []
        for index, one in enumerate(codes):
            change = ours(f"q{index}")
            cluster.fail[str(change.target)] = Problem("no", exit_code=one)
            groups.append(Group([change]))
        assert apply(cluster, groups, conduct()).exit_code is code

    def test_a_value_that_changed_meanwhile_is_a_conflict(self, conduct: Any) -> None:
        item = {
            "kind": "ResourceQuota",
            "metadata": {"name": "vgpu", "namespace": "team"},
            "spec": {"hard": {"n": "9"}},
        }
        cluster = MemoryCluster(item)
        patch = [{"op": "test", "path": "/spec/hard/n", "value": "5"}, {"op": "remove", "path": "/spec/hard/n"}]
        outcome = apply(cluster, [Group([Change(QUOTA, How.PATCH, patch, item)])], conduct(yes=True))
        assert outcome.exit_code is Exit.FINDINGS
        assert outcome.problems[0].what == "ResourceQuota team/vgpu was changed by someone else meanwhile"
        assert cluster.get(QUOTA) == item

    def test_the_option_that_takes_over_is_named(self, conduct: Any) -> None:
        problem = Problem("conflicts", exit_code=Exit.FINDINGS)
        problem.status = 409  # type: ignore[attr-defined]
        cluster = MemoryCluster()
        cluster.fail[str(QUOTA)] = problem
        outcome = apply(cluster, [Group([ours()])], conduct(force_option="--force-conflicts"))
        assert "--force-conflicts" in outcome.problems[0].remedy


class TestWait:
    def test_it_goes_on_when_it_comes_true(self, conduct: Any, said: list[str]) -> None:
        answers = iter([False, False, True])
        cluster = MemoryCluster()
        outcome = apply(cluster, [Group([Wait("it is so", lambda: next(answers)), ours()])], conduct())
        assert outcome.exit_code is Exit.FINE
        assert said.count("waiting: it is so") == 1
        assert len(cluster.sent) == 1

    def test_what_is_in_the_way_is_told(self, conduct: Any) -> None:
        wait = Wait("the plugin runs", lambda: False, lambda: "gpu-1: no image", timeout=3)
        (problem,) = apply(MemoryCluster(), [Group([wait])], conduct(timeout=1000)).problems
        assert problem.lines()[:2] == ["not within 3 s: the plugin runs", "gpu-1: no image"]

    def test_it_runs_out_with_its_own_code(self, conduct: Any) -> None:
        cluster = MemoryCluster()
        outcome = apply(
            cluster, [Group([ours(), Wait("it is so", lambda: False), gone()])], conduct(yes=True, timeout=5)
        )
        assert outcome.exit_code is Exit.TIMEOUT
        assert [row.action for row in outcome.changes.changes] == [Action.CREATED, Action.UNDONE]
        assert "--timeout" in outcome.problems[0].remedy

    def test_an_interruption_is_recorded_and_told(self, conduct: Any, said: list[str]) -> None:
        def interrupt() -> bool:
            raise KeyboardInterrupt

        cluster = MemoryCluster()
        with pytest.raises(KeyboardInterrupt):
            apply(cluster, [Group([ours(), Wait("it is so", interrupt)])], conduct())
        assert [line["what"] for line in history(cluster)] == ["ResourceQuota team/vgpu"]
        assert "run the command again to finish" in said[-1]


OURS = {"app.kubernetes.io/managed-by": "vgpuctl"}


def taking_back(change: Change) -> Reversible:
    return Reversible(change, lambda: [Change(change.target, How.DELETE, None, change.after)])


class TestTakingBack:
    def test_what_was_done_of_a_group_goes_the_last_first(self, conduct: Any, said: list[str]) -> None:
        cluster = MemoryCluster()
        cluster.fail[str(QUOTA)] = Problem("refused", exit_code=Exit.FINDINGS)
        steps = [taking_back(ours("a")), taking_back(ours("b")), ours(), ours("c")]
        outcome = apply(cluster, [Group(steps)], conduct())
        assert cluster.objects_.keys() == {("ConfigMap", "kube-system", "vgpuctl-history")}
        deleted = [change.target.name for change, _ in cluster.sent if change.how is How.DELETE]
        assert deleted == ["b", "a"]
        assert [row.action for row in outcome.changes.changes] == [
            Action.TAKEN_BACK,
            Action.TAKEN_BACK,
            Action.FAILED,
            Action.UNDONE,
        ]
        assert "refused: taking back what was changed" in said

    def test_it_is_recorded(self, conduct: Any) -> None:
        cluster = MemoryCluster()
        cluster.fail[str(QUOTA)] = Problem("refused", exit_code=Exit.FINDINGS)
        apply(cluster, [Group([taking_back(ours("a")), ours()])], conduct())
        assert [(line["what"], line["how"]) for line in history(cluster)] == [
            ("ResourceQuota team/a", "server-side apply"),
            ("ResourceQuota team/a", "delete"),
        ]

    def test_what_cannot_be_taken_back_is_told_and_what_came_before_it_stays(
        self, conduct: Any, said: list[str]
    ) -> None:
        def back() -> list[Any]:
            raise Problem("gone wrong", exit_code=Exit.UNKNOWN)

        cluster = MemoryCluster()
        cluster.fail[str(QUOTA)] = Problem("refused", exit_code=Exit.FINDINGS)
        outcome = apply(cluster, [Group([taking_back(ours("a")), Reversible(ours("b"), back), ours()])], conduct())
        assert [problem.what for problem in outcome.problems] == ["refused", "gone wrong"]
        assert [row.action for row in outcome.changes.changes][:2] == [Action.CREATED, Action.CREATED]
        assert "ResourceQuota team/b: going back failed too: gone wrong" in said

    def test_an_earlier_group_stays(self, conduct: Any) -> None:
        cluster = MemoryCluster()
        cluster.fail[str(QUOTA)] = Problem("refused", exit_code=Exit.FINDINGS)
        apply(cluster, [Group([taking_back(ours("a"))]), Group([ours()])], conduct())
        assert cluster.get(Target("ResourceQuota", "a", "team"))

    @pytest.mark.parametrize(("needed", "last"), [(True, Action.UNDONE), (False, Action.CREATED)])
    def test_without_a_needed_group_the_others_are_not_tried(self, conduct: Any, needed: bool, last: Action) -> None:
        cluster = MemoryCluster()
        cluster.fail[str(QUOTA)] = Problem("refused", exit_code=Exit.FINDINGS)
        outcome = apply(cluster, [Group([ours()], needed=needed), Group([ours("a")])], conduct())
        assert [row.action for row in outcome.changes.changes] == [Action.FAILED, last]


class Flaky(MemoryCluster):
    """An API server that is away for a while. lost: the answers that do not arrive, of writes that are made all the
    same; away: requests that do not reach it."""

    def __init__(self, *objects: dict[str, Any], lost: int = 0, away: int = 0) -> None:
        super().__init__(*objects)
        self.lost, self.away = lost, away

    def write(self, change: Change, *, dry_run: bool = False, force: bool = False) -> dict[str, Any]:
        unreachable = Problem("cannot reach the API server")
        unreachable.passing = True
        if self.away:
            self.away -= 1
            raise unreachable
        after = super().write(change, dry_run=dry_run, force=force)
        if self.lost:
            self.lost -= 1
            raise unreachable
        return after


class TestAnApiServerThatGoesAway:
    FOUND: ClassVar = {"kind": "ConfigMap", "metadata": {"name": "c", "namespace": "n"}, "data": {"k": "old"}}
    TARGET: ClassVar = Target("ConfigMap", "c", "n")

    @pytest.mark.parametrize("trouble", [{"lost": 1}, {"away": 3}])
    @pytest.mark.parametrize(
        "change",
        [
            ours(),
            gone(),
            Change(TARGET, How.CREATE, {"metadata": {"name": "c", "namespace": "n"}, "data": {"k": "new"}}),
        ],
        ids=lambda change: change.how.name,
    )
    def test_it_is_waited_for_and_each_change_may_come_twice(
        self, conduct: Any, said: list[str], change: Change, trouble: dict[str, int]
    ) -> None:
        outcome = apply(Flaky(**trouble), [Group([change])], conduct(yes=True, timeout=20))
        assert outcome.exit_code is Exit.FINE
        assert said.count("cannot reach the API server: trying again for 20 s") == 1

    @pytest.mark.parametrize("trouble", [{"lost": 1}, {"away": 3}])
    def test_a_patch_that_tests_what_was_read_too(self, conduct: Any, trouble: dict[str, int]) -> None:
        cluster = Flaky(self.FOUND, **trouble)
        operations = [
            {"op": "test", "path": "/data/k", "value": "old"},
            {"op": "replace", "path": "/data/k", "value": "new"},
        ]
        change = Change(self.TARGET, How.PATCH, operations, self.FOUND)
        assert apply(cluster, [Group([change])], conduct(yes=True, timeout=20)).exit_code is Exit.FINE
        assert cluster.get(self.TARGET)["data"] == {"k": "new"}  # type: ignore[index]

    def test_what_somebody_else_wrote_meanwhile_is_not_taken_for_ours(self, conduct: Any) -> None:
        made = {"metadata": {"name": "c", "namespace": "n"}, "data": {"k": "mine"}}
        cluster = Flaky(self.FOUND, away=1)
        outcome = apply(cluster, [Group([Change(self.TARGET, How.CREATE, made)])], conduct(timeout=20))
        assert "was changed by someone else meanwhile" in outcome.problems[0].what

    def test_one_that_stays_away_is_an_unknown_and_nothing_is_taken_back(self, conduct: Any) -> None:
        cluster = Flaky(away=1000)
        outcome = apply(cluster, [Group([ours("a"), taking_back(ours("b"))])], conduct(timeout=20))
        assert outcome.exit_code is Exit.UNKNOWN
        assert cluster.sent == []


class TestRoutine:
    """Changes of no meaning by themselves: done, and otherwise silent."""

    def test_they_are_told_as_one(self, conduct: Any, said: list[str]) -> None:
        pods = [Change(Target("Pod", f"p-{n}", "n"), How.DELETE, None, {}, routine=True) for n in range(9)]
        cluster = MemoryCluster()
        outcome = apply(cluster, [Group(pods, about="9 pods start anew")], conduct())
        assert len(cluster.sent) == 9
        assert said == ["9 pods start anew"]
        assert outcome.changes.changes == []
        assert history(cluster) == []

    def test_one_that_fails_is_told(self, conduct: Any) -> None:
        cluster = MemoryCluster()
        cluster.fail["Pod n/p"] = Problem("refused", exit_code=Exit.FINDINGS)
        pod = Change(Target("Pod", "p", "n"), How.DELETE, None, {}, routine=True)
        outcome = apply(cluster, [Group([pod])], conduct())
        assert [row.action for row in outcome.changes.changes] == [Action.FAILED]


@pytest.mark.parametrize("how", [How.PATCH, How.MERGE])
def test_a_patch_of_our_own_object_needs_no_question(conduct: Any, how: How) -> None:
    item = {"metadata": {"labels": OURS}}
    assert not takes_away(Change(QUOTA, how, [], item))
    assert takes_away(Change(QUOTA, how, [], {"metadata": {"labels": {}}}))


class TestHistory:
    def test_who_when_what_and_how_back(self, conduct: Any) -> None:
        cluster = MemoryCluster()
        apply(cluster, [Group([ours()])], conduct())
        (line,) = history(cluster)
        assert line["time"].startswith("2027-01-15T08:00:0")
        assert {key: line[key] for key in ("who", "what", "how", "change", "undo")} == {
            "who": "ana",
            "what": "ResourceQuota team/vgpu",
            "how": "server-side apply",
            "change": "n none → 5",
            "undo": "undo it",
        }
        (event,) = [body for target, body in cluster.created if target.kind == "Event"]
        assert event["involvedObject"]["name"] == "vgpu"
        assert event["message"] == "ana by vgpuctl: n none → 5"

    @pytest.mark.parametrize(
        ("line", "left"), [("{}", KEPT), ("x" * 1500, KEPT), ("語" * 1500, ROOM // 4521)], ids=["short", "long", "wide"]
    )
    def test_lines_are_added_and_the_oldest_go(self, conduct: Any, line: str, left: int) -> None:
        """Before there are too many, or more than a ConfigMap holds."""
        old = {f"20200101T000000.{index:06}Z": line for index in range(KEPT)}
        place = {"name": PLACE.name, "namespace": PLACE.namespace}
        cluster = MemoryCluster({"kind": "ConfigMap", "metadata": place, "data": old})
        apply(cluster, [Group([ours(), ours("other")])], conduct())
        data = cluster.get(PLACE)["data"]  # type: ignore[index]
        assert len(data) == pytest.approx(left, abs=2)
        assert sum(len(key) + len(text.encode()) for key, text in data.items()) <= ROOM
        assert min(data) == f"20200101T000000.{KEPT + 2 - len(data):06}Z"
        assert len([key for key in data if key > "2021"]) == 2

    def test_a_record_that_fails_is_a_warning(self, conduct: Any, said: list[str]) -> None:
        cluster = MemoryCluster()
        cluster.fail[str(PLACE)] = Problem("no permission", exit_code=Exit.UNKNOWN)
        cluster.fail["Event team/"] = Problem("no permission", exit_code=Exit.UNKNOWN)
        assert apply(cluster, [Group([ours(), ours("other")])], conduct()).exit_code is Exit.FINE
        assert [line for line in said if "could not be recorded" in line] == [
            "the change is made, but could not be recorded: no permission"
        ]
