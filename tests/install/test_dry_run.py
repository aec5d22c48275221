"""A dry run tells all that would be done, and does nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.install import contents
from tests.install.conftest import Ran, Vgpuctl
from tests.install.rig import HERE, Rig
from tests.install.test_interrupted import MOMENT

pytestmark = pytest.mark.cluster
INSTALL = ("install", "--patch-scheduler")
STATES: dict[str, tuple[Callable[[Rig, Callable[..., Ran]], object], tuple[tuple[str, ...], ...]]] = {
    "nothing": (lambda rig, run: None, (INSTALL, (*INSTALL, "-n", "gpu-pool", "--runtime-class", "gpu"))),
    "by hand": (
        lambda rig, run: rig.bench.kubectl("apply", "-f", str(HERE / "by-hand.yaml")),
        ((*INSTALL, "--force-conflicts"),),
    ),
    "installed": (
        lambda rig, run: run(*INSTALL, "--max-unavailable", "100%", "--yes"),
        (
            ("upgrade", "--image", "registry.example.com/plugin:v1.12.1", "--runtime-class", "gpu"),
            ("upgrade", "--nodes", "gpu-1", "--shim", "upstream"),
            ("uninstall",),
            ("uninstall", "--all"),
        ),
    ),
}


def rows(ran: Ran) -> Any:
    return json.loads(MOMENT.sub("<moment>", json.dumps(ran.json["changes"])))


@pytest.mark.parametrize("state", STATES)
def test_client_and_server_tell_the_same_and_change_nothing(rig: Rig, vgpuctl: Vgpuctl, state: str) -> None:
    def run(*arguments: str) -> Ran:
        ran = vgpuctl(*arguments, config=rig.kubeconfig)
        assert ran.code == 0, (arguments, ran.out, ran.err)
        return ran

    make, commands = STATES[state]
    make(rig, run)
    if state != "nothing":
        rig.wait("the plugin runs everywhere", rig.settled)
    before = rig.contents()
    for command in commands:
        told = [rows(run(*command, f"--dry-run={where}", "-o", "json")) for where in ("client", "server")]
        assert told[0] == told[1] and told[0], command
        assert {row["action"] for row in told[0]} <= {"created", "configured", "deleted", "unchanged"}
        assert contents.differences(before, rig.contents()) == [], command
