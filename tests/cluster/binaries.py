"""Where the programs of the bench come from: KUBEBUILDER_ASSETS, the cache, or a Go build."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

TOOLS = Path(__file__).parent / "tools"
KUBERNETES = "v1.36.1"

# Outside the repository, kept between runs. Read once: tests change HOME.
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vgpuctl" / "bench"

PACKAGES = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kubectl": "k8s.io/kubernetes/cmd/kubectl",
    "kwok": "sigs.k8s.io/kwok/cmd/kwok",
}
OPTIONAL = {"kwok"}

# Without a version the API server reports v0.0.0-master, which clients cannot parse.
_MAJOR, _MINOR, _ = KUBERNETES[1:].split(".")
LDFLAGS = "-s -w " + " ".join(
    f"-X k8s.io/component-base/version.{name}={value}"
    for name, value in {"gitVersion": KUBERNETES, "gitMajor": _MAJOR, "gitMinor": _MINOR}.items()
)


class BenchMissingError(Exception):
    """The bench cannot run here; the text says why and what to do."""


def key() -> str:
    """What decides the programs: the pinned modules and the build flags, as a sha256."""
    digest = hashlib.sha256(LDFLAGS.encode())
    for name in ("go.mod", "go.sum"):
        digest.update((TOOLS / name).read_bytes())
    return digest.hexdigest()


def say(line: str) -> None:
    """The default progress: a line on stderr."""
    print(line, file=sys.stderr, flush=True)


def find(progress: Callable[[str], None] = say) -> Path:
    """The directory that holds the programs; builds them if that is the only way.

    Raises BenchMissingError with the reason when there is none and none can be built.
    """
    if assets := os.environ.get("KUBEBUILDER_ASSETS"):
        missing = [n for n in PACKAGES if n not in OPTIONAL and not os.access(Path(assets) / n, os.X_OK)]
        if missing:
            raise BenchMissingError(
                f"KUBEBUILDER_ASSETS={assets} lacks {', '.join(missing)}: "
                "add them there, or unset it to have them built"
            )
        return Path(assets)
    directory = CACHE / key()
    if not directory.is_dir():
        _build(directory, progress)
    return directory


def _build(directory: Path, progress: Callable[[str], None]) -> None:
    go = shutil.which("go")
    if go is None:
        raise BenchMissingError(
            "the test bench needs Go (to build etcd and Kubernetes once), or KUBEBUILDER_ASSETS with "
            + ", ".join(n for n in PACKAGES if n not in OPTIONAL)
        )
    directory.parent.mkdir(parents=True, exist_ok=True)
    with (directory.parent / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("bench: waiting for another build of the same programs")
            fcntl.flock(lock, fcntl.LOCK_EX)
        if not directory.is_dir():
            for leftover in directory.parent.glob("build-*"):
                shutil.rmtree(leftover)
            with tempfile.TemporaryDirectory(prefix="build-", dir=directory.parent) as scratch:
                _compile(go, Path(scratch), progress)
                Path(scratch, "bin").rename(directory)


def _compile(go: str, scratch: Path, progress: Callable[[str], None]) -> None:
    progress("bench: building etcd, Kubernetes and kwok once (about 12 minutes on two cores) ...")
    start = time.monotonic()
    packages = list(PACKAGES.values())
    # -p 2 and nice: a build must not take over the machine of somebody who only ran the tests.
    command = [go, "build", "-p", "2", "-trimpath", "-ldflags", LDFLAGS, "-o", f"{scratch}/bin/", *packages]
    environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly", "GOWORK": "off"}
    result = subprocess.run(
        ["nice", *command], cwd=TOOLS, env=environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
    )  # fmt: skip
    if result.returncode != 0:
        raise BenchMissingError(f"go build of the bench failed in {TOOLS}:\n{result.stdout[-3000:]}")
    # Go names a program after the last element of its path that is not a version.
    (scratch / "bin" / "server").rename(scratch / "bin" / "etcd")
    _copy_stages(go, scratch / "bin" / "stages")
    progress(f"bench: built in {time.monotonic() - start:.0f} s, kept in {scratch.parent}")


def _copy_stages(go: str, target: Path) -> None:
    """kwok's rules for nodes and pods, kept beside it: Go's module cache may be emptied later."""
    command = [go, "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kwok"]
    module = subprocess.run(command, cwd=TOOLS, capture_output=True, text=True, check=True).stdout.strip()
    target.mkdir()
    for kind in ("node", "pod"):
        for stage in Path(module, "kustomize", "stage", kind, "fast").glob(f"{kind}-*.yaml"):
            # Not copy(): the module cache is read-only, and so would be the copy.
            (target / stage.name).write_bytes(stage.read_bytes())
