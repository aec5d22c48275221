"""kwok: fake kubelets for nodes that ask for one. Off unless started."""

from __future__ import annotations

from .bench import Bench
from .binaries import BenchMissingError
from .process import Program, free_ports

# A node carries this annotation to be kept by kwok; all others stay as their pool wrote them.
FAKE = {"kwok.x-k8s.io/node": "fake"}


def start(bench: Bench) -> Program:
    """Starts kwok: nodes with the annotation FAKE become Ready, pods bound to them Running.

    It ends with the bench, or by the stop of what this returns. Raises BenchMissingError where the
    programs came without kwok.
    """
    stages = sorted((bench.binaries / "stages").glob("*.yaml"))
    if not stages or not (bench.binaries / "kwok").exists():
        raise BenchMissingError(f"{bench.binaries} holds no kwok with its stages: unset KUBEBUILDER_ASSETS")
    port = free_ports(1)[0]
    annotation = ",".join(f"{key}={value}" for key, value in FAKE.items())
    return bench.run(
        "kwok", f"--kubeconfig={bench.kubeconfig}", *(f"--config={stage}" for stage in stages),
        "--manage-all-nodes=false", f"--manage-nodes-with-annotation-selector={annotation}",
        "--node-ip=127.0.0.1", f"--node-port={port}", f"--server-address=127.0.0.1:{port}",
        "--node-lease-duration-seconds=0",
    )  # fmt: skip
