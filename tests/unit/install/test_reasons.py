"""Why a pod does not come up, from what the kubelet and the controllers say."""

from __future__ import annotations

from typing import Any

import pytest

from vgpuctl.model.install.reasons import Reason, events, is_ready, reason, told

READY = {"type": "Ready", "status": "True"}


def pod(node: str = "gpu-1", init: Any = None, main: Any = None, **status: Any) -> dict[str, Any]:
    statuses = {
        key: [{"name": name, **state}]
        for key, name, state in (("initContainerStatuses", "place", init), ("containerStatuses", "plugin", main))
        if state
    }
    return {"metadata": {"name": "p"}, "spec": {"nodeName": node}, "status": {"phase": "Pending", **statuses, **status}}


def waiting(why: str, message: str = "", last: Any = None) -> dict[str, Any]:
    state = {"state": {"waiting": {"reason": why, "message": message}}}
    return {**state, "lastState": {"terminated": last}} if last else state


def ended(code: int, message: str = "") -> dict[str, Any]:
    return {"exitCode": code, "reason": "Error" if code else "Completed", "message": message}


@pytest.mark.parametrize(
    ("found", "text", "hopeless"),
    [
        (
            pod(init=waiting("ImagePullBackOff", 'Back-off pulling image "x"')),
            'place: ImagePullBackOff: Back-off pulling image "x"',
            True,
        ),
        (
            # what the script said last is worth more than that it is tried again
            pod(init=waiting("CrashLoopBackOff", "back-off 10s", ended(1, "cannot write in /usr/local/vgpu\n"))),
            "place: CrashLoopBackOff: exit code 1: cannot write in /usr/local/vgpu",
            True,
        ),
        (pod(init={"state": {"terminated": ended(1, "no library")}}), "place: exit code 1: no library", True),
        (
            pod(init={"state": {"terminated": ended(0)}}, main=waiting("CrashLoopBackOff", "back-off", ended(2))),
            "plugin: CrashLoopBackOff: back-off",
            True,
        ),
        (pod(main={"state": {"terminated": ended(0)}}), "plugin: exit code 0: Completed", True),
        (
            pod(phase="Failed", reason="UnexpectedAdmissionError", message="no devices"),
            "UnexpectedAdmissionError: no devices",
            True,
        ),
        (
            pod(conditions=[{"type": "PodScheduled", "status": "False", "message": "0/4 nodes are available"}]),
            "not scheduled: 0/4 nodes are available",
            False,
        ),
    ],
)
def test_it_is_told(found: dict[str, Any], text: str, hopeless: bool) -> None:
    assert reason(found) == Reason("gpu-1", text, hopeless)


@pytest.mark.parametrize(
    "found",
    [
        pod(conditions=[READY]),
        pod(init=waiting("PodInitializing")),
        pod(init={"state": {"terminated": ended(0)}}, main=waiting("ContainerCreating")),
        pod(main={"state": {"running": {}}}),
        {**pod(init=waiting("ErrImagePull")), "metadata": {"name": "p", "deletionTimestamp": "now"}},
        {"metadata": {"name": "p"}},
    ],
)
def test_what_is_on_its_way_has_none(found: dict[str, Any]) -> None:
    assert reason(found) is None


def test_a_pod_that_ends_is_not_ready() -> None:
    found = pod(conditions=[READY])
    assert is_ready(found)
    found["metadata"]["deletionTimestamp"] = "now"
    assert not is_ready(found)


def test_a_pod_that_is_not_bound_names_the_node_that_it_is_for() -> None:
    found = pod(node="", conditions=[{"type": "PodScheduled", "status": "False", "message": "taint"}])
    field = {"key": "metadata.name", "operator": "In", "values": ["gpu-7"]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    found["spec"]["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    assert str(reason(found)) == "gpu-7: not scheduled: taint"


def test_the_same_reason_is_told_once() -> None:
    same = [Reason(f"gpu-{number}", "no image") for number in range(5)]
    others = [Reason("a", "1"), Reason("b", "2"), Reason("c", "3")]
    assert told([*same, *others]) == "gpu-0, gpu-1, gpu-2 and 2 more nodes: no image; a: 1; b: 2; and 1 more"
    assert told([]) == ""


def test_events_come_newest_first_and_once() -> None:
    found = [
        {"reason": "FailedMount", "message": "old", "lastTimestamp": "2026-01-01T00:00:00Z"},
        {"reason": "FailedMount", "message": "new", "lastTimestamp": "2026-01-02T00:00:00Z"},
        {"reason": "FailedMount", "message": "old", "eventTime": "2026-01-01T10:00:00Z"},
    ]
    assert list(events(found)) == ["FailedMount: new", "FailedMount: old"]
