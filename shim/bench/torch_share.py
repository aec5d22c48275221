#!/usr/bin/env python3
"""The share of the card that a PyTorch program gets: one JSON object per workload.

    python3 torch_share.py [--seconds S] [WORKLOAD...]

Workloads: train, train-graph, infer, infer-graph, gemm, copy. Without a limit in force it gives the speed that the
limited runs are compared with. time_share is the union of the kernels' intervals, from PyTorch's profiler, over wall
time in the run itself; that of an unlimited run tells how much of the time the program wants the card at all.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable

import torch

Step = Callable[[], object]
DEVICE = "cuda"


def transformer(layers: int) -> torch.nn.Module:
    layer = torch.nn.TransformerEncoderLayer(1024, 16, 4096, batch_first=True, dropout=0.0)
    return torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False).to(DEVICE, torch.bfloat16)


def graphed(step: Step) -> Step:
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    side.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def training() -> Step:
    model = transformer(4)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    data = torch.randn(8, 512, 1024, device=DEVICE, dtype=torch.bfloat16)

    def step() -> None:
        optimizer.zero_grad(set_to_none=False)
        model(data).float().square().mean().backward()
        optimizer.step()

    return step


def inference() -> Step:
    model = transformer(8).eval()
    data = torch.randn(4, 128, 1024, device=DEVICE, dtype=torch.bfloat16)

    def step() -> None:
        with torch.no_grad():
            model(data)

    return step


def gemm() -> Step:
    a = torch.randn(4096, 4096, device=DEVICE, dtype=torch.bfloat16)
    b, out = torch.randn_like(a), torch.empty_like(a)
    return lambda: torch.matmul(a, b, out=out)


def copy() -> Step:
    source = torch.empty(256 << 20, device=DEVICE, dtype=torch.uint8)
    target = torch.empty_like(source)
    return lambda: torch.add(source, 1, out=target)


WORKLOADS: dict[str, Callable[[], Step]] = {
    "train": training,
    "train-graph": lambda: graphed(training()),
    "infer": inference,
    "infer-graph": lambda: graphed(inference()),
    "gemm": gemm,
    "copy": copy,
}


def run(step: Step, seconds: float) -> list[float]:
    """Seconds of each step, waited for one by one."""
    times = []
    end = time.perf_counter() + seconds
    while (start := time.perf_counter()) < end:
        step()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return times


def time_share(step: Step, seconds: float) -> float:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        times = run(step, seconds)
    kernels = sorted(
        (event.time_range.start, event.time_range.end)
        for event in profiler.events()
        if event.device_type == torch.autograd.DeviceType.CUDA
    )
    busy, reached = 0.0, float("-inf")
    for start, end in kernels:
        busy += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    wall = sum(times) * 1e6  # the profiler counts microseconds
    return round(busy / wall * 100, 2) if wall else 0.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", default=list(WORKLOADS), help="which (default: all)")
    parser.add_argument("--seconds", type=float, default=4)
    options = parser.parse_args()
    torch.manual_seed(1)
    for name in options.workloads:
        step = WORKLOADS[name]()
        run(step, 1)  # warm-up; the limiter learns the kernels
        times = sorted(run(step, options.seconds))
        row = {
            "workload": name,
            "steps": len(times),
            "steps_per_second": round(len(times) / sum(times), 2),
            "median_ms": round(times[len(times) // 2] * 1e3, 3),
            "p99_ms": round(times[len(times) * 99 // 100] * 1e3, 3),
            "time_share": time_share(step, min(options.seconds, 0.7)),
        }
        print(json.dumps(row), flush=True)
        del step
        torch.cuda.empty_cache()
    return 0


if __name__ == "__main__":
    sys.exit(main())
