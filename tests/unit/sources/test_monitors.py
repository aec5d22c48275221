"""Monitors behind the API server's proxy: found, asked together, and never waited for."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.sources.server import DRIBBLE, HANG, cluster, reply, serve, status
from vgpuctl.model.facts import Part
from vgpuctl.sources import monitors
from vgpuctl.sources.monitors import Monitored

METRICS = (Path(__file__).parents[2] / "data" / "metrics" / "volcano.prom").read_bytes()
ENDLESS = DRIBBLE + b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n#"
FORBIDDEN = (
    'pods "plugin-1:9394" is forbidden: User "ann" cannot get resource "pods/proxy" in API group "" '
    'in the namespace "kube-system"'
)
Answer = Callable[[str, int], bytes]


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitors, "SECONDS", 0.5)


def pods(count: int, phase: str = "Running") -> dict[str, object]:
    items = [
        {
            "metadata": {"name": f"plugin-{n}", "namespace": "kube-system"},
            "spec": {"nodeName": f"node-{n}"},
            "status": {"phase": phase},
        }
        for n in range(count)
    ]
    return {"kind": "PodList", "metadata": {}, "items": items}


def serving(count: int, answer: Callable[[int], bytes]) -> Answer:
    """A server with that many monitors; `answer` is what the n-th says."""

    def talk(line: str, number: int) -> bytes:
        if "/proxy/metrics" in line:
            assert ":9394/proxy/metrics" in line
            return answer(int(line.split("plugin-")[1].split(":")[0]))
        return reply(pods(count if "volcano-device-plugin" in line else 0))

    return talk


def test_every_monitor_is_asked_through_the_proxy() -> None:
    with serve(serving(3, lambda n: reply(METRICS))) as server:
        reading = Monitored(cluster(server.url)).read(Part.METRICS)
    assert [scrape.node for scrape in reading.need()] == ["node-0", "node-1", "node-2"]
    assert all(scrape.vgpus[0].pod == "p-0" for scrape in reading.need())


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (reply(status(403, "Forbidden", FORBIDDEN), 403), "permission"),
        (reply(status(503, "ServiceUnavailable", "no endpoints"), 503), "503"),
        (reply(b"<html></html>"), "no metric"),
        (HANG, "did not answer"),
        (ENDLESS, "did not answer"),
        (b"", ""),
    ],
    ids=["forbidden", "unavailable", "another page", "silent", "endless", "hung up"],
)
def test_one_that_fails_says_why_and_costs_the_others_nothing(bad: bytes, words: str) -> None:
    with serve(serving(4, lambda n: bad if n == 1 else reply(METRICS))) as server:
        began = time.monotonic()
        scrapes = Monitored(cluster(server.url)).read(Part.METRICS).need()
        took = time.monotonic() - began
    assert [bool(scrape.vgpus) for scrape in scrapes] == [True, False, True, True]
    assert words.lower() in scrapes[1].reason.lower()
    assert scrapes[1].reason
    assert took < 5


def test_one_that_is_late_keeps_its_last_figures_and_their_time() -> None:
    slow = set()
    with serve(serving(2, lambda n: HANG if n in slow else reply(METRICS))) as server:
        source = Monitored(cluster(server.url))
        first = source.read(Part.METRICS).need()
        slow.add(0)
        second = source.read(Part.METRICS).need()
    assert not first[0].late
    assert (second[0].late, second[0].at, second[0].vgpus) == (True, first[0].at, first[0].vgpus)
    assert not second[1].late


def test_a_hundred_silent_monitors_cost_two_rounds() -> None:
    with serve(serving(100, lambda n: HANG)) as server:
        began = time.monotonic()
        reading = Monitored(cluster(server.url)).read(Part.METRICS)
        took = time.monotonic() - began
    assert "none of 100 monitors answers" in reading.reason
    assert took < 10


@pytest.mark.parametrize("found", [pods(0), pods(2, "Pending")], ids=["none", "none that runs"])
def test_without_a_monitor_the_reason_says_what_was_looked_for(found: dict[str, object]) -> None:
    with serve(lambda line, number: reply(found)) as server:
        reading = Monitored(cluster(server.url)).read(Part.METRICS)
    assert "name=volcano-device-plugin" in reading.reason


def test_without_the_right_to_list_pods_the_reason_says_so() -> None:
    refusal = reply(status(403, "Forbidden", "pods is forbidden"), 403)
    with serve(lambda line, number: refusal) as server:
        reading = Monitored(cluster(server.url)).read(Part.METRICS)
    assert "no monitor can be found" in reading.reason


def test_everything_else_is_the_clusters() -> None:
    source = cluster("http://127.0.0.1:9")
    both = Monitored(source)
    assert (both.name, both.scope, both.parts) == (source.name, source.scope, source.parts | {Part.METRICS})
