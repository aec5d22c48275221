"""The same programs on a real card: with and without the shim, and each way to allocate filled up to a limit.

    make -C shim/fake && make -C shim/tests && python3 shim/tests/on_card.py shim/build/x86_64/libvgpu.so [LIMIT_MIB]

Prints one line per check and ends with 1 if any failed. The simulated driver is only linked against, never loaded.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from machine import ABSENT, MIB, OUT_OF_MEMORY, PROGRAMS, Actor, run

SELF_CHECKING = ["capture", "vmm", "streams", "threads", "reopen"]
WAYS = ["linear", "pitch", "array", "array3d", "mipmap", "vmm", "graph", "managed", "async", "pool"]
STEPS = [MIB, 2 * MIB + 1, 64 * MIB]


class Report:
    def __init__(self) -> None:
        self.failed = False

    def say(self, holds: bool, what: str) -> None:
        self.failed |= not holds
        print("ok  " if holds else "FAIL", what, flush=True)


def compare(report: Report, env: dict[str, str], limited: dict[str, str]) -> None:
    for name in SELF_CHECKING:
        plain, shimmed = run(PROGRAMS / name, env=env, timeout=120), run(PROGRAMS / name, env=limited, timeout=120)
        report.say(plain.returncode == 0, f"{name} without the shim: {plain.stdout.strip()}")
        report.say(shimmed.returncode == 0, f"{name} under the shim: {shimmed.stdout.strip()} {shimmed.stderr[-200:]}")
    plain, shimmed = run(PROGRAMS / "nulls", env=env), run(PROGRAMS / "nulls", env=limited)
    differing = [
        a + " | " + b for a, b in zip(plain.stdout.splitlines(), shimmed.stdout.splitlines(), strict=False) if a != b
    ]
    report.say(not differing and shimmed.returncode == plain.returncode, f"wrong calls: {differing}")


def fill(report: Report, limited: dict[str, str], limit_mib: int) -> None:
    for way in WAYS:
        for step in STEPS:
            actor = Actor([str(PROGRAMS / "actor"), "getproc"], limited).start()
            free, total = actor.info()
            report.say(total == limit_mib * MIB, f"total is {total / MIB:.0f} MiB")
            code, values = actor.ask("fill", way, step)
            if code == ABSENT:
                continue
            left = actor.info()[0]
            held = int(values[0]) * step
            what = f"{way} by {step} bytes: {values[0]} steps, {held / MIB:.1f} of {free / MIB:.1f} MiB,"
            what += f" {left / MIB:.1f} left"
            report.say(code == OUT_OF_MEMORY and left <= step + 34 * MIB, f"{what}, code {code}")
            report.say(actor.do("give-all") == 0, f"{way}: given back")
            actor.do("trim", 0)
            report.say(abs(actor.info()[0] - free) <= 4 * MIB, f"{way}: {actor.info()[0] / MIB:.1f} MiB free again")
            actor.quit()


def main(library: Path, limit_mib: int) -> int:
    report = Report()
    with tempfile.TemporaryDirectory() as directory:
        env = dict(os.environ)
        limited = env | {
            "LD_PRELOAD": str(library.resolve()),
            "CUDA_DEVICE_MEMORY_LIMIT_0": f"{limit_mib}m",
            "CUDA_DEVICE_MEMORY_SHARED_CACHE": f"{directory}/vgpu.cache",
        }
        compare(report, env, limited)
        fill(report, limited, limit_mib)
    return int(report.failed)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 4096))
