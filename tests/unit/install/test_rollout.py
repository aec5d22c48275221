"""What is waited for, and what is said of that which does not come."""

from __future__ import annotations

from typing import Any

from tests.unit.quota.memory import MemoryCluster
from vgpuctl.model.change import Target
from vgpuctl.tasks.install import rollout

SCHEDULER = Target("Deployment", "volcano-scheduler", "volcano-system", "apps/v1")
DEPLOYMENT: dict[str, Any] = {
    "kind": "Deployment",
    "metadata": {"name": SCHEDULER.name, "namespace": SCHEDULER.namespace, "generation": 2},
    "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "volcano-scheduler"}}},
    "status": {"observedGeneration": 2, "replicas": 2, "updatedReplicas": 1, "availableReplicas": 1},
}
POD: dict[str, Any] = {
    "kind": "Pod",
    "metadata": {"name": "volcano-scheduler-1", "namespace": SCHEDULER.namespace},
    "spec": {"nodeName": "cpu-1"},
    "status": {
        "containerStatuses": [
            {
                "name": "volcano-scheduler",
                "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "fatal: conf"}},
            }
        ]
    },
}


def test_a_scheduler_that_does_not_come_up_is_told_with_its_reason() -> None:
    wait = rollout.deployment(MemoryCluster(DEPLOYMENT, POD), SCHEDULER, "the scheduler to run again")  # type: ignore[arg-type]
    assert not wait.done()
    assert wait.why() == "cpu-1: volcano-scheduler: CrashLoopBackOff: fatal: conf"


def test_one_that_is_gone_is_not_waited_for() -> None:
    wait = rollout.deployment(MemoryCluster(), SCHEDULER, "the scheduler to run again")  # type: ignore[arg-type]
    assert wait.done() and wait.why() == ""
