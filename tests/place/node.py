"""A node's directory under a temporary root, on which the placement script runs as a pod runs it."""

from __future__ import annotations

import gzip
import hashlib
import platform
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from vgpuctl import resources
from vgpuctl.model.install.manifests import SCRIPT

MACHINE = platform.machine()
HERE = Path(__file__).parent


@dataclass(frozen=True)
class Shell:
    """A shell with the programs of its system, and no others. path: as in $PATH."""

    name: str
    command: tuple[str, ...]
    path: str


def dash(folder: Path) -> Shell | None:
    found = shutil.which("dash")
    return Shell("dash", (found,), "/usr/bin:/bin") if found else None


def busybox(folder: Path) -> Shell | None:
    """busybox with its own programs only."""
    found = shutil.which("busybox")
    if not found:
        return None
    names = subprocess.run([found, "--list"], capture_output=True, text=True, check=True).stdout.split()
    for name in names:
        (folder / name).symlink_to(found)
    return Shell("busybox", (found, "sh"), str(folder))


@dataclass
class Ran:
    """How a run of the script ended. word: the container's termination message."""

    code: int
    out: str
    word: str


@dataclass
class Node:
    """root: holds all. hook: the directory that the library is placed in; it need not be below root."""

    root: Path
    shell: Shell
    hook: Path = field(init=False)

    def __post_init__(self) -> None:
        self.hook = self.root / "hook"
        self.source = self.root / "source"
        self.locks = self.root / "locks"
        self.log = self.root / "termination-log"
        self.log.touch()

    def environment(self, libraries: Mapping[str, str] | None, **changed: str) -> dict[str, str]:
        """libraries: architecture → sha256; None: SOURCE is the library."""
        pairs = {} if libraries is None else {"LIBRARIES": " ".join(f"{key}:{sha}" for key, sha in libraries.items())}
        return {
            "PATH": self.shell.path,
            "HOOK_PATH": str(self.hook),
            "SOURCE": str(self.source),
            "LOCK_PATH": str(self.locks),
            "TERMINATION_LOG": str(self.log),
            **pairs,
            **changed,
        }

    def command(self, mode: str) -> list[str]:
        return [*self.shell.command, "-c", resources.text(SCRIPT), "place.sh", mode]

    def offer(self, library: bytes, machine: str = MACHINE) -> dict[str, str]:
        """Puts a library where its ConfigMap would be mounted; what is to be asked for then."""
        packed = self.source / machine / "libvgpu.so.gz"
        packed.parent.mkdir(parents=True, exist_ok=True)
        packed.write_bytes(gzip.compress(library, 1))
        return {machine: hashlib.sha256(library).hexdigest()}

    def run(self, mode: str, environment: Mapping[str, str], around: Sequence[str] = ()) -> Ran:
        """around: a command that runs the rest of its arguments."""
        self.log.write_text("")
        command = [*around, *self.command(mode)]
        done = subprocess.run(command, env=dict(environment), capture_output=True, text=True, check=False, timeout=60)
        assert done.stderr == ""
        return Ran(done.returncode, done.stdout, self.log.read_text())

    def place(self, library: bytes) -> Ran:
        """Offers and places."""
        return self.run("place", self.environment(self.offer(library)))

    @property
    def library(self) -> Path:
        return self.hook / "libvgpu.so"

    def leftovers(self) -> list[str]:
        """Names of temporaries."""
        return [path.name for path in self.hook.glob(".vgpuctl.*")]


def build(folder: Path, source: str, name: str, *flags: str) -> Path:
    """A program or library of this folder's C files."""
    target = folder / name
    subprocess.run(["cc", "-O1", "-o", str(target), str(HERE / source), *flags], check=True)
    return target
