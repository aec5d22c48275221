"""`vgpuctl config validate --live` and `generate` against a real API server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.called import called
from tests.unit.config.marks import config_map
from tests.unit.config.test_device_config import GOOD, good
from tests.unit.config.test_scheduler_config import conf

from .access import Access
from .bench import Bench
from .plugin import Kubectl

pytestmark = pytest.mark.cluster

Run = Callable[..., tuple[int, str, str]]
SCHEDULER = config_map("volcano-scheduler-configmap", "volcano-scheduler.conf", conf(), "volcano-system")


@pytest.fixture
def run(bench: Bench, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """run(*arguments, config=None): exit code, stdout, stderr of `vgpuctl config`."""

    def call(*arguments: str, config: Path | None = None) -> tuple[int, str, str]:
        monkeypatch.setenv("KUBECONFIG", str(config or bench.kubeconfig))
        return called(monkeypatch, capfd, "config", *arguments, stdin=b"")

    return call


@pytest.fixture
def apply(kubectl: Kubectl) -> Iterator[Callable[[str], None]]:
    """apply(text) puts objects there; they are removed after the test."""
    applied: list[str] = []

    def put(text: str) -> None:
        kubectl("apply", "-f", "-", stdin=text)
        applied.append(text)

    kubectl("create", "namespace", "volcano-system", check=False)
    yield put
    for text in applied:
        kubectl("delete", "--ignore-not-found", "-f", "-", stdin=text)


def test_what_the_pool_reads_is_validated(run: Run, apply: Callable[[str], None]) -> None:
    apply(config_map("volcano-vgpu-device-config", "device-config.yaml", good(gpuMemoryFactor="gpuMemoryFactor: 0")))
    apply(
        config_map(
            "volcano-vgpu-node-config", "config.json", '{"nodeconfig": [{"name": "x", "operatingmode": "MIG"}]}\n'
        )
    )
    apply(SCHEDULER)
    code, out, _ = run("validate", "--live", "-o", "json")
    found = {(f["file"], f["line"], f["rule"]) for f in json.loads(out)["findings"] if f["severity"] == "error"}
    assert code == 1
    assert found == {
        ("kube-system/volcano-vgpu-device-config:device-config.yaml", 8, "factor-zero"),
        ("kube-system/volcano-vgpu-node-config:config.json", 1, "mode-value"),
    }


def test_a_right_pool_has_no_finding(run: Run, apply: Callable[[str], None]) -> None:
    apply(config_map("volcano-vgpu-device-config", "device-config.yaml", GOOD, "volcano-system"))
    apply(SCHEDULER)
    code, out, _ = run("validate", "--live", "-o", "json")
    assert (code, json.loads(out)["findings"]) == (0, [])


def test_a_missing_device_config_is_an_error(run: Run, apply: Callable[[str], None]) -> None:
    apply(SCHEDULER)
    code, out, _ = run("validate", "--live")
    assert code == 1
    assert "no ConfigMap volcano-vgpu-device-config" in out


def test_what_is_generated_can_be_applied_and_is_right(run: Run, apply: Callable[[str], None]) -> None:
    code, out, _ = run("generate", "--profile", "inference")
    assert code == 0
    apply(out)
    code, out, _ = run("validate", "--live", "-o", "json")
    assert (code, json.loads(out)["findings"]) == (0, [])


def test_without_permission_it_could_not_be_found_out(run: Run, access: Access) -> None:
    code, out, err = run("validate", "--live", config=access.nobody("nobody"))
    assert (code, out) == (3, "")
    assert "configmaps" in err
