"""What the measurements share: a container's environment, programs and their faults, the card's figures, verdicts."""

from __future__ import annotations

import ctypes
import json
import os
import platform
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ARCH = platform.machine()
MIB = 1 << 20

Row = dict[str, Any]


@dataclass(frozen=True)
class Bench:
    """The library under test, the programs of this folder, a folder for regions, the memory limit as written."""

    library: Path
    programs: Path
    directory: Path
    limit: str

    def region(self, name: str) -> Path:
        return self.directory / f"{name}.cache"

    def environment(self, name: str, limit: str | None = None, **more: str) -> dict[str, str]:
        """The environment of a vGPU container with a region of that name; without a memory limit if None."""
        env = dict(os.environ, LD_PRELOAD=str(self.library), LIBCUDA_LOG_LEVEL="0", **more)
        env["CUDA_DEVICE_MEMORY_SHARED_CACHE"] = str(self.region(name))
        if limit:
            env["CUDA_DEVICE_MEMORY_LIMIT"] = limit
        return env

    def run(self, program: str, *words: object, env: dict[str, str] | None = None) -> tuple[list[Row], Row]:
        """A program's lines of JSON, and how it ended if not well."""
        command = [str(self.programs / program), *map(str, words)]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=False)
        return parse(done.stdout), fault(done.returncode, done.stderr)


def parse(text: str) -> list[Row]:
    return [json.loads(line) for line in text.splitlines() if line.startswith("{") and line.endswith("}")]


def fault(code: int, stderr: str) -> Row:
    """Empty for a program that ended with 0; what it wrote is kept then too."""
    found: Row = {"rc": code} if code else {}
    return found | ({"stderr": stderr.strip()[-500:]} if stderr.strip() else {})


def size(text: str) -> int:
    """Bytes of a limit as the contract writes it: 4g, 5120m."""
    units = {"k": 1 << 10, "m": MIB, "g": 1 << 30}
    return int(text[:-1]) * units[text[-1].lower()] if text[-1].lower() in units else int(text)


def verdict(shows: str, holds: bool, figures: str) -> Row:
    return {"shows": shows, "holds": holds, "figures": figures}


class Card:
    """The first card as NVML has it, asked from outside every container."""

    def __init__(self) -> None:
        self.nvml = ctypes.CDLL("libnvidia-ml.so.1")
        self.device = ctypes.c_void_p()
        if self.nvml.nvmlInit_v2() or self.nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.device)):
            raise SystemExit("NVML does not know a card 0")

    def used(self) -> dict[int, int]:
        """Bytes by pid of every compute process."""

        class Process(ctypes.Structure):
            _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong), ("instances", ctypes.c_uint * 2)]

        count, list_ = ctypes.c_uint(1024), (Process * 1024)()
        code = self.nvml.nvmlDeviceGetComputeRunningProcesses_v3(self.device, ctypes.byref(count), list_)
        if code:
            raise SystemExit(f"nvmlDeviceGetComputeRunningProcesses: {code}")
        return {p.pid: p.used for p in list_[: count.value]}
