"""What goes wrong around an installation: a clear line, the right exit code, and nothing half done without a word."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.access import Access
from tests.cluster.client import MERGE
from tests.cluster.pool import load, read
from tests.install import contents, webhook
from tests.install.conftest import Ran, Vgpuctl
from tests.install.proxy import Proxy
from tests.install.rig import DAEMONSET, HERE, Rig
from tests.install.test_interrupted import HISTORY

pytestmark = pytest.mark.cluster
INSTALL = ("install", "--patch-scheduler", "--yes")
COMMAND = (sys.executable, "-m", "vgpuctl", *INSTALL)
QUICK = ("--timeout", "6s")
Fault = Callable[[Rig], AbstractContextManager[None]]
KUBE_SYSTEM = "/api/v1/namespaces/kube-system"


@pytest.fixture
def run(rig: Rig, vgpuctl: Vgpuctl) -> Callable[..., Ran]:
    """vgpuctl against the rig; what it says is kept on one line, so that no assertion depends on where it breaks."""

    def go(*arguments: str, config: Path | None = None) -> Ran:
        ran = vgpuctl(*arguments, config=config or rig.kubeconfig)
        assert "Traceback" not in ran.err
        return Ran(ran.code, ran.out, " ".join(ran.err.split()))

    return go


def untouched(rig: Rig, before: contents.Contents | None = None) -> bool:
    return contents.differences(before or rig.start, rig.contents()) == []


@contextmanager
def changed(rig: Rig, path: str, body: dict[str, Any]) -> Iterator[None]:
    """An object of the cluster with something else in it."""
    rig.client.request("PATCH", path, body, content_type=MERGE)
    yield


def security(level: str) -> dict[str, Any]:
    return {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": level}}}


@contextmanager
def pod_quota(rig: Rig, pods: str) -> Iterator[None]:
    """The namespace of the plugin may hold so many pods."""
    path = f"{KUBE_SYSTEM}/resourcequotas/platform"
    rig.client.post(path.rpartition("/")[0], {"metadata": {"name": "platform"}, "spec": {"hard": {"pods": pods}}})
    rig.wait("it counts", lambda: bool(rig.client.get(path).get("status", {}).get("used")))
    yield


@contextmanager
def in_the_way(rig: Rig, node: str, path: str, file: bool = False) -> Iterator[None]:
    """Something lies on a node's disk where it must not."""
    place = rig.kubelet.host(node) / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("") if file else place.mkdir()
    yield
    place.unlink() if file else place.rmdir()


OWNERS = {
    "kubectl": ({}, "kubectl", "--force-conflicts"),
    "Helm": (
        {
            "labels": {"app.kubernetes.io/managed-by": "Helm"},
            "annotations": {"meta.helm.sh/release-name": "gpu", "meta.helm.sh/release-namespace": "infra"},
        },
        "Helm release gpu in infra",
        "take it out there",
    ),
    "Argo CD": (
        {"annotations": {"argocd.argoproj.io/tracking-id": "pool:apps/DaemonSet:kube-system/volcano-device-plugin"}},
        "pool",
        "take it out there",
    ),
}


class TestOwners:
    """The plugin is there already, and somebody else's."""

    @pytest.mark.parametrize("owner", OWNERS)
    def test_what_others_own_is_left_and_they_are_named(self, rig: Rig, run: Callable[..., Ran], owner: str) -> None:
        metadata, name, remedy = OWNERS[owner]
        rig.bench.kubectl("apply", "-f", str(HERE / "by-hand.yaml"))
        rig.client.request("PATCH", DAEMONSET, {"metadata": metadata}, content_type=MERGE)
        rig.wait("it runs", rig.settled)
        before = rig.contents()
        ran = run(*INSTALL)
        assert ran.code == 1
        assert "DaemonSet kube-system/volcano-device-plugin" in ran.err
        assert name in ran.err and remedy in ran.err
        assert untouched(rig, before)

    def test_what_was_made_by_hand_is_taken_over_and_comes_back(self, rig: Rig, run: Callable[..., Ran]) -> None:
        rig.bench.kubectl("apply", "-f", str(HERE / "by-hand.yaml"))
        rig.wait("it runs", rig.settled)
        before = rig.contents()
        ran = run(*INSTALL, "--force-conflicts")
        assert ran.code == 0, ran.err
        assert run("doctor").code == 0
        assert run("uninstall", "--yes").code == 0
        rig.wait("the former plugin runs again", rig.settled)
        assert contents.differences(before, rig.contents(), HISTORY) == []


class TestRights:
    def test_a_reader_is_told_what_he_may_not_do(self, rig: Rig, run: Callable[..., Ran]) -> None:
        ran = run(*INSTALL, config=Access(rig.bench).read_only("reader"))
        before = rig.contents()
        assert ran.code == 3
        assert "nothing was changed" in ran.err and "daemonsets" in ran.err and "clusterroles" in ran.err
        assert untouched(rig, before) and not [
            line for line in contents.differences(rig.start, before) if "apps" in line
        ]

    def test_a_reader_may_look(self, rig: Rig, run: Callable[..., Ran]) -> None:
        reader = Access(rig.bench).read_only("reader")
        assert run(*INSTALL, "--dry-run", "client", config=reader).code == 0

    def test_somebody_without_rights_finds_nothing_out(self, rig: Rig, run: Callable[..., Ran]) -> None:
        ran = run(*INSTALL, config=Access(rig.bench).nobody("nobody"))
        assert ran.code == 3 and "permission" in ran.err


