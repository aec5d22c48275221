"""A program that holds memory on its first card and computes now and then: `python tools/holder.py MIB`.

It calls the driver alone, so it runs on a real card and on the simulated one. It prints "holds" when it has its memory.
"""

from __future__ import annotations

import ctypes
import sys
import time

PTX = b".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry empty()\n{\n ret;\n}\n"


def main() -> int:
    cuda = ctypes.CDLL("libcuda.so.1")

    def call(name: str, *arguments: object) -> None:
        code = getattr(cuda, name)(*arguments)
        if code:
            raise SystemExit(f"{name}: CUDA error {code}")

    context, pointer, module, kernel = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_void_p(), ctypes.c_void_p()
    call("cuInit", 0)
    call("cuCtxCreate_v2", ctypes.byref(context), 0, 0)
    call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(int(sys.argv[1]) << 20))
    call("cuModuleLoadData", ctypes.byref(module), PTX)
    call("cuModuleGetFunction", ctypes.byref(kernel), module, b"empty")
    print("holds", flush=True)
    grid = (200_000, 1, 1)
    while True:
        call("cuLaunchKernel", kernel, *grid, 256, 1, 1, 0, None, None, None)
        call("cuCtxSynchronize")
        time.sleep(0.2)


if __name__ == "__main__":
    sys.exit(main())
