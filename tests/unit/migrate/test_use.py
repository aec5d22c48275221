"""What a new factor changes in a cluster: which objects are told, how they are named, how caps are brought over."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vgpuctl.model import kube
from vgpuctl.model.migrate.accept import accepted, offered, with_accepted
from vgpuctl.model.migrate.use import MARK, Use, convert, short, uses
from vgpuctl.model.resource import ResourceNames

NAMES = ResourceNames()
MEMORY = NAMES.memory


def limits(units: object) -> dict[str, Any]:
    return {"resources": {"limits": {MEMORY: str(units), NAMES.number: "1"}}, "name": "main"}


def template(units: object = 100) -> dict[str, Any]:
    return {"spec": {"containers": [limits(units)]}}


def workload(kind: str, name: str, spec: dict[str, Any], owner: str = "", **more: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "namespace": "a", "uid": name}
    if owner:
        metadata["ownerReferences"] = [{"uid": owner, "kind": "X", "name": owner}]
    return {"kind": kind, "metadata": metadata, "spec": spec, **more}


def running(name: str, owner: str = "", units: object = 100, phase: str = "Running") -> kube.Pod:
    metadata: dict[str, Any] = {"name": name, "namespace": "a", "uid": name}
    if owner:
        metadata["ownerReferences"] = [{"uid": owner, "kind": "X", "name": owner}]
    return msgspec.convert({"metadata": metadata, **template(units), "status": {"phase": phase}}, kube.Pod)


COMPLETE = {"conditions": [{"type": "Complete", "status": "True"}]}
ENDED = {"state": {"phase": "Completed"}}


def told(objects: list[dict[str, Any]], pods: list[kube.Pod] = []) -> list[tuple[str, int, int, int]]:  # noqa: B006
    """Name, MiB before and after, pods."""
    return [(use.title, use.mib_before, use.mib_after, use.pods) for use in uses(objects, pods, NAMES, 10, 16)]


class TestWhatIsTold:
    def test_a_pod_counts_with_the_object_that_it_comes_from_at_last(self) -> None:
        objects = [
            workload("Deployment", "serve", {"template": template()}),
            workload("ReplicaSet", "serve-1", {"template": template()}, owner="serve"),
            workload("CronJob", "nightly", {"jobTemplate": {"spec": {"template": template()}}}),
            workload("Job", "nightly-1", {"template": template()}, owner="nightly"),
        ]
        pods = [running("p1", "serve-1"), running("p2", "serve-1"), running("p3", "nightly-1")]
        assert told(objects, pods) == [("CronJob/a/nightly", 1000, 1600, 1), ("Deployment/a/serve", 1000, 1600, 2)]

    def test_a_pod_of_an_unknown_operator_is_told_itself(self) -> None:
        assert told([], [running("p", "a-pytorchjob")]) == [("Pod/a/p", 1000, 1600, 1)]

    @pytest.mark.parametrize(
        ("objects", "pods"),
        [
            ([workload("Deployment", "whole", {"template": template(0)})], []),
            ([workload("Job", "done", {"template": template()}, status=COMPLETE)], []),
            ([workload("Job", "done", {"tasks": [{"template": template()}]}, status=ENDED)], []),
            ([workload("ResourceQuota", "q", {"hard": {f"requests.{NAMES.number}": "5"}})], []),
            ([workload("ResourceQuota", "q", {"hard": {}}, status={"hard": {f"requests.{MEMORY}": "5"}})], []),
            ([workload("ResourceQuota", "q", {"hard": {MEMORY: "5"}})], []),
            ([], [running("ended", phase="Succeeded")]),
            ([], [running("whole card", units=0)]),
        ],
        ids=["whole card", "ended job", "ended Volcano job", "count", "status", "uncounted", "ended", "whole"],
    )  # fmt: skip
    def test_what_means_the_same_is_not_told(self, objects: list[dict[str, Any]], pods: list[kube.Pod]) -> None:
        assert told(objects, pods) == []

    def test_requests_that_repeat_the_limits_are_told_once(self) -> None:
        container = limits(100)
        container["resources"]["requests"] = container["resources"]["limits"]
        objects = [workload("Deployment", "serve", {"template": {"spec": {"containers": [container]}}})]
        assert told(objects) == [("Deployment/a/serve", 1000, 1600, 0)]

    def test_each_container_and_each_cap_is_told(self) -> None:
        two = {"template": {"spec": {"containers": [limits(1), limits(2)]}}}
        queue = {
            "kind": "Queue",
            "metadata": {"name": "q"},
            "spec": {"capability": {MEMORY: "3"}, "guarantee": {"resource": {MEMORY: 4}}},
        }
        found = uses([workload("StatefulSet", "s", two), queue], [], NAMES, 10, 16)
        assert [(use.title, short(use.place), use.units) for use in found] == [
            ("Queue/q", f'spec.capability["{MEMORY}"]', 3),
            ("Queue/q", f'spec.guarantee.resource["{MEMORY}"]', 4),
            ("StatefulSet/a/s", "containers[0]", 1),
            ("StatefulSet/a/s", "containers[1]", 2),
        ]


class TestNaming:
    USES = uses(
        [
            workload("Deployment", "serve", {"template": template()}),
            workload("Deployment", "other", {"template": template()}),
            {"kind": "Queue", "metadata": {"name": "q"}, "spec": {"capability": {MEMORY: "3"}}},
        ],
        [],
        NAMES,
        10,
        16,
    )

    @pytest.mark.parametrize(
        ("text", "names"),
        [
            ("Deployment/a/serve", {"serve"}),
            ("deployment/a/s*", {"serve"}),
            ("*/a/*", {"serve", "other"}),
            ("Queue/q", {"q"}),
            ("Queue/*", {"q"}),
            ("*/b/*", set()),
            ("Job/a/*", set()),
        ],
    )
    def test_patterns_cover(self, text: str, names: set[str]) -> None:
        assert {use.name for use in with_accepted(self.USES, [accepted(text)]) if use.accepted} == names

    @pytest.mark.parametrize("text", ["", "serve", "*/*/*", "a/b/c/d", "Deployment/*/x", "*/q", "//", "Deployment//x/"])
    def test_what_names_nothing_or_too_much_is_refused(self, text: str) -> None:
        with pytest.raises(ValueError, match=r"is not KIND|names too much"):
            accepted(text)

    def test_what_is_offered_covers_everything(self) -> None:
        patterns = offered(self.USES)
        assert patterns == ["Queue/q", "*/a/*"]
        assert all(use.accepted for use in with_accepted(self.USES, map(accepted, patterns)))


def quota(units: dict[str, object], **metadata: Any) -> dict[str, Any]:
    return {"kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "a", **metadata}, "spec": {"hard": units}}


def carried_out(item: dict[str, Any], operations: list[dict[str, Any]]) -> dict[str, Any]:
    """The object after a JSON patch, as RFC 6902 has it."""
    item = json.loads(json.dumps(item))
    for one in operations:
        *path, last = (step.replace("~1", "/").replace("~0", "~") for step in one["path"].split("/")[1:])
        place = item
        for step in path:
            place = place[step]
        if one["op"] == "test":
            assert place.get(last) == one["value"]
        else:
            place[last] = one["value"]
    return item


class TestCaps:
    def test_the_mib_stay_and_the_object_is_marked(self) -> None:
        item = quota({f"requests.{MEMORY}": "1001", "pods": "5"})
        change = convert(item, "v1", NAMES, 10, 16)
        assert change is not None
        after = carried_out(item, change.after)
        assert after["spec"]["hard"] == {f"requests.{MEMORY}": "626", "pods": "5"}
        assert after["metadata"]["annotations"] == {MARK: "16: 626"}
        assert convert(after, "v1", NAMES, 10, 16) is None
        assert uses([after], [], NAMES, 10, 16) == []
        assert change.lines[0].note == "9.8 GiB, 6 MiB more than before"

    def test_a_limit_range_is_a_cap_too(self) -> None:
        limit = {"type": "Container", "max": {MEMORY: "1000", "cpu": "4"}, "default": {MEMORY: "10"}}
        item = {"kind": "LimitRange", "metadata": {"name": "l", "namespace": "a"}, "spec": {"limits": [limit]}}
        assert [use.units for use in uses([item], [], NAMES, 10, 16)] == [10, 1000]
        change = convert(item, "v1", NAMES, 10, 16)
        assert change is not None
        paths = [one["path"] for one in change.after if one["op"] == "replace"]
        assert paths == [f"/spec/limits/0/{part}/volcano.sh~1vgpu-memory" for part in ("max", "default")]

    def test_a_mark_counts_only_for_the_amounts_that_it_names(self) -> None:
        item = quota({f"requests.{MEMORY}": "700"}, annotations={MARK: "16: 626"})
        assert convert(item, "v1", NAMES, 10, 16) is not None
        assert len(uses([item], [], NAMES, 10, 16)) == 1

    def test_undo_is_exact(self) -> None:
        item = quota({f"requests.{MEMORY}": "1k", MEMORY: "7"}, annotations={"x": "y"})
        change = convert(item, "v1", NAMES, 10, 16)
        assert change is not None
        words = subprocess.run(
            ["bash", "-c", f"printf '%s\\n' {change.undo}"], capture_output=True, text=True, check=True
        )
        assert words.stdout.split("\n")[:6] == ["kubectl", "patch", "resourcequota", "q", "-n", "a"]
        back = carried_out(carried_out(item, change.after), json.loads(words.stdout.strip().split("\n")[-1]))
        assert back["spec"] == item["spec"]

    @pytest.mark.parametrize("units", [{}, {"pods": "5"}, {f"requests.{MEMORY}": "0"}])
    def test_nothing_to_do_is_no_change(self, units: dict[str, object]) -> None:
        assert convert(quota(units), "v1", NAMES, 10, 16) is None

    @given(st.integers(1, 1 << 40), st.integers(1, 4096), st.integers(1, 4096))
    def test_no_cap_becomes_smaller_nor_larger_by_a_unit(self, units: int, old: int, new: int) -> None:
        change = convert(quota({f"requests.{MEMORY}": str(units)}), "v1", NAMES, old, new)
        assert change is not None
        after = int(carried_out(change.before, change.after)["spec"]["hard"][f"requests.{MEMORY}"])
        assert 0 <= after * new - units * old < new


def test_a_use_is_named_as_it_is_accepted() -> None:
    use = Use(object_kind="Job", namespace="a", name="x", place="p", units=1, mib_before=1, mib_after=2)
    assert accepted(use.title).covers(use)
