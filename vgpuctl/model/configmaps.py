"""The ConfigMaps that the plugin and Volcano read: their usual names, keys and namespaces (docs/contract.md §2)."""

from __future__ import annotations

from typing import Final

DEVICE: Final = "volcano-vgpu-device-config"
DEVICE_KEY: Final = "device-config.yaml"
NODE: Final = "volcano-vgpu-node-config"
NODE_KEY: Final = "config.json"
PLUGIN_NAMESPACES: Final = ("kube-system", "volcano-system")
"""Where the plugin looks for its device configuration, in this order; the scheduler looks in the first by default."""

SCHEDULER: Final = "volcano-scheduler-configmap"
SCHEDULER_KEY: Final = "volcano-scheduler.conf"
SCHEDULER_NAMESPACE: Final = "volcano-system"
