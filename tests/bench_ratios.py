"""The speed that was promised, measured: `python -m tests.bench_ratios`, which ends with one line that sums up.

What is compared runs in turn, round by round, so that a busy machine is as unfair to one as to the other; figures are
medians. Ratios are against: an empty typer program; kubectl and curl fetching the same pool from the same API server.
"""

from __future__ import annotations

import argparse
import base64
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.cluster import generate
from tests.cluster.bench import Bench
from tests.cluster.binaries import BenchMissingError
from tests.install.big import install

ROOT = Path(__file__).parent.parent
VGPUCTL = (sys.executable, "-m", "vgpuctl")
EMPTY = "import typer\napp = typer.Typer()\n@app.command()\ndef main() -> None:\n    pass\napp()\n"
CONFIG = """\
nvidia:
  resourceCountName: volcano.sh/vgpu-number
  resourceMemoryName: volcano.sh/vgpu-memory
  resourceMemoryPercentageName: volcano.sh/vgpu-memory-percentage
  resourceCoreName: volcano.sh/vgpu-cores
  deviceSplitCount: 10
  deviceCoreScaling: 1
  gpuMemoryFactor: 10
"""
COMPLETE = (
    "source completions/vgpuctl.bash; COMP_WORDS=(vgpuctl quota li); COMP_CWORD=2; _vgpuctl; echo ${COMPREPLY[*]}"
)
LISTS = ("/api/v1/pods", "/api/v1/nodes", "/api/v1/namespaces", "/apis/scheduling.volcano.sh/v1beta1/podgroups")


@dataclass(frozen=True)
class Run:
    """seconds: wall time. cpu: seconds of processor time. memory: the most that was resident, bytes."""

    seconds: float
    cpu: float
    memory: int


@dataclass(frozen=True)
class Promise:
    """A figure that must not be above a target. text: how it is shown."""

    name: str
    value: float
    target: float
    text: str

    @property
    def kept(self) -> bool:
        return self.value <= self.target


def run(command: Sequence[str], environment: Mapping[str, str] | None = None, *, finds: bool = False) -> Run:
    """Runs a command with its output thrown away. finds: findings (exit code 1) are no failure. Raises
    CalledProcessError when it fails."""
    began = time.monotonic()
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=errors, env={**os.environ, **(environment or {})}
        ) as process,
    ):
        _, status, usage = os.wait4(process.pid, 0)
        took = time.monotonic() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        if process.returncode and not (finds and process.returncode == 1):
            raise subprocess.CalledProcessError(process.returncode, command, stderr=errors.read().decode()[-500:])
    return Run(took, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def rounds(count: int, commands: Mapping[str, Callable[[], Run]]) -> dict[str, Run]:
    """The medians of several rounds of all commands, in turn."""
    runs: dict[str, list[Run]] = {name: [] for name in commands}
    for _ in range(count):
        for name, command in commands.items():
            runs[name].append(command())
    return {
        name: Run(
            statistics.median(r.seconds for r in done),
            statistics.median(r.cpu for r in done),
            int(statistics.median(r.memory for r in done)),
        )
        for name, done in runs.items()
    }


def start_up(count: int, folder: Path) -> list[Promise]:
    """How quickly the tool answers without a cluster."""
    empty, config = folder / "empty.py", folder / "device-config.yaml"
    empty.write_text(EMPTY)
    config.write_text(CONFIG)
    done = rounds(
        count,
        {
            "empty": lambda: run((sys.executable, str(empty), "--help")),
            "help": lambda: run((*VGPUCTL, "--help")),
            "validate": lambda: run((*VGPUCTL, "config", "validate", str(config))),
            "completion": lambda: run(("bash", "-c", COMPLETE)),
        },
    )
    ratio = done["help"].seconds / done["empty"].seconds
    return [
        Promise("--help / empty typer program", ratio, 1.3, f"{ratio:.2f}"),
        *(
            Promise(name, done[key].seconds, target, f"{done[key].seconds * 1000:.0f} ms")
            for name, key, target in (("completion", "completion", 0.15), ("config validate", "validate", 0.25))
        ),
    ]


def pool(count: int, size: generate.Size, folder: Path) -> list[Promise]:
    """How `top --once` compares with kubectl and curl on a big pool, and how long `status` takes on it."""
    with Bench(snapshot=generate.snapshot(size), controllers=False) as bench:
        environment = {"KUBECONFIG": str(bench.kubeconfig)}
        curl = _curl(bench.kubeconfig, folder)
        commands: dict[str, Callable[[], Run]] = {
            "top": lambda: run((*VGPUCTL, "top", "--once"), environment),
            "kubectl": lambda: run(
                (str(bench.binaries / "kubectl"), "get", "pods,nodes", "-A", "-o", "json"), environment
            ),
        }
        if curl:
            commands["curl"] = lambda: run(curl)
        commands["top"]()  # the API server's caches are warm for whoever comes first
        done = rounds(count, commands)
        install(bench)
        look = {"status": lambda: run((*VGPUCTL, "status"), environment, finds=True)}
        done |= rounds(count, look)
    for name, figures in done.items():
        print(f"  {name}: {figures.seconds:.1f} s ({figures.cpu:.1f} s of CPU), {figures.memory >> 20} MiB")
    top, kubectl = done["top"], done["kubectl"]
    wall, memory = top.seconds / kubectl.seconds, top.memory / kubectl.memory
    promises = [
        Promise("top --once / kubectl, time", wall, 0.5, f"{wall:.2f}"),
        Promise("top --once / kubectl, memory", memory, 0.5, f"{memory:.2f}"),
        Promise("status", done["status"].seconds, 3.0, f"{done['status'].seconds:.1f} s"),
    ]
    if curl:
        ratio = top.seconds / done["curl"].seconds
        promises.append(Promise("top --once / curl, time", ratio, 1.3, f"{ratio:.2f}"))
    return promises


def _curl(kubeconfig: Path, folder: Path) -> list[str]:
    """The command that fetches what top reads; empty without curl."""
    program = shutil.which("curl")
    if not program:
        return []
    config = yaml.safe_load(kubeconfig.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    # The API server indents its JSON for curl, which doubles it; by another name curl gets what vgpuctl gets.
    command = [program, "--silent", "--show-error", "--fail", "--user-agent", "vgpuctl"]
    for option, data in (
        ("--cacert", cluster["certificate-authority-data"]),
        ("--cert", user["client-certificate-data"]),
        ("--key", user["client-key-data"]),
    ):
        file = folder / option.strip("-")
        file.touch(mode=0o600)
        file.write_bytes(base64.b64decode(data))
        command += [option, str(file)]
    for path in LISTS:
        command += ["--output", os.devnull, f"{cluster['server']}{path}"]
    return command


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench_ratios", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="rounds on the pool [3]")
    parser.add_argument("--size", type=generate.Size.parse, default=generate.Size(1000, 8, 4), metavar="NxCxV")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        promises = start_up(11, Path(folder))
        missing = ""
        try:
            promises += pool(options.rounds, options.size, Path(folder))
        except BenchMissingError as reason:
            missing = f"; the pool was not measured: {reason}"
    for promise in promises:
        mark = "ok " if promise.kept else "MISS"
        print(f"{mark:4} {promise.name:<32} {promise.text:>8}   at most {promise.target:g}")
    kept = sum(promise.kept for promise in promises)
    summary = ", ".join(f"{promise.name} {promise.text}" for promise in promises)
    print(f"{kept} of {len(promises)} promises kept: {summary}{missing}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
