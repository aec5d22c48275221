"""What the checks find out about the cluster and the device plugin."""

from __future__ import annotations

import pytest

from tests.unit import pools
from tests.unit.illness import Case, add, annotate, daemonset, each, filtered, image, nodes, offer, only, run, text
from tests.unit.pools import first_uuid, register, waiting

CASES = (
    Case(
        "filter-devices",
        "no such node",
        text("node-config", '{"nodeconfig": [{"name": "gpu-9", "filterdevices": {"index": [0]}}]}'),
        "fail",
        ("no node has this name", "gpu-1, gpu-2"),
    ),
    Case(
        "nodes",
        "not ready",
        nodes(lambda n: n["status"]["conditions"][0].update(status="False", reason="KubeletNotReady")),
        "warn",
        ("Node gpu-1", "KubeletNotReady"),
    ),
    Case("nodes", "cordoned", nodes(lambda n: n["spec"].update(unschedulable=True)), "warn", ("cordoned",)),
    Case(
        "nodes",
        "disk pressure",
        nodes(lambda n: n["spec"].update(taints=[{"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"}])),
        "warn",
        ("disk-pressure",),
    ),
    Case(
        "nodes",
        "a taint of the pool",
        nodes(lambda n: n["spec"].update(taints=[{"key": "nvidia.com/gpu", "effect": "NoSchedule"}])),
        "pass",
    ),
    Case(
        "api",
        "an old kubelet",
        nodes(lambda n: n["status"]["nodeInfo"].update(kubeletVersion="v1.27.1")),
        "warn",
        ("more than 3 minor versions",),
    ),
    Case(
        "api",
        "a kubelet that is too new",
        nodes(lambda n: n["status"]["nodeInfo"].update(kubeletVersion="v1.33.0+k3s1")),
        "warn",
        ("newer than",),
    ),
    Case(
        "api",
        "a kubelet of an unknown kind",
        nodes(lambda n: n["status"]["nodeInfo"].update(kubeletVersion="fake")),
        "pass",
    ),
    Case(
        "renamed-resource",
        "a shared name",
        each(
            nodes(lambda n: n["status"]["allocatable"].update({"nvidia.com/gpu": "0", "nvidia.com/gpu.shared": "8"})),
            add(
                "pods",
                {
                    "metadata": {"name": "w", "namespace": "lab"},
                    "spec": {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]},
                    "status": {"phase": "Pending"},
                },
            ),
        ),
        "fail",
        ("lab/w", "asks nvidia.com/gpu", "nvidia.com/gpu.shared is offered"),
    ),
    Case(
        "renamed-resource",
        "another domain",
        add(
            "pods",
            {
                "metadata": {"name": "w", "namespace": "lab"},
                "spec": {"containers": [{"name": "c", "resources": {"limits": {"acme.com/vgpu-number": "1"}}}]},
                "status": {"phase": "Pending"},
            },
        ),
        "fail",
        ("volcano.sh/vgpu-number is offered",),
    ),
    Case("renamed-resource", "offered, but not enough", add("pods", waiting(number=900)), "pass"),
    Case(
        "renamed-resource",
        "a resource of somebody else",
        add(
            "pods",
            {
                "metadata": {"name": "w"},
                "spec": {"containers": [{"name": "c", "resources": {"limits": {"amd.com/gpu": "1"}}}]},
                "status": {"phase": "Pending"},
            },
        ),
        "pass",
    ),
    Case("plugin-rollout", "none", only("daemonsets"), "fail", ("no DaemonSet",)),
    Case("plugin-rollout", "a pod is not ready", daemonset(numberReady=1), "fail", ("1 of 2 pods are ready",)),
    Case(
        "plugin-rollout", "on no node", daemonset(desiredNumberScheduled=0, numberReady=0), "fail", ("runs on no node",)
    ),
    Case(
        "plugin-rollout",
        "restarts",
        lambda found: found["pods"][-1]["status"]["containerStatuses"][0].update(restartCount=7),
        "warn",
        ("Node gpu-2", "7 restarts"),
    ),
    Case("plugin-coverage", "a node without the plugin", lambda found: found["pods"].pop(), "fail", ("Node gpu-2",)),
    Case("plugin-coverage", "no card", annotate(register=None), "fail", ("no card is registered",)),
    Case(
        "memory-entries",
        "too many",
        annotate(register=register("a", "b", memory=40000)),
        "fail",
        ("80000 entries", "gpuMemoryFactor: 2 or more"),
    ),
    Case("memory-entries", "just enough", annotate(register=register("a", "b", memory=30000)), "pass"),
    Case("memory-entries", "absurd", annotate(register=register("a", memory=10**18)), "fail", ("gpuMemoryFactor",)),
    Case(
        "allocatable",
        "none offered",
        offer(number="0", memory="0", cores="0"),
        "fail",
        ("offers no volcano.sh/vgpu-number",),
    ),
    Case("allocatable", "no memory", offer(memory=None), "fail", ("volcano.sh/vgpu-memory absent",)),
    Case("allocatable", "stale", offer(number="16"), "fail", ("another amount of volcano.sh/vgpu-number",)),
    Case(
        "allocatable",
        "an unhealthy card less",
        each(
            annotate(register=register("a") + register("b", healthy=False)),
            offer(number="10", memory="24576", cores="100"),
        ),
        "pass",
    ),
    Case("register-annotation", "missing", annotate(register=None), "fail", ("no register annotation",)),
    Case("register-annotation", "broken", annotate(register="GPU-1,10:"), "fail", ("cannot read", "2 fields")),
    Case("register-annotation", "a card twice", annotate(register=register("a", "a")), "fail", ("registered twice",)),
    Case("register-annotation", "no memory", annotate(register=register("a", memory=0)), "fail", ("no memory",)),
    Case("register-annotation", "no handshake", annotate(handshake=None), "fail", ("no handshake", "absent")),
    Case(
        "register-annotation",
        "a handshake unanswered",
        annotate(handshake="Requesting_2026.05.28 08:00:00"),
        "fail",
        ("Requesting_",),
    ),
    Case(
        "register-annotation",
        "a Volcano that wants no handshake",
        each(annotate(handshake=None), image("v1.15.1")),
        "pass",
    ),
    Case(
        "unhealthy-cards",
        "one",
        annotate(register=register("a") + register("b", healthy=False)),
        "fail",
        ("1 of 2 cards: b",),
    ),
    Case(
        "unhealthy-cards",
        "on a cordoned node",
        each(annotate(register=register("a", healthy=False)), nodes(lambda n: n["spec"].update(unschedulable=True))),
        "pass",
    ),
    Case("node-lock", "no time", annotate(lock="yes"), "fail", ("not a time", "ever be bound")),
    Case("node-lock", "left behind", annotate(lock="2026-05-28T08:00:00Z"), "warn", ("left behind",)),
    Case("node-lock", "in the future", annotate(lock="2036-05-28T08:00:00Z"), "fail", ("in the future",)),
    Case("node-lock", "held now", annotate(lock="2026-05-28T20:26:00Z"), "pass"),
    Case(
        "rival-plugin",
        "NVIDIA's plugin",
        add("pods", pools.system_pod("p", "x", "nvcr.io/nvidia/k8s-device-plugin:v0.17.0", "gpu-1")),
        "fail",
        ("NVIDIA's device plugin", "Node gpu-1"),
    ),
    Case(
        "rival-plugin",
        "its resource",
        nodes(lambda n: n["status"]["capacity"].update({"nvidia.com/gpu": "2"})),
        "fail",
        ("also offers nvidia.com/gpu",),
    ),
    Case(
        "rival-plugin",
        "left behind",
        nodes(lambda n: n["status"]["capacity"].update({"nvidia.com/gpu": "0"})),
        "warn",
        ("left behind",),
    ),
    Case(
        "rival-plugin",
        "on another node",
        add("pods", pools.system_pod("p", "x", "nvcr.io/nvidia/k8s-device-plugin:v0.17.0", "other")),
        "pass",
    ),
    Case(
        "filter-devices",
        "a misspelt key",
        filtered("filterDevice", {"index": [0]}),
        "fail",
        ("no effect", "filterDevice"),
    ),
    Case(
        "filter-devices", "indexes as texts", filtered("filterdevices", {"index": ["0"]}), "fail", ('{"index": [0]}',)
    ),
    Case(
        "filter-devices",
        "still registered",
        filtered("filterdevices", {"uuid": [first_uuid()]}),
        "fail",
        ("still registered",),
    ),
    Case(
        "filter-devices",
        "all are still registered",
        each(
            filtered("filterDevices", {"index": [1]}),
            nodes(lambda n: n["metadata"].update(labels={"nvidia.com/gpu.count": "2"})),
        ),
        "fail",
        ("all are still registered",),
    ),
    Case("filter-devices", "filtered", filtered("filterDevices", {"uuid": ["GPU-gone"]}), "pass"),
    Case("filter-devices", "no card", filtered("filterdevices", {"index": [-1]}), "fail", ("whole file",)),
    Case(
        "socket-directory",
        "elsewhere",
        lambda found: found["daemonsets"][0]["spec"]["template"]["spec"]["volumes"][1]["hostPath"].update(
            path="/var/lib/rancher/k3s/agent/kubelet/device-plugins/"
        ),
        "fail",
        ("kubelet.sock lies in /var/lib/kubelet",),
    ),
    Case(
        "socket-directory",
        "not mounted",
        lambda found: found["daemonsets"][0]["spec"]["template"]["spec"]["containers"][0].update(volumeMounts=[]),
        "fail",
        ("no volume is mounted",),
    ),
    Case(
        "monitor-path",
        "upstream's manifest",
        lambda found: found["daemonsets"][0]["spec"]["template"]["spec"]["containers"][1].update(
            env=[{"name": "HOOK_PATH", "value": "/tmp/vgpu"}]
        ),
        "warn",
        ("HOOK_PATH=/usr/local/vgpu/vgpu",),
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.check}: {case.name}")
def test_what_is_ill_is_found_out(case: Case) -> None:
    run(case)
