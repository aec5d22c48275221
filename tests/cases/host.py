"""The host side of a doctor case, brought into the form of a bundle's tree.

A case has real paths under host/, and beside them texts: `ls*.txt` (paths, links as `path -> target`),
`proc/kubelet.cmdline`, and what commands printed (`nvidia-smi-*.txt`, `systemctl-*.txt`); `versions.json` says which
CDI version the engine understands.
"""

from __future__ import annotations

import json
from pathlib import Path

from vgpuctl.model.host import Stat
from vgpuctl.sources.recorded import RecordedFiles, tree


def host_files(case: Path, name: str = "node") -> RecordedFiles:
    """The files of the node of a doctor case."""
    files: dict[str, bytes] = {}
    stats: dict[str, Stat] = {}
    for path, data in tree(case / "host"):
        if path == "/proc/kubelet.cmdline":
            files["/proc/1/cmdline"] = b"\0".join(data.split()) + b"\0"
        elif path.count("/") == 1 and path.startswith("/ls") and path.endswith(".txt"):
            stats |= _listed(data.decode("utf-8", "replace"))
        elif path.count("/") == 1 and path.endswith(".txt"):
            files[f"/commands{path}"] = data
        else:
            files[path] = data
    versions = case / "versions.json"
    if versions.is_file():
        limit = json.loads(versions.read_text(encoding="utf-8")).get("cdi_max_supported")
        if isinstance(limit, str):
            files["/commands/cdi-limit.txt"] = limit.encode()
    return RecordedFiles(files, stats, name)


def _listed(text: str) -> dict[str, Stat]:
    found = {}
    for line in text.splitlines():
        path, _, target = line.strip().partition(" -> ")
        if not path.startswith("/"):
            continue
        kind = (
            "link" if target else "socket" if path.endswith(".sock") else "char" if path.startswith("/dev/") else "file"
        )
        found[path] = Stat(kind, 0o666, target=target)
    return found
