"""kwok: fake kubelets for nodes that ask for one. Off unless started."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import yaml

from .bench import Bench
from .binaries import BenchMissingError
from .process import Program, free_ports

# A node carries this annotation to be kept by kwok; all others stay as their pool wrote them.
FAKE = {"kwok.x-k8s.io/node": "fake"}


def start(bench: Bench, exec_directory: Path | None = None, stages: Iterable[Path] = ()) -> Program:
    """Starts kwok: nodes with the annotation FAKE become Ready, pods bound to them Running.

    stages: files with rules of one's own, each in the place of kwok's of the same name.
    With a directory, exec into such a pod runs the command on this machine, there; kwok reports any exit
    code but 0 as an internal error. kwok ends with the bench, or by the stop of what this returns.
    Raises BenchMissingError where the programs came without kwok.
    """
    own = {file.name: file for file in stages}
    rules = {file.name: file for file in sorted((bench.binaries / "stages").glob("*.yaml"))}
    configuration = list({**rules, **own}.values())
    if not rules or not (bench.binaries / "kwok").exists():
        raise BenchMissingError(f"{bench.binaries} holds no kwok with its stages: unset KUBEBUILDER_ASSETS")
    if exec_directory is not None:
        configuration.append(bench.directory / "exec.yaml")
        configuration[-1].write_text(
            yaml.safe_dump(
                {
                    "apiVersion": "kwok.x-k8s.io/v1alpha1",
                    "kind": "ClusterExec",
                    "metadata": {"name": "local"},
                    "spec": {"execs": [{"local": {"workDir": str(exec_directory)}}]},
                }
            )
        )
    port = free_ports(1)[0]
    annotation = ",".join(f"{key}={value}" for key, value in FAKE.items())
    return bench.run(
        "kwok", f"--kubeconfig={bench.kubeconfig}", *(f"--config={file}" for file in configuration),
        "--manage-all-nodes=false", f"--manage-nodes-with-annotation-selector={annotation}",
        "--node-ip=127.0.0.1", f"--node-port={port}", f"--server-address=127.0.0.1:{port}",
        "--node-lease-duration-seconds=0",
    )  # fmt: skip
