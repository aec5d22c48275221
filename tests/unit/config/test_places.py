"""Which of several ConfigMaps counts."""

from __future__ import annotations

from tests.unit import pools
from vgpuctl.model import pool

TEXT = '{"nodeconfig": []}'


def test_the_node_config_is_the_one_that_the_plugin_mounts() -> None:
    """An older installation may have left one in another namespace."""

    def elsewhere(found: pools.Objects) -> None:
        (item,) = found["daemonsets"]
        item["metadata"]["namespace"] = "gpu-pool"
        spec = item["spec"]["template"]["spec"]
        spec["containers"][0]["volumeMounts"].append({"name": "config", "mountPath": "/config"})
        spec["volumes"].append({"name": "config", "configMap": {"name": "volcano-vgpu-node-config"}})
        for space in ("kube-system", "gpu-pool"):
            found["configmaps"].append(pools.configmap("volcano-vgpu-node-config", space, config__json=TEXT))

    found = pool.node_config(pools.pool(elsewhere))
    assert found and found.place == "ConfigMap gpu-pool/volcano-vgpu-node-config"