class TestAdmission:
    """The API server, or what it asks, refuses."""

    REFUSALS: dict[str, tuple[Fault, str]] = {
        "webhook on the DaemonSet": (
            lambda rig: webhook.refusing(rig.bench, "apps", "daemonsets", "kube-system", "no changes on Fridays"),
            "no changes on Fridays",
        ),
        "webhook on its pods": (
            lambda rig: webhook.refusing(rig.bench, "", "pods", "kube-system", "only signed images"),
            "only signed images",
        ),
        "webhook on the scheduler's text": (
            lambda rig: webhook.refusing(rig.bench, "", "configmaps", "volcano-system", "ask the platform team"),
            "ask the platform team",
        ),
        "quota of pods": (
            lambda rig: pod_quota(rig, "0"),
            "exceeded quota: platform",
        ),
        "Pod Security": (
            lambda rig: changed(rig, KUBE_SYSTEM, security("restricted")),
            "pod-security.kubernetes.io/enforce=privileged",
        ),
    }

    @pytest.mark.parametrize("refusal", REFUSALS)
    def test_nothing_is_left_half_done(self, rig: Rig, run: Callable[..., Ran], refusal: str) -> None:
        there, said = self.REFUSALS[refusal]
        with there(rig):
            before = rig.contents()
            ran = run(*INSTALL, *QUICK)
            assert ran.code == 1, ran.err
            assert said in ran.err
            assert contents.differences(before, rig.contents(), HISTORY) == []

    def test_a_webhook_that_does_not_answer_is_told_and_running_again_finishes(
        self, rig: Rig, run: Callable[..., Ran]
    ) -> None:
        with webhook.refusing(rig.bench, "apps", "daemonsets", "kube-system", ""):
            ran = run(*INSTALL, "--timeout", "3s")
        assert ran.code == 3
        assert 'failed calling webhook "refuses.example.com"' in ran.err and "run the command again" in ran.err
        assert run(*INSTALL, "--no-wait").code == 0

    def test_a_quota_that_is_full_later_is_told_while_waiting(self, rig: Rig, run: Callable[..., Ran]) -> None:
        with pod_quota(rig, "2"):
            ran = run(*INSTALL, *QUICK)
        assert ran.code == 4
        assert "exceeded quota: platform" in ran.err


class TestPodsThatDoNotComeUp:
    def test_each_reason_is_told_and_running_again_finishes(self, rig: Rig, run: Callable[..., Ran]) -> None:
        with (
            rig.trouble("gpu-1", "ImagePullBackOff", "Back-off pulling image: not found"),
            rig.trouble("gpu-2", "CrashLoopBackOff", "panic: integer divide by zero"),
            in_the_way(rig, "gpu-3", "usr/local/vgpu/libvgpu.so/kept"),
        ):
            ran = run(*INSTALL, *QUICK)
        assert ran.code == 4, ran.err
        for words in (
            ("gpu-1", "ImagePullBackOff", "not found"),
            ("gpu-2", "CrashLoopBackOff", "integer divide by zero"),
            ("gpu-3", "CrashLoopBackOff", "/usr/local/vgpu/libvgpu.so is a directory"),
        ):
            assert [word for word in words if word not in ran.err] == []
        assert run(*INSTALL).code == 0

    def test_a_volume_that_cannot_be_mounted_is_a_reason(self, rig: Rig, run: Callable[..., Ran]) -> None:
        with in_the_way(rig, "gpu-3", "usr/local/vgpu", file=True):
            ran = run(*INSTALL, *QUICK)
        assert ran.code == 4
        assert "gpu-3" in ran.err and "/usr/local/vgpu is not a directory" in ran.err


class TestTogether:
    def test_of_two_at_once_one_is_refused_and_the_other_finishes(self, rig: Rig, tmp_path: Path) -> None:
        """The second comes when the first has made its third write."""
        second: list[subprocess.CompletedProcess[str]] = []
        environment = {**os.environ, "KUBECONFIG": str(rig.kubeconfig)}

        def command(environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
            return subprocess.run(COMMAND, capture_output=True, text=True, env=environment, check=False, timeout=60)

        def after(number: int) -> None:
            if number == 3:
                second.append(command(environment))

        with Proxy(rig.bench, after) as proxy:
            first = command({**environment, "KUBECONFIG": str(proxy.kubeconfig(tmp_path / "config"))})
        assert first.returncode == 0, first.stderr
        assert second[0].returncode == 1
        assert "is still at it" in second[0].stderr and "nothing was changed here" in second[0].stderr
        rig.wait("the plugin runs everywhere", rig.settled)

    def test_an_api_server_that_restarts_is_waited_for(self, rig: Rig, tmp_path: Path) -> None:
        """It goes away when the command has made its fifth write."""
        five = threading.Event()
        with Proxy(rig.bench, lambda number: five.set() if number == 5 else None) as proxy:
            environment = {**os.environ, "KUBECONFIG": str(proxy.kubeconfig(tmp_path / "config"))}
            with subprocess.Popen(COMMAND, stderr=subprocess.PIPE, text=True, env=environment) as process:
                assert five.wait(30)
                rig.bench.restart()
                _, told = process.communicate(timeout=60)
        assert process.returncode == 0, told
        rig.wait("the plugin runs everywhere", rig.settled)


def test_the_pool_of_another_is_used_as_it_is(rig: Rig, run: Callable[..., Ran]) -> None:
    """A device configuration that is there already stays, to the byte."""
    config = [item for item in read(HERE / "by-hand.yaml") if item["kind"] == "ConfigMap"]
    load(rig.bench, config)
    path = f"{KUBE_SYSTEM}/configmaps/volcano-vgpu-device-config"
    before = rig.contents()[path]
    ran = run(*INSTALL)
    assert ran.code == 0 and "is used as it is" in ran.err
    assert rig.contents()[path] == before
    assert rig.offered("gpu-1") == 8 * 4
