"""What the checks find out about Volcano."""

from __future__ import annotations

import pytest

from tests.unit import pools
from tests.unit.illness import LATE, Case, add, each, edit, image, mig, only, own, run, scheduler, touched
from tests.unit.pools import queue, vgpu_pod

CASES = (
    Case(
        "schedule-policy",
        "binds fail in turns",
        add("pods", *(own(vgpu_pod(f"x{n}"), bind_phase="failed") for n in range(3))),
        "warn",
        ("3 pods: lab/x0",),
    ),
    Case("volcano-version", "too old", image("v1.8.2"), "fail", ("1.8.2",)),
    Case(
        "volcano-version",
        "an ignored cap",
        each(image("v1.12.2"), only("queues", queue("q", capability={"volcano.sh/vgpu-memory": "5"}))),
        "fail",
        ("Queue q", "ignores"),
    ),
    Case(
        "volcano-version",
        "renamed resources",
        each(image("v1.15.1"), edit("device-config", "volcano.sh/vgpu-number", "volcano.sh/acme-gpu")),
        "fail",
        ("fixed names",),
    ),
    Case("volcano-version", "no version", image("latest"), "skip", ("tells no version",)),
    Case(
        "scheduler-running",
        "none",
        lambda found: found.update(pods=[p for p in found["pods"] if "scheduler" not in p["metadata"]["name"]]),
        "fail",
        ("no scheduler of Volcano runs",),
    ),
    Case(
        "scheduler-running",
        "crashing",
        scheduler(
            lambda p: p["status"]["containerStatuses"][0].update(
                state={"waiting": {"reason": "CrashLoopBackOff"}}, restartCount=237
            )
        ),
        "fail",
        ("CrashLoopBackOff, 237 restarts",),
    ),
    Case(
        "scheduler-running",
        "restarted",
        scheduler(lambda p: p["status"]["containerStatuses"][0].update(restartCount=12)),
        "warn",
        ("12 restarts",),
    ),
    Case(
        "scheduler-running",
        "a webhook nobody answers",
        lambda found: found.update(pods=[p for p in found["pods"] if "admission" not in p["metadata"]["name"]]),
        "fail",
        ("webhook", "failurePolicy Fail"),
    ),
    Case(
        "scheduler-conf",
        "another key",
        lambda found: found["configmaps"][2].update(data={"scheduler.conf": "x"}),
        "fail",
        ("rename the key to volcano-scheduler.conf",),
    ),
    Case("scheduler-conf", "no such map", lambda found: found["configmaps"].pop(2), "fail", ("does not exist",)),
    Case(
        "scheduler-conf",
        "no argument",
        lambda found: found["deployments"][0]["spec"]["template"]["spec"]["containers"][0].update(args=[]),
        "fail",
        ("no --scheduler-conf",),
    ),
    Case(
        "config-reload",
        "a newer device configuration",
        touched("device-config", LATE),
        "fail",
        ("volcano-scheduler-1", "reads it once", "rollout restart deployment/volcano-scheduler"),
    ),
    Case(
        "config-reload",
        "a newer node configuration",
        touched("node-config", LATE),
        "fail",
        ("volcano-device-plugin-1", "delete pod"),
    ),
    Case("config-reload", "a newer scheduler configuration", touched("scheduler-configmap", LATE), "pass"),
    Case(
        "config-reload",
        "vGPU turned on by a reload",
        each(
            touched("scheduler-configmap", LATE),
            lambda found: found["pods"].__setitem__(0, own(vgpu_pod(), vgpu_ids_new=None)),
        ),
        "fail",
        ("bound without volcano.sh/vgpu-ids-new",),
    ),
    Case(
        "config-reload",
        "another key of the map was changed",
        lambda found: found["configmaps"][0]["metadata"].update(
            managedFields=[{"time": LATE, "fieldsV1": {"f:metadata": {}}}], creationTimestamp=pools.CREATED
        ),
        "pass",
    ),
    Case(
        "deviceshare-enabled",
        "off",
        edit("scheduler-configmap", "VGPUEnable: true", "VGPUEnable: false"),
        "fail",
        ("vgpu-off",),
    ),
    Case("deviceshare-enabled", "a number", edit("scheduler-configmap", "VGPUEnable: true", "VGPUEnable: 1"), "fail"),
    Case(
        "deviceshare-enabled",
        "a quoted word",
        edit("scheduler-configmap", "VGPUEnable: true", 'VGPUEnable: "true"'),
        "pass",
    ),
    Case(
        "deviceshare-enabled",
        "with an older switch",
        edit("scheduler-configmap", "VGPUEnable: true", "VGPUEnable: true\n      deviceshare.GPUSharingEnable: true"),
        "fail",
        ("exclusive-options",),
    ),
    Case(
        "deviceshare-arguments",
        "misspelt",
        edit("scheduler-configmap", "SchedulePolicy", "SchedulPolicy"),
        "fail",
        ("key-misspelt",),
    ),
    Case(
        "deviceshare-arguments",
        "no weight",
        edit("scheduler-configmap", "      deviceshare.ScheduleWeight: 10\n", ""),
        "warn",
        ("policy-without-weight",),
    ),
    Case(
        "predicates-plugin",
        "missing",
        edit("scheduler-configmap", "  - name: predicates\n", ""),
        "fail",
        ("predicates-missing",),
    ),
    Case(
        "geometries-configmap",
        "not there",
        lambda found: found["configmaps"].pop(0),
        "fail",
        ("built-in defaults", "kube-system/volcano-vgpu-device-config"),
    ),
    Case(
        "geometries-configmap",
        "a quoted number",
        edit("device-config", "gpuMemoryFactor: 1", 'gpuMemoryFactor: "1"'),
        "fail",
        ("device-config.yaml:8", "restart the scheduler"),
    ),
    Case(
        "geometries-configmap",
        "a list in a list",
        mig("- name: 1g.6gb"),
        "fail",
        ("cannot use its device configuration",),
    ),
    Case(
        "geometries-configmap",
        "named elsewhere",
        edit(
            "scheduler-configmap",
            "VGPUEnable: true",
            "VGPUEnable: true\n      deviceshare.KnownGeometriesCMNamespace: gpu-pool",
        ),
        "fail",
        ("gpu-pool/volcano-vgpu-device-config",),
    ),
    Case("queue-state", "closed", only("queues", queue("q", "Closed")), "fail", ("Queue q", "closed")),
    Case(
        "queue-state",
        "a guarantee above the pool",
        only(
            "queues",
            queue("a", guarantee={"resource": {"volcano.sh/vgpu-number": "30"}}),
            queue("b", guarantee={"resource": {"volcano.sh/vgpu-number": "20"}}),
        ),
        "fail",
        ("sum to 50: a 30, b 20", "allocatable 40", "queue a to at most 20"),
    ),
    Case(
        "queue-state",
        "a guarantee above its cap",
        only("queues", queue("a", guarantee={"resource": {"cpu": "30"}}, capability={"cpu": 8})),
        "fail",
        ("guarantee is above capability",),
    ),
    Case(
        "queue-state",
        "a guarantee that is dropped",
        only("queues", queue("a", guarantee={"cpu": "30"})),
        "fail",
        ("guarantee is dropped",),
    ),
    Case(
        "queue-state",
        "all of the pool",
        only("queues", queue("a", guarantee={"resource": {"volcano.sh/vgpu-number": "40"}})),
        "pass",
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.check}: {case.name}")
def test_what_is_ill_is_found_out(case: Case) -> None:
    run(case)
