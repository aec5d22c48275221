#!/usr/bin/env python3
"""One small program per framework, run with and without the shim: the results must be equal.

    python3 frameworks.py [--library PATH] [--limit 8g] [--out FILE]

Prints a row per framework: its result (a digest of what it computed), how much memory it believes the card has, and
whether both runs agree. The two runs of a framework go side by side. One that is not installed, or fails without the
shim too, is skipped with the reason; TensorFlow and onnxruntime-gpu are untested.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench import ARCH, HERE, Bench, Row, size, verdict

TORCH_MODES = ("eager", "compile", "graph", "expandable", "async")
UNTESTED = {"tensorflow": "untested", "onnxruntime-gpu": "untested"}
SEES_PART = {"jax": 0.75}  # what it takes of the card at its start, the figure that it shows

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
import numpy as np
for name, stand_in in (("row_stack", "vstack"), ("in1d", "isin"), ("trapz", "trapezoid")):
    if not hasattr(np, name): setattr(np, name, getattr(np, stand_in))  # numba asks for what NumPy has dropped
from numba import cuda
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
    found: dict[str, list[str] | str] = {
        f"torch-{mode}": [sys.executable, str(HERE / "torch_check.py"), mode] for mode in TORCH_MODES
    }
    found |= {name: [sys.executable, "-c", code] for name, code in PYTHON.items()}
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
    return found | UNTESTED


def outcome(process: subprocess.Popen[str], deadline: float) -> Row:
    """What the last line of a program's output says: its digest, the MiB that it sees, or the fault."""
    try:
        out, err = process.communicate(timeout=max(1.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        return {"fault": f"not finished in time: {err.strip()[-300:]}"}
    last = (out.strip().splitlines() or [""])[-1]
    if process.returncode == 0 and last.startswith("{"):
        said = json.loads(last)
        return {
            "digest": str(said["losses"]),
            "sees_mib": said["total_mib"],
            **{k: said[k] for k in said if "oom" in k},
        }
    words = last.split()
    if process.returncode or len(words) != 2:
        return {"fault": f"rc {process.returncode}: {err.strip()[-300:]}"}
    return {"digest": words[0], "sees_mib": int(words[1])}


def compare(name: str, command: list[str], bench: Bench, seconds: float) -> Row:
    """Both runs, side by side: each has its own port and its own half of the machine's caches."""
    limited = bench.environment(name, bench.limit, PORT="29512", TRITON_CACHE_DIR=str(bench.directory / "triton"))
    limited["TORCHINDUCTOR_CACHE_DIR"] = str(bench.directory / "inductor")
    started, processes = time.monotonic(), []
    for env in (dict(os.environ), limited):
        pipe = subprocess.PIPE
        processes.append(subprocess.Popen(command, env=env, stdout=pipe, stderr=pipe, text=True))
    plain, shim = (outcome(process, started + seconds) for process in processes)
    row: Row = {"framework": name, "plain": plain, "limited": shim, "seconds": round(time.monotonic() - started, 1)}
    if "fault" in plain:
        return {"framework": name, "skipped": f"fails without the shim too: {plain['fault']}", "limited": shim}
    expected = int((size(bench.limit) >> 20) * SEES_PART.get(name, 1))
    row["equal"] = plain["digest"] == shim.get("digest")
    row["sees_limit"] = shim.get("sees_mib") == expected
    if "oom" in shim:
        row["oom_right"] = "out of memory" in shim["oom"] and isinstance(shim.get("after_oom"), float)
    return row


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, default=HERE.parent / "build" / ARCH / "libvgpu.so")
    parser.add_argument("--limit", default="8g")
    parser.add_argument("--seconds", type=float, default=60, help="for one framework")
    parser.add_argument("--budget", type=float, default=150, help="for all: what does not fit is skipped")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows: list[Row] = []
    end = time.monotonic() + options.budget
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        bench = Bench(options.library.resolve(), work, work, options.limit)
        for name, command in commands(work).items():
            left = min(options.seconds, end - time.monotonic())
            if isinstance(command, str):
                rows.append({"framework": name, "skipped": command})
            elif left < 5:
                rows.append({"framework": name, "skipped": "no time left"})
            else:
                rows.append(compare(name, command, bench, left))
            print(json.dumps(rows[-1]), flush=True)
    verdicts = [
        verdict(
            f"{row['framework']}: the same result, the limit seen, out of memory as an exception",
            row["equal"] and row["sees_limit"] and row.get("oom_right", True),
            f"{row['limited'].get('digest', row['limited'].get('fault'))}, {row['limited'].get('sees_mib')} MiB",
        )
        for row in rows
        if "skipped" not in row
    ]
    skipped = {row["framework"]: row["skipped"] for row in rows if "skipped" in row}
    if options.out:
        result = {"command": sys.argv, "limit": options.limit, "verdicts": verdicts, "skipped": skipped, "rows": rows}
        options.out.write_text(json.dumps(result, indent=1) + "\n")
    return 0 if all(entry["holds"] for entry in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
