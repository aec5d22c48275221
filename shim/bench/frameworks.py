#!/usr/bin/env python3
"""One small program per framework, run with and without the shim: the results must be equal.

    python3 frameworks.py [--library PATH] [--limit 8g] [--out FILE]

Prints a row per framework: its result (a digest of what it computed), how much memory it believes the card has, and
whether both runs agree. A framework that is not installed is a row that says so.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent

PYTHON = {
    "cupy": """
import cupy as cp
a = cp.arange(1 << 20, dtype=cp.float32).reshape(1024, 1024) % 17
print(float((a @ a).sum()), cp.cuda.runtime.memGetInfo()[1] >> 20)
""",
    "jax": """
import os; os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "true")
import jax, jax.numpy as jnp
a = jnp.arange(1 << 20, dtype=jnp.float32).reshape(1024, 1024) % 17
print(float(jax.jit(lambda x: (x @ x).sum())(a)), jax.devices()[0].memory_stats()["bytes_limit"] >> 20)
""",
    "numba-cuda": """
from numba import cuda
import numpy as np
@cuda.jit
def add(x, y, out):
    i = cuda.grid(1)
    if i < x.size: out[i] = x[i] + 2 * y[i]
x = np.arange(1 << 20, dtype=np.float32); out = cuda.device_array_like(x)
add[4096, 256](cuda.to_device(x), cuda.to_device(x), out); cuda.synchronize()
print(float(out.copy_to_host().sum(dtype=np.float64)), cuda.current_context().get_memory_info()[1] >> 20)
""",
    "triton": """
import torch, triton, triton.language as tl
src = '''
import triton, triton.language as tl
@triton.jit
def add(x, y, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)
'''
import tempfile, importlib.util, pathlib
p = pathlib.Path(tempfile.mkdtemp()) / "k.py"; p.write_text(src)
s = importlib.util.spec_from_file_location("k", p); k = importlib.util.module_from_spec(s); s.loader.exec_module(k)
x = torch.arange(1 << 20, device="cuda", dtype=torch.float32); o = torch.empty_like(x)
k.add[(1024,)](x, x, o, x.numel(), B=1024)
print(float(o.double().sum()), torch.cuda.mem_get_info()[1] >> 20)
""",
    "nccl": """
import os, torch, torch.distributed as d
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=os.environ.get("PORT", "29511"), RANK="0", WORLD_SIZE="1")
d.init_process_group("nccl"); t = torch.arange(1000, device="cuda", dtype=torch.float32); d.all_reduce(t)
torch.cuda.synchronize(); print(float(t.sum()), torch.cuda.mem_get_info()[1] >> 20); d.destroy_process_group()
""",
    "torch-inference": """
import torch
torch.manual_seed(1)
m = torch.nn.TransformerEncoderLayer(512, 8, batch_first=True).cuda().half().eval()
x = torch.randn(8, 128, 512, device="cuda", dtype=torch.half)
with torch.inference_mode(): y = m(x); y = m(y)
print(float(y.double().sum()), torch.cuda.mem_get_info()[1] >> 20)
""",
    "onnxruntime": """
import onnxruntime
assert "CUDAExecutionProvider" in onnxruntime.get_available_providers(), "this onnxruntime has no CUDA"
print("providers", 0)
""",
}

CUDA_C = """
#include <cstdio>
__global__ void add(float *x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] = x[i] * 2 + 1; }
int main() {
  int n = 1 << 20; float *x; size_t f, t; double sum = 0;
  if (cudaMallocManaged(&x, n * sizeof(float))) return 1;
  for (int i = 0; i < n; i++) x[i] = i % 7;
  add<<<n / 256, 256>>>(x, n); if (cudaDeviceSynchronize()) return 2;
  for (int i = 0; i < n; i++) sum += x[i];
  cudaMemGetInfo(&f, &t); printf("%.1f %zu\\n", sum, t >> 20);
}
"""


def commands(work: Path) -> dict[str, list[str] | str]:
    """Framework → what to run, or the reason why it cannot."""
    found: dict[str, list[str] | str] = {name: [sys.executable, "-c", code] for name, code in PYTHON.items()}
    source = work / "program.cu"
    source.write_text(CUDA_C)
    for kind in ("static", "shared"):
        name = f"nvcc-{kind}-cudart"
        program = work / name
        if not shutil.which("nvcc"):
            found[name] = "nvcc is not installed"
            continue
        done = subprocess.run(
            ["nvcc", "-o", program, source, f"--cudart={kind}"], capture_output=True, text=True, check=False
        )
        found[name] = [str(program)] if done.returncode == 0 else done.stderr[-300:]
    return found


def run(command: list[str], environment: dict[str, str]) -> tuple[str, str]:
    """The last line of a program's output as (digest, MiB that it sees), or ("", the fault)."""
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    words = done.stdout.split()
    if done.returncode or len(words) < 2:
        return "", f"rc {done.returncode}: {done.stderr.strip()[-300:]}"
    return words[-2], words[-1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", default=str(HERE.parent / "build" / platform.machine() / "libvgpu.so"))
    parser.add_argument("--limit", default="8g")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        for name, command in commands(work).items():
            if isinstance(command, str):
                rows.append({"framework": name, "skipped": command})
                continue
            plain = run(command, dict(os.environ))
            limited = run(
                command,
                {
                    **os.environ,
                    "LD_PRELOAD": str(Path(options.library).resolve()),
                    "CUDA_DEVICE_MEMORY_SHARED_CACHE": str(work / f"{name}.cache"),
                    "CUDA_DEVICE_MEMORY_LIMIT": options.limit,
                    "PORT": "29512",
                },
            )
            equal = plain[0] == limited[0] != ""
            rows.append({"framework": name, "plain": plain, "limited": limited, "equal": equal})
            print(json.dumps(rows[-1]), flush=True)
    if options.out:
        options.out.write_text(json.dumps({"command": sys.argv, "limit": options.limit, "rows": rows}, indent=1) + "\n")
    return 0 if all(row.get("equal", True) for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
