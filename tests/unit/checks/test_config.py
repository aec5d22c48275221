"""What the checks find out about the configuration and quotas."""

from __future__ import annotations

import pytest

from tests.unit import pools
from tests.unit.illness import Case, add, each, edit, mig, only, run, text
from tests.unit.pools import pod, queue, quota

CASES = (
    Case("device-config", "no factor", edit("device-config", "  gpuMemoryFactor: 1\n", ""), "fail", ("factor-zero",)),
    Case(
        "device-config", "none at all", lambda found: found["configmaps"].pop(0), "fail", ("no device configuration",)
    ),
    Case("node-config", "a comment", text("node-config", '{"nodeconfig": []} // all'), "fail", ("config.json:1",)),
    Case(
        "config-place",
        "two that differ",
        add(
            "configmaps",
            pools.configmap("volcano-vgpu-device-config", "volcano-system", device_config__yaml="nvidia: {}"),
        ),
        "fail",
        ("two device configurations that differ",),
    ),
    Case(
        "config-place",
        "two alike",
        add(
            "configmaps",
            pools.configmap("volcano-vgpu-device-config", "volcano-system", device_config__yaml=pools.DEVICE_CONFIG),
        ),
        "warn",
        ("alike for now",),
    ),
    Case(
        "config-place",
        "where the scheduler does not look",
        lambda found: found["configmaps"][0]["metadata"].update(namespace="volcano-system"),
        "fail",
        ("there is none",),
    ),
    Case(
        "config-drift",
        "another split",
        edit("device-config", "deviceSplitCount: 10", "deviceSplitCount: 8"),
        "warn",
        ("Node gpu-2", "registered with 10"),
    ),
    Case("mig-table", "too much memory", mig("{name: 1g.6gb, memory: 6144, count: 4}"), "warn", ("memory: 5888",)),
    Case("mig-table", "too many", mig("{name: 1g.6gb, memory: 5888, count: 5}"), "warn", ("count: 4",)),
    Case("mig-table", "right", mig("{name: 1g.6gb, memory: 5888, count: 4}"), "pass"),
    Case(
        "quota-prefix",
        "no prefix",
        only("quotas", quota({"volcano.sh/vgpu-number": "5"})),
        "fail",
        ("ResourceQuota lab/vgpu", "requests.volcano.sh/vgpu-number"),
    ),
    Case("quota-prefix", "limits.", only("quotas", quota({"limits.volcano.sh/vgpu-memory": "5"})), "fail"),
    Case("quota-prefix", "other resources", only("quotas", quota({"requests.cpu": "5"})), "skip", ("no quota names",)),
    Case(
        "quota-multi",
        "several vGPUs",
        each(
            only("quotas", quota({"requests.volcano.sh/vgpu-memory": "50000"})),
            add("pods", pod("two", number=2, memory=1000)),
        ),
        "warn",
        ("lab/two",),
    ),
    Case(
        "quota-over",
        "a quota",
        only("quotas", quota({"requests.volcano.sh/vgpu-number": "5"}, {"requests.volcano.sh/vgpu-number": "7"})),
        "warn",
        ("used 7, hard 5",),
    ),
    Case(
        "quota-over",
        "a queue",
        only(
            "queues",
            queue("q", capability={"volcano.sh/vgpu-number": 5})
            | {"status": {"allocated": {"volcano.sh/vgpu-number": "6"}}},
        ),
        "warn",
        ("allocated 6, capability 5",),
    ),
    Case(
        "quota-units",
        "a size in Gi",
        each(
            edit("device-config", "gpuMemoryFactor: 1", "gpuMemoryFactor: 10"),
            only("quotas", quota({"requests.volcano.sh/vgpu-memory": "999999"})),
        ),
        "warn",
    ),
    Case(
        "quota-orphan",
        "nobody's",
        each(
            only(
                "quotas",
                quota({"requests.volcano.sh/vgpu-number": "5"}) | {"metadata": {"name": "q", "namespace": "empty"}},
            )
        ),
        "pass",
        ("no label vgpuctl.dev/team",),
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.check}: {case.name}")
def test_what_is_ill_is_found_out(case: Case) -> None:
    run(case)
