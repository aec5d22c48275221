"""Carries out Changes on this machine: runs a command, writes a file; what concerns a cluster goes to the cluster."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from typing import Any

from vgpuctl.model.change import Change, How, Target
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.sources.edit import write_bytes, write_text
from vgpuctl.sources.files import TRUSTED_PATH
from vgpuctl.sources.manifests import rewrite
from vgpuctl.sources.source import Writer

_SECONDS = 60.0


class MachineWriter:
    """This machine, and the cluster beside it if there is one."""

    def __init__(self, cluster: Writer | None = None) -> None:
        self._cluster = cluster

    def get(self, target: Target) -> dict[str, Any] | None:
        return self._objects(target).get(target)

    def create(self, target: Target, body: dict[str, Any], *, dry_run: bool = False) -> dict[str, Any]:
        return self._objects(target).create(target, body, dry_run=dry_run)

    def write(self, change: Change, *, dry_run: bool = False, force: bool = False) -> dict[str, Any]:
        """Carries out one change. Raises Problem when the command fails, is not there, or takes over a minute, and when
        a file cannot be written or is not what it was."""
        work = _HERE.get(change.how)
        if work is None:
            return self._objects(change.target).write(change, dry_run=dry_run, force=force)
        if not dry_run:
            work(change)
        return {}

    def _objects(self, target: Target) -> Writer:
        if self._cluster is None:
            raise Problem(f"{target} cannot be written: there is no cluster", remedy="give --kubeconfig FILE")
        return self._cluster


def run(arguments: tuple[str, ...]) -> None:
    """Runs a command as it stands, without a shell. Raises Problem with what it said when it fails."""
    shown = " ".join(arguments)
    environment = {**os.environ, "PATH": f"{os.environ.get('PATH', '')}:{TRUSTED_PATH}", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_SECONDS,
            env=environment,
            check=False,
        )
    except FileNotFoundError:
        raise Problem(f"`{shown}` cannot be run", f"{arguments[0]} is not installed", exit_code=Exit.FINDINGS) from None
    except OSError as error:
        raise Problem(f"`{shown}` cannot be run", str(error.strerror), exit_code=Exit.FINDINGS) from None
    except subprocess.TimeoutExpired:
        raise Problem(f"`{shown}` did not end within {_SECONDS:.0f} s", exit_code=Exit.TIMEOUT) from None
    if done.returncode:
        said = done.stdout.decode("utf-8", "replace").strip().splitlines()
        remedy = "" if os.geteuid() == 0 else "run vgpuctl as root"
        raise Problem(f"`{shown}` failed", said[-1] if said else f"exit code {done.returncode}", remedy, Exit.FINDINGS)


_HERE: Mapping[How, Callable[[Change], None]] = {
    How.COMMAND: lambda change: run(change.after),
    How.FILE: write_text,
    How.BYTES: write_bytes,
    How.FILES: rewrite,
}
