#!/usr/bin/env python3
"""The share of the card that a PyTorch program gets: one JSON object per workload.

    python3 torch_share.py [--seconds S] [WORKLOAD...]

Workloads: train, train-graph, infer, infer-graph, gemm, copy. Without a limit in force it gives the speed that the
limited runs are compared with. time_share is the union of the intervals of kernels, copies and fills, from PyTorch's
profiler, over the time from the end of one step's last kernel to the end of another's, in the run itself; that of an
unlimited run tells how much of the time the program wants the card at all. p99 of fewer than 100 steps is the longest.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

Step = Callable[[], object]
DEVICE = "cuda"
LEAD_SECONDS = 0.7  # until the credit that was saved while nothing ran is spent, also at limit 80
PROFILED_SECONDS = 1.5
TRACED = ("kernel", "gpu_memcpy", "gpu_memset")  # not gpu_user_annotation, which spans the gaps between kernels


def transformer(layers: int) -> torch.nn.Module:
    layer = torch.nn.TransformerEncoderLayer(1024, 16, 4096, batch_first=True, dropout=0.0)
    return torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False).to(DEVICE, torch.bfloat16)


def sentences() -> torch.Tensor:
    """A batch large enough that a step is bound by the card, not by Python."""
    return torch.randn(32, 512, 1024, device=DEVICE, dtype=torch.bfloat16)


def graphed(step: Step) -> Step:
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()

    def replay(_kept: Step = step) -> None:  # the graph uses the memory of the step's tensors
        graph.replay()

    return replay


def training() -> Step:
    model, data = transformer(4), sentences()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)

    def step() -> None:
        optimizer.zero_grad(set_to_none=False)
        model(data).float().square().mean().backward()
        optimizer.step()

    return step


def inference() -> Step:
    model, data = transformer(8).eval(), sentences()

    def step() -> None:
        with torch.no_grad():
            model(data)

    return step


def repeated(call: Step, times: int) -> Step:
    """A loop of one kernel has no steps of its own: so many of them are one."""

    def step() -> None:
        for _ in range(times):
            call()

    return step


def gemm() -> Step:
    a = torch.randn(4096, 4096, device=DEVICE, dtype=torch.bfloat16)
    b, out = torch.randn_like(a), torch.empty_like(a)
    return repeated(lambda: torch.matmul(a, b, out=out), 20)


def copy() -> Step:
    source = torch.ones(64 << 20, device=DEVICE)
    target = torch.empty_like(source)
    return repeated(lambda: torch.add(source, 1.0, out=target), 20)


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


def traced(step: Step) -> tuple[list[float], list[tuple[float, float]]]:
    """Seconds of each step, and start and end in microseconds of all that the card did for them, by end."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        times = run(step, LEAD_SECONDS + PROFILED_SECONDS)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "trace.json"
        profiler.export_chrome_trace(str(path))
        events = json.loads(path.read_text(errors="replace"))["traceEvents"]
    spans = [(event["ts"], event["ts"] + event["dur"]) for event in events if event.get("cat") in TRACED]
    return times, sorted(spans, key=lambda span: span[1])


def union(spans: list[tuple[float, float]], begin: float) -> float:
    """How long at least one span lasted, after `begin`."""
    busy, reached = 0.0, begin
    for start, end in sorted(spans):
        busy += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return busy


def time_share(step: Step) -> dict[str, object]:
    """The share of the time between the ends of two steps; all steps do the same work."""
    times, spans = traced(step)
    each = len(spans) // len(times)
    lead, waited = 0, 0.0
    while waited < LEAD_SECONDS and lead < len(times) - 1:
        waited += times[lead]
        lead += 1
    if not each or not lead:
        return {"time_share": None, "traced": len(spans)}
    begin = spans[lead * each - 1][1]
    wall = spans[-1][1] - begin
    share = union(spans[lead * each :], begin) / wall * 100
    return {"time_share": round(share, 2), "traced": len(spans), "traced_seconds": round(wall * 1e-6, 3)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", default=list(WORKLOADS), help="which (default: all)")
    parser.add_argument("--seconds", type=float, default=4)
    options = parser.parse_args()
    # As PyTorch itself does where it uses graphs: CUPTI taken down and set up again makes a later replay fail.
    os.environ["TEARDOWN_CUPTI"] = "0"
    os.environ["DISABLE_CUPTI_LAZY_REINIT"] = "1"
    torch.manual_seed(1)
    # All are timed before the first is traced, because the profiler stays and makes each launch a little slower.
    timed = {}
    for name in options.workloads:
        step = WORKLOADS[name]()
        run(step, 1)  # the limiter learns the kernels
        timed[name] = step, sorted(run(step, options.seconds))
    for name in sorted(timed, key=lambda name: "graph" in name):  # graphs, which a profiler can break, last
        step, times = timed[name]
        row = {
            "workload": name,
            "steps": len(times),
            "steps_per_second": round(len(times) / sum(times), 2),
            "median_ms": round(times[len(times) // 2] * 1e3, 3),
            "p99_ms": round(times[len(times) * 99 // 100] * 1e3, 3),
        }
        try:
            row |= time_share(step)
        except RuntimeError as error:
            row |= {"time_share": None, "untraced": str(error)[:300]}
        print(json.dumps(row), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
