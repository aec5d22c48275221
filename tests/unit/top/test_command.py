"""The command `top`: its options, its exit codes, its sources."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from vgpuctl.model.selector import selector
from vgpuctl.model.usage.arrange import arrange
from vgpuctl.sources.demo import Demo
from vgpuctl.tasks.top import Wanted, read

ROOT = Path(__file__).parents[3]


def run(*arguments: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "vgpuctl", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=timeout
    )


def test_json_is_one_document_with_its_kind() -> None:
    done = run("top", "--demo", "-o", "json")
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert (document["apiVersion"], document["kind"], document["source"]) == ("vgpuctl.dev/v1", "Usage", "demo pool")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--group", "city"], "node, gpu, pod, namespace, queue"),
        (["--sort", "memory,height"], "--sort height"),
        (["--interval", "0.1"], "0.25 seconds is the shortest"),
        (["--interval", "nan"], "0.25 seconds is the shortest"),
        (["-w"], "add -o json"),
        (["-w", "-o", "csv"], "add -o json"),
        (["-l", "a in b"], "label requirement"),
        (["-o", "junit"], "'csv', 'name'"),
        (["--demo", "--local"], "two sources"),
    ],
)
def test_wrong_use_is_told_with_the_right_one(arguments: list[str], told: str) -> None:
    done = run("top", *(["--demo"] if "--local" not in arguments else []), *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr


@pytest.mark.parametrize(
    ("wanted", "pods"),
    [
        (
            Wanted(namespace="platform"),
            {"notebook-ana", "notebook-wei", "notebook-omar", "notebook-lena", "ci-smoke-0"},
        ),
        (Wanted(selector=selector("app=pose")), {"pose-0", "pose-1"}),
        (
            Wanted(queues=("vision",), nodes=("v100-1",), selector=selector("app!=pose")),
            {"segment-0", "segment-1", "ocr-batch-0"},
        ),
        (Wanted(nodes=("t4-2", "v100-1"), namespace="platform"), {"notebook-lena", "ci-smoke-0"}),
        (Wanted(namespace="nobody"), set()),
    ],
)
def test_filters(wanted: Wanted, pods: set[str]) -> None:
    picture = read((Demo(),), wanted)
    rows = arrange(picture.holdings, wanted=picture.wanted).rows
    assert {row.pod for row in rows if row.level == "vgpu"} == pods


def test_options_reach_the_rows() -> None:
    done = run("top", "--demo", "-n", "vision", "-l", "app=pose", "--group", "pod", "-o", "name")
    assert done.stdout == "vision/pose-0\nvision/pose-1\n"


def test_watching_gives_a_json_document_a_line() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "vgpuctl", "top", "--demo", "-w", "-o", "json", "--interval", "0.25"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        documents = [json.loads(process.stdout.readline()) for _ in range(3)]
        process.terminate()
    assert [document["kind"] for document in documents] == ["Usage"] * 3
    assert documents[0]["at"] < documents[1]["at"] < documents[2]["at"]


def test_without_cluster_and_card_two_lines_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    done = run("top", "--local", "--root", "/nonexistent")
    assert done.returncode == 3
    assert done.stdout == ""
    assert "--demo" in done.stderr


def test_the_answer_is_one_shot_where_no_terminal_is() -> None:
    assert "\x1b" not in run("top", "--demo").stdout
