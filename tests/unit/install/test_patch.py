"""The scheduler's configuration is patched only where nobody would undo it, and only as far as needed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit import pools
from tests.unit.quota.memory import MemoryCluster
from vgpuctl.model import pool
from vgpuctl.model.change import How, Target
from vgpuctl.model.facts import Facts
from vgpuctl.model.install.release import Backup
from vgpuctl.model.problem import Problem
from vgpuctl.tasks.apply import Conduct, Group, apply, change_of
from vgpuctl.tasks.install import scheduler

OFF = pools.SCHEDULER_CONF.replace("VGPUEnable: true", "VGPUEnable: false")
MAP = Target("ConfigMap", "volcano-scheduler-configmap", "volcano-system")
DEPLOYMENT = Target("Deployment", "volcano-scheduler", "volcano-system", "apps/v1")


def facts(text: str) -> Facts:
    return pools.pool(lambda found: found["configmaps"][2]["data"].update({"volcano-scheduler.conf": text}))


def cluster(text: str, **metadata: Any) -> MemoryCluster:
    conf = {"name": MAP.name, "namespace": MAP.namespace, **metadata}
    return MemoryCluster(
        {"kind": "ConfigMap", "metadata": conf, "data": {"volcano-scheduler.conf": text}},
        {"kind": "Deployment", **pools.deployment()},
    )


def patched(found: MemoryCluster, text: str, *, fresh: bool = False, backups: Any = ()) -> scheduler.Patch:
    return scheduler.patch(found, facts(text), backups, 0.0, fresh=fresh)  # type: ignore[arg-type]


def targets(patch: scheduler.Patch) -> list[tuple[Target, How]]:
    return [(change.target, change.how) for step in patch.steps if (change := change_of(step))]


class TestPatch:
    def test_the_text_is_changed_and_the_scheduler_restarted(self) -> None:
        patch = patched(cluster(OFF), OFF)
        assert targets(patch) == [(MAP, How.PATCH), (DEPLOYMENT, How.MERGE)]
        text, mark = patch.backups
        assert (text.before, text.after) == (OFF, pools.SCHEDULER_CONF)
        assert (mark.kind, mark.before) == ("Deployment", None)

    def test_the_checks_see_what_will_be(self) -> None:
        found = pool.scheduler_config(patched(cluster(OFF), OFF).facts)
        assert found and found.text == pools.SCHEDULER_CONF

    def test_what_is_on_stays_and_runs_on(self) -> None:
        assert patched(cluster(pools.SCHEDULER_CONF), pools.SCHEDULER_CONF).steps == []

    def test_a_new_device_configuration_is_read_by_a_restart_only(self) -> None:
        patch = patched(cluster(pools.SCHEDULER_CONF), pools.SCHEDULER_CONF, fresh=True)
        assert targets(patch) == [(DEPLOYMENT, How.MERGE)]

    def test_an_interrupted_run_does_not_forget_the_restart(self) -> None:
        mark = patched(cluster(OFF), OFF).backups[1]
        patch = patched(cluster(pools.SCHEDULER_CONF), pools.SCHEDULER_CONF, backups=[mark])
        assert targets(patch) == [(DEPLOYMENT, How.MERGE)]

    def test_helms_text_is_left_and_its_value_named(self) -> None:
        annotations = {"meta.helm.sh/release-name": "volcano"}
        with pytest.raises(Problem) as raised:
            patched(cluster(OFF, annotations=annotations), OFF)
        assert "Helm release volcano" in raised.value.what
        assert "custom.scheduler_config_override" in raised.value.remedy

    def test_no_volcano(self) -> None:
        bare = pools.pool(lambda found: found.update(configmaps=[], deployments=[]))
        with pytest.raises(Problem, match="no configuration of Volcano's scheduler"):
            scheduler.patch(MemoryCluster(), bare, (), 0.0, fresh=False)  # type: ignore[arg-type]


class TestUndo:
    def undone(self, found: MemoryCluster, backups: list[Backup]) -> tuple[list[Any], list[str]]:
        steps, notes = scheduler.undo(found, facts(OFF), backups)  # type: ignore[arg-type]
        return [change.target for step in steps if (change := change_of(step))], notes

    def test_text_and_mark_go_back(self) -> None:
        found = cluster(OFF)
        patch = patched(found, OFF)
        assert apply(found, [Group(patch.steps)], Conduct(lambda _: None, yes=True)).problems == []
        found.objects_["Deployment", DEPLOYMENT.namespace, DEPLOYMENT.name] = marked()
        assert self.undone(found, patch.backups) == ([MAP, DEPLOYMENT], [])

    def test_what_was_changed_since_stays_and_is_told(self) -> None:
        backups = patched(cluster(OFF), OFF).backups
        steps, notes = self.undone(cluster(pools.SCHEDULER_CONF + "# mine\n"), backups)
        assert steps == []
        assert "was changed since the install: it stays as it is" in notes[0]

    def test_what_is_back_already_is_nothing_to_do(self) -> None:
        backups = patched(cluster(OFF), OFF).backups
        assert self.undone(cluster(OFF), backups) == ([], [])

    def test_the_mark_of_another_command_goes_too(self) -> None:
        found = cluster(OFF)
        found.objects_["Deployment", DEPLOYMENT.namespace, DEPLOYMENT.name] = marked()
        assert self.undone(found, []) == ([DEPLOYMENT], [])


def marked() -> dict[str, Any]:
    item = {"kind": "Deployment", **pools.deployment()}
    item["spec"]["template"]["metadata"]["annotations"] = {scheduler.RESTARTED: "2026-01-01T00:00:00Z"}
    return item
