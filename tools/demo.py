"""`make demo`: top and doctor on the real card and cluster if there are any, else on the made-up pool.

Exits 0 whatever doctor finds; the last line is doctor's.
"""

from __future__ import annotations

import subprocess
import sys

UNKNOWN = 3
_TOOL = [sys.executable, "-m", "vgpuctl"]


def main() -> int:
    print("$ vgpuctl top --once", flush=True)
    real = subprocess.run([*_TOOL, "top", "--once"], capture_output=True, text=True, check=False)
    source = []
    if real.returncode in (0, 1) and real.stdout.strip():
        print(real.stdout, end="")
    else:
        print("no card and no cluster here, so this is the made-up pool (--demo)")
        source = ["--demo"]
        subprocess.run([*_TOOL, "top", "--once", *source], check=True)
    print("\n$ vgpuctl doctor" + "".join(f" {flag}" for flag in source), flush=True)
    doctor = subprocess.run([*_TOOL, "doctor", *source], check=False)
    return 0 if doctor.returncode in (0, 1, UNKNOWN) else doctor.returncode


if __name__ == "__main__":
    sys.exit(main())
