"""From what is wanted and what lives to steps, and what is kept of others."""

from __future__ import annotations

import copy
from typing import Any

from tests.unit.quota.memory import MemoryCluster
from vgpuctl.model.install.manifests import manifests, target
from vgpuctl.model.install.options import Options
from vgpuctl.model.install.release import Backup
from vgpuctl.tasks.apply import change_of
from vgpuctl.tasks.install.objects import bring_about, merged


def backup(before: Any, path: str = "", after: Any = None) -> Backup:
    return Backup(api_version="v1", kind="ConfigMap", name="a", namespace="b", path=path, before=before, after=after)


def test_of_two_states_of_an_object_the_one_before_us_is_kept() -> None:
    assert merged([backup({"of": "theirs"})], [backup({"of": "ours"})]) == (backup({"of": "theirs"}),)


def test_of_a_text_that_somebody_wrote_after_us_the_newer_is_kept() -> None:
    old, new = backup("a", "/data/x", "A"), backup("b", "/data/x", "B")
    assert merged([old, backup({})], [new]) == (new, backup({}))


def test_what_any_earlier_state_set_is_taken_away() -> None:
    """A release that was being left may have been applied or not, where the one before it was."""
    wanted, labelled = (
        next(item for item in manifests(Options(shim="upstream", **more), {}) if item["kind"] == "PodMonitor")
        for more in ({"monitoring": "PodMonitor"}, {"monitoring": "PodMonitor", "monitoring_labels": {"team": "ops"}})
    )
    live = {target(wanted): copy.deepcopy(labelled)}
    for former, steps in (([wanted], 0), ([labelled], 1), ([wanted, labelled], 1)):
        plan = bring_about(MemoryCluster(), [wanted], live, former=former)  # type: ignore[arg-type]
        assert len(plan.steps) == steps
        for change in filter(None, map(change_of, plan.steps)):
            assert [(line.path, line.before, line.after) for line in change.lines] == [
                ("metadata.labels.team", "ops", None)
            ]
