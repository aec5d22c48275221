"""What the checks find out about pods."""

from __future__ import annotations

import pytest

from tests.unit import pools
from tests.unit.illness import LATE, Case, add, only, own, run, with_env
from tests.unit.pools import first_uuid, pod, vgpu_pod, waiting

CASES = (
    Case(
        "limits",
        "an annotation",
        only("pods", own(pod("p", number=1), vgpu_memory="4096")),
        "fail",
        ("Pod lab/p", "annotation-instead-of-limit"),
    ),
    Case("limits", "cores above 100", add("pods", waiting(number=1, cores=150)), "fail", ("cores-over-100",)),
    Case("limits", "a unit", add("pods", waiting(number=1, memory="4Gi")), "fail", ("unit-suffix",)),
    Case("limits", "memory only", add("pods", waiting(memory=4000)), "fail", ("number-missing",)),
    Case(
        "scheduler-name",
        "the default one",
        add("pods", waiting() | {"spec": waiting()["spec"] | {"schedulerName": "default-scheduler"}}),
        "fail",
        ("scheduler-name",),
    ),
    Case(
        "bypass",
        "the limiter is off",
        add("pods", with_env(vgpu_pod("x"), "CUDA_DISABLE_CONTROL", "false")),
        "warn",
        ("limiter-off",),
    ),
    Case(
        "bypass",
        "a sandbox",
        add("pods", vgpu_pod("x") | {"spec": vgpu_pod("x")["spec"] | {"runtimeClassName": "kata-qemu"}}),
        "warn",
        ("runtimeClassName kata-qemu",),
    ),
    Case(
        "graphics",
        "all",
        add("pods", with_env(vgpu_pod("x"), "NVIDIA_DRIVER_CAPABILITIES", "all")),
        "warn",
        ("compute,utility",),
    ),
    Case(
        "drift",
        "another node",
        add("pods", own(vgpu_pod("x"), vgpu_node="gpu-2")),
        "fail",
        ("nodeName gpu-1, volcano.sh/vgpu-node gpu-2",),
    ),
    Case(
        "drift", "stuck", add("pods", own(vgpu_pod("x"), bind_phase="allocating")), "fail", ("allocating for 3600 s",)
    ),
    Case("drift", "failed", add("pods", own(vgpu_pod("x"), bind_phase="failed")), "fail", ("did not finish",)),
    Case(
        "drift",
        "being bound",
        add("pods", own(vgpu_pod("x"), bind_phase="allocating", bind_time=f"{pools.NOW - 20:.0f}")),
        "pass",
    ),
    Case(
        "drift",
        "left over",
        add("pods", own(vgpu_pod("x"), devices_to_allocate=f"{first_uuid()},NVIDIA,8000,30:")),
        "fail",
        ("never given",),
    ),
    Case(
        "overcommitted-card",
        "memory",
        add("pods", vgpu_pod("a", memory=9000), vgpu_pod("b", memory=9000)),
        "fail",
        ("26000 of 24576 memory units", "lab/a"),
    ),
    Case(
        "overcommitted-card",
        "cores",
        add("pods", vgpu_pod("a", cores=60), vgpu_pod("b", cores=60)),
        "fail",
        ("150 of 100 percent",),
    ),
    Case(
        "overcommitted-card",
        "two containers of one pod",
        only("pods", own(vgpu_pod("a"), vgpu_ids_new=f"{first_uuid()},NVIDIA,13000,0:;{first_uuid()},NVIDIA,13000,0:")),
        "fail",
        ("26000 of 24576",),
    ),
    Case(
        "overcommitted-card",
        "a terminating pod still holds",
        only(
            "pods",
            vgpu_pod("a", memory=20000),
            vgpu_pod("b", memory=20000)
            | {"metadata": vgpu_pod("b", memory=20000)["metadata"] | {"deletionTimestamp": LATE}},
        ),
        "fail",
        ("40000 of 24576",),
    ),
    Case(
        "overcommitted-card",
        "an ended pod does not",
        only("pods", vgpu_pod("a", memory=20000), vgpu_pod("b", memory=20000) | {"status": {"phase": "Succeeded"}}),
        "pass",
    ),
    Case(
        "no-device",
        "no annotation",
        add("pods", pod("x", number=1)),
        "fail",
        ("lab/x", "no annotation volcano.sh/vgpu-ids-new"),
    ),
    Case(
        "no-device",
        "an empty one",
        add("pods", own(pod("x", number=1), vgpu_ids_new="")),
        "fail",
        ("an empty annotation",),
    ),
    Case("no-device", "asks for none", add("pods", pod("x", number=0)), "pass"),
    Case(
        "mig-slice",
        "given twice",
        only("pods", vgpu_pod("a", card="GPU-x[g1-0]"), vgpu_pod("b", card="GPU-x[g1-0]")),
        "fail",
        ("GPU-x[g1-0]: held by lab/a, lab/b",),
    ),
    Case(
        "mig-slice",
        "two slices",
        only("pods", vgpu_pod("a", card="GPU-x[g1-0]"), vgpu_pod("b", card="GPU-x[g1-1]")),
        "pass",
    ),
    Case("gone-device", "gone", add("pods", vgpu_pod("x", card="GPU-dead")), "fail", ("GPU-dead on node gpu-1",)),
    Case("stuck-pending", "for hours", add("pods", waiting()), "warn", ("hami-vgpuDeviceSharing error",)),
    Case("stuck-pending", "a moment", add("pods", waiting(created="2026-05-28T20:26:00Z")), "pass"),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.check}: {case.name}")
def test_what_is_ill_is_found_out(case: Case) -> None:
    run(case)
