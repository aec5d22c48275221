"""Results that say the same of many things are told once."""

from __future__ import annotations

from vgpuctl.model.doctor import CheckResult, Evidence, Status
from vgpuctl.render.views.alike import grouped


def result(subject: str, summary: str = "not ready", check: str = "nodes", status: Status = Status.WARN) -> CheckResult:
    evidence = (Evidence(subject, "Ready=False"),)
    return CheckResult(
        check=check, area="cluster", title="", status=status, summary=summary, subject=subject, evidence=evidence
    )


def test_many_nodes_with_one_finding_are_one_line() -> None:
    one, other = grouped([*(result(f"Node n{number}") for number in range(5000)), result("Node x", "cordoned")])
    assert one.subject == "5000 nodes (n0, n1, n2 and 4997 more)"
    assert [item.source for item in one.evidence] == ["Node n0", "Node n1", "Node n2"]
    assert (other.subject, other.summary) == ("Node x", "cordoned")


def test_what_differs_in_status_check_or_words_stays_apart() -> None:
    results = [
        result("Node a"),
        result("Node b", status=Status.FAIL),
        result("Node b", check="api"),
        result("Node b", "x"),
    ]
    assert grouped(results) == results


def test_things_of_several_kinds_are_places_and_one_subject_keeps_its_name() -> None:
    assert grouped([result("Node a"), result("Pod lab/p")])[0].subject == "2 places (a, lab/p)"
    assert grouped([result("Node a"), result("Node a")])[0].subject == "Node a"
    assert grouped([]) == []
