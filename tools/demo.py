"""`make demo`: top and doctor on the real card and cluster if there are any, else on the made-up pool, and beside it a
simulated node where real programs run under the real library.

Exits 0 whatever doctor finds; the last line is doctor's.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

UNKNOWN = 3
_TOOL = [sys.executable, "-m", "vgpuctl"]
_ROOT = Path(__file__).resolve().parents[1]
_NODE = ["--simulate", "2xT4-16GB"]
_PROGRAMS = (
    (["--memory", "4Gi", "--gpu", "0"], ["tools/holder.py", "3000"]),
    (["--memory", "25%", "--gpu", "0"], ["tools/holder.py", "1200"]),
    (["--memory", "8Gi", "--gpu", "1"], ["tools/holder.py", "5000"]),
)
"""What runs on the simulated node: the limits, and the arguments of python."""


def main() -> int:
    print("$ vgpuctl top --once", flush=True)
    real = subprocess.run([*_TOOL, "top", "--once"], capture_output=True, text=True, check=False)
    source, failed = [], False
    if real.returncode in (0, 1) and real.stdout.strip():
        print(real.stdout, end="")
    else:
        print("no card and no cluster here, so this is the made-up pool (--demo)")
        source = ["--demo"]
        subprocess.run([*_TOOL, "top", "--once", *source], check=True)
        failed = not _simulated_node()
    print("\n$ vgpuctl doctor" + "".join(f" {flag}" for flag in source), flush=True)
    doctor = subprocess.run([*_TOOL, "doctor", *source], check=False)
    code = 0 if doctor.returncode in (0, 1, UNKNOWN) else doctor.returncode
    return code or int(failed)


def _simulated_node() -> bool:
    """Shows `run` and what `top` sees of it; whether all programs got their memory."""
    print("\nand a simulated node, where these programs run under the library that vGPU containers get")
    with tempfile.TemporaryDirectory(prefix="vgpuctl-demo-") as folder:
        place = {**os.environ, "XDG_RUNTIME_DIR": folder, "VGPUCTL_FAKE_STATE": f"{folder}/cards"}
        running: list[subprocess.Popen[str]] = []
        try:
            for limits, program in _PROGRAMS:
                words = [*_NODE, *limits, "--"]
                print(f"$ vgpuctl run {shlex.join([*words, 'python', *program])} &", flush=True)
                running.append(_start([*words, sys.executable, *program], place))
            for process in running:
                if process.stdout is None or process.stdout.readline().strip() != "holds":
                    return False
            print("$ vgpuctl top --once --local", flush=True)
            return subprocess.run([*_TOOL, "top", "--once", "--local"], env=place, check=False).returncode == 0
        finally:
            for process in running:
                process.kill()
                process.communicate()


def _start(arguments: list[str], environment: Mapping[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*_TOOL, "run", *arguments], cwd=_ROOT, env=dict(environment), text=True, stdout=subprocess.PIPE
    )


if __name__ == "__main__":
    sys.exit(main())
