"""A command that is killed at any of its writes and run again comes to the same end as one that nothing happened to.

The process is killed when the API server has made the write and before it hears of it. Here that is done at a tenth of
the writes, the first and the last among them; the soak takes every one.
"""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.install import contents
from tests.install.contents import Contents
from tests.install.proxy import Proxy
from tests.install.rig import HERE, NODES, Rig

pytestmark = pytest.mark.cluster

Words = tuple[str, ...]
INSTALL = ("install", "--patch-scheduler", "--max-unavailable", "100%", "--no-wait", "--yes")
UPGRADE = ("upgrade", "--image", "registry.example.com/volcano-vgpu-device-plugin:v1.12.1", "--yes")
UNINSTALL = ("uninstall", "--yes")
CYCLE = (INSTALL, UPGRADE, UNINSTALL)
TAKING_OVER = ((*INSTALL, "--force-conflicts"), UNINSTALL)
SOAK = bool(os.environ.get("VGPUCTL_SOAK"))
HISTORY = "/configmaps/vgpuctl-history$"
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


@dataclass(frozen=True)
class Ended:
    """How a process ended. writes: how many it made."""

    code: int
    output: str
    writes: int


@dataclass(frozen=True)
class End:
    """What a command brings about: in the cluster and on the nodes' disks."""

    contents: Contents
    files: dict[str, list[str]]


def run(rig: Rig, folder: Path, arguments: Words, kill_at: int = 0, by: signal.Signals = signal.SIGKILL) -> Ended:
    """Runs a command as a process, and sends it a signal at a write (0: never)."""
    log = folder / "output"

    def after(number: int) -> None:
        if number == kill_at:
            process.send_signal(by)
            if by == signal.SIGKILL:
                process.wait()

    with Proxy(rig.bench, after) as proxy, log.open("w") as output:
        environment = {**os.environ, "KUBECONFIG": str(proxy.kubeconfig(folder / "kubeconfig"))}
        command = [sys.executable, "-m", "vgpuctl", *arguments]
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=environment
        )
        code = process.wait(120)
        return Ended(code, log.read_text(), len(proxy.writes))


def whole(rig: Rig, folder: Path, arguments: Words) -> Ended:
    """Runs a command to its end, which must be a good one."""
    ended = run(rig, folder, arguments)
    assert ended.code == 0, ended.output
    return ended


def end(rig: Rig) -> End:
    """What there is once the controllers did their part."""
    if rig.installed():
        rig.wait("the plugin runs everywhere", rig.settled)
    rig.wait("Volcano runs", rig.volcano_runs)
    found = {path: _timeless(item) for path, item in rig.contents().items() if not re.search(HISTORY, path)}
    return End(found, {node: rig.kubelet.files(node) for node in NODES})


def _timeless(item: Any) -> Any:
    return json.loads(MOMENT.sub("<moment>", json.dumps(item)))


def chosen(writes: int, step: int) -> list[int]:
    """The writes at which to kill, one of `step`: evenly spread, the first and the last among them."""
    count = writes if SOAK else max(2, math.ceil(writes / step))
    return [1 + round(number * (writes - 1) / (count - 1)) for number in range(count)]


def check(rig: Rig, wanted: End, what: str) -> None:
    found = end(rig)
    told = contents.differences(wanted.contents, found.contents)
    assert (told, found.files) == ([], wanted.files), what


@pytest.mark.soak
@pytest.mark.parametrize(("there", "cycle", "step"), [("nothing", CYCLE, 10), ("somebody's plugin", TAKING_OVER, 20)])
def test_the_same_end_wherever_it_is_killed(
    rig: Rig, tmp_path: Path, there: str, cycle: tuple[Words, ...], step: int
) -> None:
    if there != "nothing":
        rig.bench.kubectl("apply", "-f", str(HERE / "by-hand.yaml"))
        rig.wait("it runs", rig.settled)
    start = end(rig)
    writes, ends = {}, {}
    for arguments in cycle:
        writes[arguments] = whole(rig, tmp_path, arguments).writes
        ends[arguments] = end(rig)
    check(rig, start, "uninstall")
    moments = {arguments: chosen(writes[arguments], step) for arguments in cycle}
    for number in range(max(map(len, moments.values()))):
        for arguments in cycle:
            moment = next(iter(moments[arguments][number:]), 0)
            what = f"{arguments[0]} killed at write {moment} of {writes[arguments]}"
            if moment:
                killed = run(rig, tmp_path, arguments, kill_at=moment)
                assert killed.code == -signal.SIGKILL, killed.output
            if moment or arguments != UPGRADE:  # what is removed later need not be upgraded first
                ran = run(rig, tmp_path, arguments)
                assert ran.code == 0, f"{what}: {ran.output}"
                check(rig, ends[arguments], what)


def test_an_interrupted_one_says_how_to_go_on(rig: Rig, tmp_path: Path) -> None:
    ended = run(rig, tmp_path, INSTALL, kill_at=4, by=signal.SIGINT)
    assert ended.code == 130
    assert "run the command again to finish" in ended.output
    assert "Traceback" not in ended.output
    whole(rig, tmp_path, INSTALL)
    rig.wait("the plugin runs everywhere", rig.settled)
