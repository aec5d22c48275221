"""An upgrade is refused before anything is looked at where another command, or another vgpuctl, is the one to run."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.quota.memory import MemoryCluster
from vgpuctl.model import kube
from vgpuctl.model.install.options import Options
from vgpuctl.model.install.release import Release, config_map
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.tasks.apply import Conduct
from vgpuctl.tasks.install import record
from vgpuctl.tasks.install.upgrade import Wish, _chosen, upgrade


def refusal(release: Release, **wish: Any) -> Problem:
    cluster = MemoryCluster(config_map(release))
    kept = record.need(cluster)  # type: ignore[arg-type]
    with pytest.raises(Problem) as raised:
        upgrade(cluster, kept, Wish(**{"options": release.options, **wish}), Conduct(lambda _: None))  # type: ignore[arg-type]
    assert cluster.sent == []
    return raised.value


@pytest.mark.parametrize(("phase", "command"), [("installing", "install"), ("uninstalling", "uninstall")])
def test_what_is_half_done_is_finished_first(phase: Any, command: str) -> None:
    problem = refusal(Release(phase=phase))
    assert problem.what == f"an {command} is half done"
    assert problem.remedy == f"finish it with vgpuctl {command}"


def test_an_older_vgpuctl_does_not_take_a_newer_release_down() -> None:
    problem = refusal(Release(phase="installed", version="99.1.0"))
    assert "version 99.1.0 is installed, and this vgpuctl is older" in problem.what


@pytest.mark.parametrize("option", [{"namespace": "gpu-pool"}, {"hook_path": "/var/lib/vgpu"}])
def test_what_running_pods_depend_on_stays(option: dict[str, str]) -> None:
    problem = refusal(Release(phase="installed"), options=Options(**option))  # type: ignore[arg-type]
    assert problem.what.startswith(f"an upgrade cannot change the {next(iter(option)).replace('_', ' ')} (")
    assert problem.exit_code is Exit.FINDINGS


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("gpu-1,gpu-9", "the plugin does not run on gpu-9"),
        ("gpu-8,gpu-9", "the plugin runs on no such node"),
        ("gpu=no", "the plugin runs on no such node"),
        (",", "is not understood"),
        ("gpu-1 gpu-2", "is not understood"),
    ],
)
def test_nodes_that_are_none_are_named(text: str, words: str) -> None:
    nodes = {name: kube.Node(metadata=kube.Metadata(name=name, labels={"gpu": "yes"})) for name in ("gpu-1", "gpu-2")}
    with pytest.raises(Problem, match=words) as raised:
        _chosen(text, nodes)
    assert "write names with commas" in raised.value.remedy
    assert raised.value.exit_code is Exit.USAGE


def test_nothing_is_installed() -> None:
    with pytest.raises(Problem, match="has installed nothing"):
        record.need(MemoryCluster())  # type: ignore[arg-type]
