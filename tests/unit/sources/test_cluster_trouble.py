"""A cluster that does not answer as it should: one clear line, within the time limit."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.unit.sources.server import DRIBBLE, HANG, cluster, page, reply, serve, status
from vgpuctl.model.change import Change, How, Target
from vgpuctl.model.facts import Part
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.sources.cluster import Cluster
from vgpuctl.sources.cluster.kubeconfig import Access
from vgpuctl.tasks.load import load

HTML = b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\nContent-Type: text/html\r\n\r\n<html></html>"
HALF = b'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"items": ['


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (HANG, "did not answer within 1 s"),
        (b"", "the connection broke"),
        (HTML, "something that is not a Kubernetes list"),
        (b"this is no HTTP at all\r\n\r\n", "the connection broke"),
        (HALF + b"Connection: close", "the connection broke"),
        (reply(b"\xff\xfe\x00garbage"), "something that is not a Kubernetes list"),
        (reply(b""), "something that is not a Kubernetes list"),
        (reply([1, 2, 3]), "something that is not a Kubernetes list"),
        (reply({"items": "none"}), "something that is not a Kubernetes list"),
        (reply(b'{"items":' + b"[" * 100_000), "something that is not a Kubernetes list"),
        (reply(b"[" * 100_000, 500), "500 Whatever; that is not a Kubernetes answer"),
        (reply(page([], "again")), "its pages go round in a circle"),
        (reply(b"<html>gone</html>", 502), "502 Whatever; that is not a Kubernetes answer"),
        (reply(b"", 302, "Location: http://127.0.0.1:9/"), "302 Whatever; that is not a Kubernetes answer"),
        (reply(status(500, "InternalError", "etcd is on fire"), 500), "(500); etcd is on fire"),
        (reply(status(401, "Unauthorized", "Unauthorized"), 401), "does not accept the credentials"),
        (reply(status(404, "NotFound", "the server could not find it"), 404), "could not find it"),
    ],
)
def test_a_rude_answer_is_a_missing_reading_with_its_reason(answer: bytes, words: str) -> None:
    with serve(lambda line, number: answer) as server:
        began = time.monotonic()
        reading = cluster(server.url).read(Part.PODS)
        assert reading.value is None and not reading.denied
        assert words in reading.reason
        assert "\n" not in reading.reason
        assert time.monotonic() - began < 2.5


def test_a_server_that_dribbles_is_given_up_at_the_deadline() -> None:
    endless = DRIBBLE + HALF.replace(b"1000", b"100000")
    with serve(lambda line, number: endless) as server:
        began = time.monotonic()
        reading = cluster(server.url).read(Part.NODES)
        assert "within 1 s" in reading.reason
        assert time.monotonic() - began < 2.5


@pytest.mark.parametrize("part", [Part.CONFIGMAPS, Part.WEBHOOKS, Part.PODS, Part.VERSION, Part.ACCESS, Part.LOGS])
def test_no_part_waits_more_than_once_for_a_server_that_stalls(part: Part) -> None:
    endless = DRIBBLE + HALF.replace(b"1000", b"100000")
    with serve(lambda line, number: endless) as server:
        began = time.monotonic()
        assert "within 1 s" in cluster(server.url).read(part).reason
        assert time.monotonic() - began < 2.5


def test_ctrl_c_does_not_wait_for_a_server_that_hangs(tmp_path: Path) -> None:
    with serve(lambda line, number: HANG) as server:
        place = {"name": "x", "cluster": {"server": server.url}}
        content = {
            "current-context": "x",
            "clusters": [place],
            "contexts": [{"name": "x", "context": {"cluster": "x"}}],
        }
        (tmp_path / "config").write_text(json.dumps(content))
        program = [str(Path(sys.executable).with_name("vgpuctl")), "quota", "list", "--kubeconfig", "config"]
        running = subprocess.Popen(program, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        end = time.monotonic() + 30
        while not server.requests and time.monotonic() < end:
            time.sleep(0.05)
        began = time.monotonic()
        running.send_signal(signal.SIGINT)
        assert running.communicate(timeout=30) == ("", "")
        assert running.returncode == 130
        assert time.monotonic() - began < 3


def test_many_parts_wait_once_for_a_server_that_hangs() -> None:
    with serve(lambda line, number: HANG) as server:
        source = cluster(server.url)
        began = time.monotonic()
        facts = load([source], source.parts)
        assert time.monotonic() - began < 2.5
        assert all("did not answer" in facts.part(part).reason for part in source.parts)


def test_a_closed_port_is_told_at_once() -> None:
    with serve(lambda line, number: b"") as server:
        url = server.url
    began = time.monotonic()
    reading = cluster(url.replace(url.rpartition(":")[2], "1")).read(Part.PODS)
    assert "connection refused" in reading.reason and "is the API server running" in reading.reason
    assert time.monotonic() - began < 1


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("https://no-such-host.invalid:6443", "host name 'no-such-host.invalid' is unknown"),
        ("https://[::bad", "not a URL"),
        ("ftp://127.0.0.1", "not a URL"),
    ],
)
def test_a_wrong_address_says_what_is_wrong_with_it(url: str, words: str) -> None:
    assert words in cluster(url).read(Part.PODS).reason


@pytest.mark.parametrize("secret", ["top\nsecret", "top\x00secret", "top-\u6f22-secret"])
def test_a_secret_that_no_header_can_carry_is_told_and_not_shown(secret: str) -> None:
    with serve(lambda line, number: reply({"items": []})) as server:
        for more in ({"user": {"token": secret}}, {"headers": (("Impersonate-User", secret),)}):
            access = Access(name="context test", server=server.url, **more)  # type: ignore[arg-type]
            reason = Cluster(access, timeout=1.0).read(Part.PODS).reason
            assert "header of context test cannot be sent" in reason
            assert "secret" not in reason


def test_socks_without_its_library_is_one_line(
    recwarn: pytest.WarningsRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "socks", None)
    access = Access(name="context test", server="https://127.0.0.1:1", proxy="socks5://127.0.0.1:1")
    assert "the proxy socks5://127.0.0.1:1 needs SOCKS" in Cluster(access, timeout=1.0).read(Part.PODS).reason
    assert not list(recwarn)


def test_https_to_a_server_without_tls_says_so() -> None:
    with serve(lambda line, number: b"HTTP/1.1 400 Bad Request\r\n\r\n") as server:
        reason = cluster(server.url.replace("http:", "https:")).read(Part.PODS).reason
        assert "TLS" in reason or "the connection broke" in reason


def test_a_handshake_that_breaks_off_is_tried_once_more() -> None:
    alert = b"\x15\x03\x03\x00\x02\x02\x32"  # fatal, decode_error
    accepted = 0
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(5)

        def answer() -> None:
            nonlocal accepted
            for _ in range(2):
                connection, _ = server.accept()
                accepted += 1
                with connection:
                    connection.recv(4096)
                    connection.sendall(alert)

        thread = threading.Thread(target=answer)
        thread.start()
        reading = cluster(f"https://127.0.0.1:{server.getsockname()[1]}").read(Part.PODS)
        thread.join()
    assert accepted == 2
    assert "TLS failed" in reading.reason


def test_a_refused_right_is_named_and_marked() -> None:
    body = status(403, "Forbidden", 'pods is forbidden: User "bob" cannot list resource "pods"')
    with serve(lambda line, number: reply(body, 403)) as server:
        reading = cluster(server.url).read(Part.PODS)
        assert reading.denied
        assert reading.reason == (
            "no permission to list pods in the whole cluster (-n NAMESPACE asks for one namespace)"
        )
        narrow = cluster(server.url, namespace="lab").read(Part.PODS)
        assert narrow.reason == "no permission to list pods in namespace lab"


def test_a_custom_resource_that_is_not_installed_is_absent() -> None:
    with serve(lambda line, number: reply(status(404, "NotFound", "the server could not find it"), 404)) as server:
        reading = cluster(server.url).read(Part.QUEUES)
        assert reading.absent and "Volcano is not installed" in reading.reason


def test_a_busy_server_is_asked_again_after_the_time_that_it_names() -> None:
    busy = reply(status(429, "TooManyRequests", "slow down"), 429, "Retry-After: 1")
    with serve(lambda line, number: busy if number == 1 else reply(page(["a"]))) as server:
        began = time.monotonic()
        assert cluster(server.url, timeout=5).read(Part.PODS).known
        assert time.monotonic() - began >= 1


def test_a_busy_server_is_not_waited_for_beyond_the_limit() -> None:
    busy = reply(status(429, "TooManyRequests", "slow down"), 429, "Retry-After: 30")
    with serve(lambda line, number: busy) as server:
        began = time.monotonic()
        reading = cluster(server.url).read(Part.PODS)
        assert "too busy" in reading.reason
        assert time.monotonic() - began < 1


def test_pages_are_put_together() -> None:
    def pages(line: str, number: int) -> bytes:
        return reply(page(["c"]) if "continue=token" in line else page(["a", "b"], "token"))

    with serve(pages) as server:
        reading = cluster(server.url).read(Part.PODS)
        assert [pod.metadata.name for pod in reading.need()] == ["a", "b", "c"]
        assert all("limit=" in line for line in server.lines())


def test_a_list_that_expires_between_pages_is_read_anew_and_whole() -> None:
    def pages(line: str, number: int) -> bytes:
        if "continue=token" in line:
            return reply(status(410, "Expired", "too old"), 410)
        return reply(page(["a"], "token") if "limit=" in line else page(["a", "b"]))

    with serve(pages) as server:
        names = [pod.metadata.name for pod in cluster(server.url).read(Part.PODS).need()]
        assert names == ["a", "b"]


def test_a_body_that_broke_off_is_read_once_more() -> None:
    with serve(lambda line, number: HALF + b"Connection: close" if number == 1 else reply(page(["a"]))) as server:
        assert cluster(server.url).read(Part.PODS).known


def test_a_broken_object_keeps_its_name_and_is_told() -> None:
    odd: dict[str, Any] = page(["good", "bad", "nulls"])
    odd["items"][1]["spec"] = {"containers": "none"}
    odd["items"][2] |= {"spec": None, "status": {"phase": None, "containerStatuses": [None]}}
    with serve(lambda line, number: reply(odd)) as server:
        reading = cluster(server.url).read(Part.PODS)
        assert [pod.metadata.name for pod in reading.need()] == ["good", "bad", "nulls"]
        assert reading.note.startswith("1 could not be decoded, such as lab/bad: ")


def test_a_write_is_never_sent_twice() -> None:
    change = Change(Target("ResourceQuota", "vgpu", "lab"), How.APPLY, {"metadata": {"name": "vgpu"}})
    with serve(lambda line, number: b"") as server:
        with pytest.raises(Problem) as caught:
            cluster(server.url).write(change)
        assert caught.value.exit_code is Exit.UNKNOWN
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("code", "body", "exit_code", "words"),
    [
        (403, status(403, "Forbidden", 'User "bob" cannot patch resource'), Exit.UNKNOWN, "no permission"),
        (401, status(401, "Unauthorized", "Unauthorized"), Exit.UNKNOWN, "credentials"),
        (403, status(403, "Forbidden", "exceeded quota: vgpu, requested: 9"), Exit.FINDINGS, "refused by a quota"),
        (403, status(403, "Forbidden", "violates PodSecurity"), Exit.FINDINGS, "refused by admission"),
        (400, status(400, "BadRequest", 'webhook "v" denied the request'), Exit.FINDINGS, "denied the request"),
        (422, status(422, "Invalid", "spec.hard: Invalid value"), Exit.FINDINGS, "is invalid"),
        (500, status(500, "", "failed to create typed patch object: no"), Exit.FINDINGS, "is invalid"),
        (503, status(503, "ServiceUnavailable", "etcd is away"), Exit.UNKNOWN, "failed to answer"),
        (
            409,
            status(409, "Conflict", "Apply failed", details={"causes": [
                {"reason": "FieldManagerConflict", "message": 'conflict with "helm"', "field": ".spec.hard"}]}),
            Exit.FINDINGS,
            "conflicts with what helm manages",
        ),
    ],
)  # fmt: skip
def test_a_refused_write_says_why_and_ends_with_the_right_code(
    code: int, body: dict[str, Any], exit_code: Exit, words: str
) -> None:
    change = Change(Target("ResourceQuota", "vgpu", "lab"), How.APPLY, {"metadata": {"name": "vgpu"}})
    with serve(lambda line, number: reply(body, code)) as server, pytest.raises(Problem) as caught:
        cluster(server.url).write(change)
    assert caught.value.exit_code is exit_code
    assert words in " ".join(caught.value.lines())
    assert len(caught.value.lines()) <= 3


def test_names_in_paths_are_escaped() -> None:
    with serve(lambda line, number: reply({"metadata": {}})) as server:
        cluster(server.url).get(Target("ConfigMap", "../../secrets/x?y", "a/b"))
        assert server.lines()[0].startswith("GET /api/v1/namespaces/a%2Fb/configmaps/..%2F..%2Fsecrets%2Fx%3Fy ")
