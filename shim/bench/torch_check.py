#!/usr/bin/env python3
"""One small training run in PyTorch, whose losses are printed with all digits, and what the allocator may take.

    python3 torch_check.py eager|expandable|async|graph|compile

Run it with and without the shim: the results must be equal. Prints one JSON object.
"""

from __future__ import annotations

import json
import os
import sys

MODE = sys.argv[1] if len(sys.argv) > 1 else "eager"
ALLOCATOR = {"expandable": "expandable_segments:True", "async": "backend:cudaMallocAsync"}
if MODE in ALLOCATOR:
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = ALLOCATOR[MODE]

import torch  # noqa: E402  (the allocator is chosen before the import)

torch.manual_seed(1)
torch.use_deterministic_algorithms(False)
device = torch.device("cuda")
model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(4)]).to(device)
if MODE == "compile":
    model = torch.compile(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
data = torch.randn(256, 1024, device=device)


def step() -> torch.Tensor:
    optimizer.zero_grad(set_to_none=True)
    loss = model(data).square().mean()
    loss.backward()
    optimizer.step()
    return loss


losses = [step().item() for _ in range(20)]
result: dict[str, object] = {"mode": MODE, "torch": torch.__version__}
if MODE == "graph":
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side), torch.no_grad():
        model(data)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        output = model(data)
    graph.replay()
    torch.cuda.synchronize()
    losses.append(output.square().mean().item())
free, total = torch.cuda.mem_get_info()
result["losses"] = [losses[0], losses[-1]]
result["total_mib"] = total >> 20
result["device_total_mib"] = torch.cuda.get_device_properties(0).total_memory >> 20
if os.environ.get("CUDA_DEVICE_MEMORY_LIMIT"):
    held = []
    try:
        while len(held) < 10000:
            held.append(torch.empty(64 << 20, dtype=torch.uint8, device=device))
        result["oom"] = "none"
    except torch.cuda.OutOfMemoryError as error:
        result["oom"] = str(error).splitlines()[0][:300]
    result["filled_mib"] = 64 * len(held)
    result["free_at_oom_mib"] = torch.cuda.mem_get_info()[0] >> 20
    held.clear()
    torch.cuda.empty_cache()
    torch.cuda.synchronize()
    result["free_after_mib"] = torch.cuda.mem_get_info()[0] >> 20
    result["after_oom"] = step().item()
print(json.dumps(result))
