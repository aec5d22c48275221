#!/usr/bin/env python3
"""Take and give memory as PyTorch's allocators do, at random, until the time is up.

    python3 churn.py SECONDS [hold BYTES]

Segments of 2 and 20 MiB and larger ones in steps of 2 MiB by cuMemAlloc, by cuMemCreate and cuMemMap, and by
cuMemAllocAsync. With `hold` that many bytes are taken once and kept. Prints one JSON object; ends with 1 at a wrong
result: out of memory is none.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import sys
import time
from collections.abc import Callable

MIB = 1 << 20
OUT_OF_MEMORY = 2
MOST = 12  # segments, some 400 MiB, so that many processes find room

cu = ctypes.CDLL("libcuda.so.1")
Address = ctypes.c_uint64
wrong: list[str] = []


class Location(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class Properties(ctypes.Structure):
    _fields_ = [
        ("type", ctypes.c_int),
        ("handles", ctypes.c_int),
        ("location", Location),
        ("metadata", ctypes.c_void_p),
    ]
    _fields_ += [("flags", ctypes.c_ubyte * 8)]


class Access(ctypes.Structure):
    _fields_ = [("location", Location), ("flags", ctypes.c_int)]


def call(name: str, *words: object) -> int:
    code: int = getattr(cu, name)(*words)
    if code not in (0, OUT_OF_MEMORY):
        wrong.append(f"{name}: {code}")
    return code


def plain(size: int) -> Callable[[], object] | None:
    p = Address()
    return None if call("cuMemAlloc_v2", ctypes.byref(p), ctypes.c_size_t(size)) else lambda: call("cuMemFree_v2", p)


def from_pool(size: int) -> Callable[[], object] | None:
    p = Address()
    if call("cuMemAllocAsync", ctypes.byref(p), ctypes.c_size_t(size), None):
        return None
    return lambda: call("cuMemFreeAsync", p, None)


def mapped(size: int) -> Callable[[], object] | None:
    place, handle, bytes_ = Address(), Address(), ctypes.c_size_t(size)
    location = Location(1, 0)
    properties, access = Properties(1, 0, location), Access(location, 3)
    if call("cuMemAddressReserve", ctypes.byref(place), bytes_, ctypes.c_size_t(0), Address(0), Address(0)):
        return None
    if call("cuMemCreate", ctypes.byref(handle), bytes_, ctypes.byref(properties), Address(0)):
        call("cuMemAddressFree", place, bytes_)
        return None
    call("cuMemMap", place, bytes_, ctypes.c_size_t(0), handle, Address(0))
    call("cuMemRelease", handle)
    call("cuMemSetAccess", place, bytes_, ctypes.byref(access), ctypes.c_size_t(1))

    def give() -> None:
        call("cuMemUnmap", place, bytes_)
        call("cuMemAddressFree", place, bytes_)

    return give


def main() -> int:
    context = ctypes.c_void_p()
    started = call("cuInit", 0) or call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    started = started or call("cuCtxSetCurrent", context)
    end = time.monotonic() + float(sys.argv[1])
    taken = refused = 0
    if not started:
        draw = random.Random(os.getpid())
        held: list[Callable[[], object]] = []
        if sys.argv[2:3] == ["hold"]:
            kept = plain(int(sys.argv[3]))
            print("held" if kept else "refused", flush=True)
            time.sleep(max(0.0, end - time.monotonic()))
        while time.monotonic() < end:
            if len(held) >= MOST or (held and draw.random() < 0.45):
                held.pop(draw.randrange(len(held)))()
                continue
            size = draw.choice((2, 2, 20, 20, 2 * draw.randrange(1, 64))) * MIB
            give = draw.choice((plain, mapped, from_pool))(size)
            if give:
                held.append(give)
                taken += 1
            else:
                refused += 1
                for give in held[::2]:  # as PyTorch empties its cache
                    give()
                del held[::2]
        for give in held:
            give()
        call("cuCtxSynchronize")
    print(json.dumps({"taken": taken, "refused": refused, "context": started, "wrong": wrong[:5]}))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
