"""Changes are shown, asked about, sent, waited for and recorded in one way."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.quota.memory import MemoryCluster
from vgpuctl.model.change import Change, How, Line, Target
from vgpuctl.model.changes import Action
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.tasks.apply import Conduct, Group, Wait, apply
from vgpuctl.tasks.history import KEPT, PLACE

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

    def test_lines_are_added_and_the_oldest_go(self, conduct: Any) -> None:
        old = {f"20200101T000000.{index:06}Z": "{}" for index in range(KEPT)}
        place = {"name": PLACE.name, "namespace": PLACE.namespace}
        cluster = MemoryCluster({"kind": "ConfigMap", "metadata": place, "data": old})
        apply(cluster, [Group([ours(), ours("other")])], conduct())
        data = cluster.get(PLACE)["data"]  # type: ignore[index]
        assert len(data) == KEPT
        assert min(data) == "20200101T000000.000002Z"

    def test_a_record_that_fails_is_a_warning(self, conduct: Any, said: list[str]) -> None:
        cluster = MemoryCluster()
        cluster.fail[str(PLACE)] = Problem("no permission", exit_code=Exit.UNKNOWN)
        cluster.fail["Event team/"] = Problem("no permission", exit_code=Exit.UNKNOWN)
        assert apply(cluster, [Group([ours(), ours("other")])], conduct()).exit_code is Exit.FINE
        assert [line for line in said if "could not be recorded" in line] == [
            "the change is made, but could not be recorded: no permission"
        ]
