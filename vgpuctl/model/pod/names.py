"""Names that matter in a pod: annotations and who reads them, resources of other products."""

from __future__ import annotations

from typing import Final

from vgpuctl.model import annotation

MODE: Final = annotation.MODE
USE_TYPE: Final = annotation.USE_TYPE
NO_USE_TYPE: Final = annotation.NO_USE_TYPE
USE_UUID: Final = annotation.USE_UUID
NO_USE_UUID: Final = annotation.NO_USE_UUID
PODGROUP_POLICY: Final = "volcano.sh/vgpu-podgroup-policy"
QUEUE: Final = "scheduling.volcano.sh/queue-name"
GROUP: Final = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
"""A pod's PodGroup: the first of them that it has."""

SINCE: Final = {MODE: "1.12.0", PODGROUP_POLICY: "1.15.0", USE_UUID: "1.16.0-alpha.0", NO_USE_UUID: "1.16.0-alpha.0"}
"""Annotation → the first Volcano that reads it; the others are read by every version."""

READ: Final = (MODE, USE_TYPE, NO_USE_TYPE, USE_UUID, NO_USE_UUID, PODGROUP_POLICY, QUEUE)
"""Annotations that users write and the scheduler reads, on the pod."""

WRITTEN: Final = frozenset(
    (
        annotation.NODE,
        annotation.TIME,
        annotation.IDS,
        annotation.TO_ALLOCATE,
        annotation.BIND_TIME,
        annotation.BIND_PHASE,
        "volcano.sh/gpu-index",
        "volcano.sh/predicate-time",
    )
)
"""Annotations that only the scheduler and the plugin write."""

MODES: Final = ("hami-core", "mig")
"""Modes that a node can have in Volcano's eyes; the comparison is exact."""

FOREIGN_ANNOTATIONS: Final = {
    "hami.io/": "only HAMi's own scheduler reads it",
    "4pd.io/": "only HAMi's own scheduler reads it",
    "nvidia.com/use-gpuuuid": "only HAMi's own scheduler reads it",
    "nvidia.com/nouse-gpuuuid": "only HAMi's own scheduler reads it",
    "nvidia.com/vgpu-mode": "only HAMi's own scheduler reads it",
    "nvidia.com/gpu-": "only the GPU Operator and HAMi read such names",
    "scheduling.aliyun.com/": "only Alibaba's gpushare scheduler reads it",
    "gpu.aliyun.com/": "only Alibaba's gpushare scheduler reads it",
    "tencent.com/": "only Tencent's gpu-manager reads it",
    "run.ai/": "only Run:ai's scheduler reads it",
    "gpu-fraction": "only Run:ai's scheduler reads it",
    "gpu-memory": "only Run:ai's scheduler reads it",
}
"""Annotations of other products: a key, or a prefix that ends with `/` or `-`, → who reads it."""

FOREIGN_REMEDIES: Final = {
    "hami.io/gpu-scheduler-policy": "deviceshare.SchedulePolicy in the scheduler's configuration",
    "hami.io/node-scheduler-policy": "deviceshare.SchedulePolicy in the scheduler's configuration",
    "nvidia.com/use-gpuuuid": f"{USE_UUID} (Volcano 1.16 and later)",
    "nvidia.com/nouse-gpuuuid": f"{NO_USE_UUID} (Volcano 1.16 and later)",
    "nvidia.com/vgpu-mode": MODE,
}

FOREIGN_RESOURCES: Final = {
    "nvidia.com/gpu": "number",
    "nvidia.com/gpu.shared": "number",
    "nvidia.com/gpumem": "memory",
    "nvidia.com/gpumem-percentage": "memory",
    "nvidia.com/gpucores": "cores",
    "nvidia.com/priority": "",
    "nvidia.com/vgpu": "number",
    "volcano.sh/gpu-memory": "memory",
    "volcano.sh/gpu-number": "number",
    "aliyun.com/gpu-mem": "memory",
    "aliyun.com/gpu-count": "number",
    "aliyun.com/gpu": "number",
    "tencent.com/vcuda-core": "cores",
    "tencent.com/vcuda-memory": "memory",
    "k8s.amazonaws.com/vgpu": "number",
    "4pd.io/vgpu": "number",
    "4pd.io/vgpu-memory": "memory",
}
"""Resources of other products for NVIDIA cards → what of ours comes nearest."""

FOREIGN_PREFIXES: Final = ("nvidia.com/mig-",)
