"""What an administrator sees of an install, an upgrade and an uninstall: stderr as it comes, then stdout."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.cluster.access import Access
from tests.install.conftest import Ran, Vgpuctl
from tests.install.rig import HERE, Rig
from vgpuctl.tasks.install import rollout

pytestmark = pytest.mark.cluster
IMAGE = "registry.example.com/volcano-vgpu-device-plugin:v1.12.1"
_VARIES = (
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "<moment>"),
    (r"\b[0-9a-f]{64}\b", "<sha256>"),
    (r"(vgpuctl-shim-[a-z0-9-]+?)-[0-9a-f]{10}\b", r"\1-0123456789"),
    (r"(\bPod kube-system/volcano-device-plugin)-[a-z0-9]{5}\b", r"\1-<id>"),
    # how far it is when it is looked at depends on the machine
    (r"the plugin: \d of \d nodes ready\n", ""),
    (r"waiting: .*\n", ""),
)
Seen = Callable[..., None]


@pytest.fixture
def seen(rig: Rig, vgpuctl: Vgpuctl, golden: Callable[[str, str], None]) -> Seen:
    """seen(name, *arguments): runs it and compares what is seen with a golden file."""

    def look(name: str, *arguments: str, code: int = 0) -> None:
        ran: Ran = vgpuctl(*arguments, config=rig.kubeconfig)
        assert ran.code == code, ran.err
        text = f"$ vgpuctl {' '.join(arguments)}\n{ran.err}{ran.out}"
        for pattern, instead in _VARIES:
            text = re.sub(pattern, instead, text)
        golden(f"install/seen/{name}.txt", text)

    return look


def test_a_life(rig: Rig, seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollout, "PATIENCE", 1.0)
    seen("preflight", "install", code=1)
    seen("preview", "install", "--patch-scheduler", "--dry-run=client")
    seen("question", "install", "--patch-scheduler", code=2)
    seen("install", "install", "--patch-scheduler", "--max-unavailable", "100%", "--yes")
    seen("again", "install", "--patch-scheduler")
    seen("other-options", "install", "--shim", "upstream", "--node-selector", "a=b", code=1)
    seen("canary", "upgrade", "--image", IMAGE, "--nodes", "gpu-1")
    with rig.trouble("gpu-2", "CrashLoopBackOff", "panic: integer divide by zero", image=IMAGE):
        seen("stage-that-fails", "upgrade", "--max-unavailable", "1", code=1)
    seen("half-done", "install", "--patch-scheduler", code=1)
    seen("rollback", "upgrade", "--rollback")
    seen("uninstall", "uninstall", "--yes")
    seen("nothing", "uninstall")


def test_what_others_made(rig: Rig, seen: Seen) -> None:
    rig.bench.kubectl("apply", "-f", str(HERE / "by-hand.yaml"))
    seen("conflict", "install", "--patch-scheduler", code=1)
    seen("takeover", "install", "--patch-scheduler", "--force-conflicts", "--dry-run=client")


def test_without_rights(rig: Rig, vgpuctl: Vgpuctl, golden: Callable[[str, str], None]) -> None:
    ran = vgpuctl("install", "--patch-scheduler", "--yes", config=Access(rig.bench).read_only("seen"))
    assert ran.code == 3
    golden("install/seen/no-rights.txt", ran.err[ran.err.index("error: ") :])
