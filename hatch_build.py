"""Builds the preloaded library, the simulated driver and the load program for both architectures: data of the wheel.

A build without it must be asked for: VGPUCTL_NO_SHIM=1.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FILES = ("libvgpu.so", "fake/libcuda.so.1", "fake/libnvidia-ml.so.1", "bench/share")
ARCHITECTURES = ("x86_64", "aarch64")


class ShimHook(BuildHookInterface):  # type: ignore[type-arg]
    """Runs `make -C shim release` before a wheel is packed; an editable install uses what `make shim` built."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel" or version == "editable" or os.environ.get("VGPUCTL_NO_SHIM") == "1":
            return
        command = ["make", "-C", "shim", "release", f"PYTHON={sys.executable}"]
        without = "VGPUCTL_NO_SHIM=1 builds without it"
        try:
            done = subprocess.run(command, cwd=self.root, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            raise SystemExit(f"the shim cannot be built: make is not installed; {without}") from None
        if done.returncode:
            raise SystemExit(f"the shim cannot be built ({without}):\n{done.stdout}{done.stderr}")
        for name in (f"shim/build/{machine}/{file}" for machine in ARCHITECTURES for file in FILES):
            build_data["force_include"][str(Path(self.root, name))] = f"vgpuctl/_data/{name}"
