"""vgpuctl: administration of pools of shared NVIDIA GPUs on Kubernetes.

Layers, from the bottom: `model` (pure), `sources` and `checks`, `tasks` and `render`, `cli`.
Imports go downwards only; import-linter holds it.
"""

__version__ = "0.1.0"
