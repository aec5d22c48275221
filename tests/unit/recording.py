"""A bundle of one GPU node, made from the texts of tests/data/captures, for tests of whole commands."""

from __future__ import annotations

import json
from pathlib import Path

from tests.unit.machines import TEXTS
from vgpuctl.model import proc

NODE = "gpu-1"
MADE = "2026-12-01T03:05:00Z"
LSPCI = "/sys/bus/pci/devices/0000:00:06.0"

FILES = {
    "/proc/sys/kernel/osrelease": "6.18.44\n",
    "/proc/modules": TEXTS["cat /proc/modules | grep -i nvidia"],
    "/proc/devices": "Character devices:\n" + TEXTS["cat /proc/devices | grep -i nvid"] + "\nBlock devices:\n",
    "/proc/driver/nvidia/version": TEXTS["cat /proc/driver/nvidia/version"],
    "/proc/driver/nvidia/params": TEXTS["cat /proc/driver/nvidia/params"],
    "/proc/driver/nvidia/gpus/0000:00:06.0/information": TEXTS["cat /proc/driver/nvidia/gpus/*/information"],
    f"{LSPCI}/vendor": "0x10de\n",
    f"{LSPCI}/device": "0x2335\n",
    f"{LSPCI}/class": "0x030200\n",
    "/sys/fs/selinux/enforce": "0\n",
    "/etc/containerd/config.toml": """\
version = 3
[plugins."io.containerd.cri.v1.runtime".containerd]
default_runtime_name = "nvidia"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.nvidia.options]
BinaryName = "/usr/bin/nvidia-container-runtime"
SystemdCgroup = true
""",
    "/etc/nvidia-container-runtime/config.toml": "disable-require = false\n",
    "/var/lib/kubelet/config.yaml": "kind: KubeletConfiguration\ncgroupDriver: systemd\n",
    "/commands/containerd-version.txt": "containerd github.com/containerd/containerd/v2 v2.0.5 fb4c30d\n",
    "/commands/dmesg.txt": "[    1.0] NVRM: loading NVIDIA UNIX Open Kernel Module\n",
    "/commands/df.txt": "Mounted 1B-blocks Avail Inodes IFree\n/tmp 429496729600 214748364800 10000000 9000000\n",
    "/commands/nvidia-smi-q-x.txt": TEXTS["nvidia-smi -q -x"],
}


def stats() -> str:
    """stat.tsv: the device nodes, the links to them, and what is not there."""
    lines = []
    for row in proc.listing(TEXTS["ls -l /dev/nvidia* /dev/char 2>&1 | grep -i nvid"]):
        lines.append(f"{row.name}\tc\t{row.mode:o}\t0\t0\t{row.size}:{row.minor}")
        lines.append(f"/dev/char/{row.size}:{row.minor}\tl\t777\t0\t0\t\t..{row.name.removeprefix('/dev')}")
    lines.append("/tmp\td\t1777\t0\t0")
    absent = ("/etc/cdi", "/var/run/cdi", "/run/cdi", "/etc/docker/daemon.json", "/etc/crio/crio.conf", "/.dockerenv")
    return "\n".join([*lines, *(f"{path}\tabsent" for path in absent)]) + "\n"


def record(folder: Path, *, without: tuple[str, ...] = (), **changes: str) -> Path:
    """Writes the bundle. without: paths (of files or device nodes) that are not there, recorded as such."""
    base = folder / "nodes" / NODE
    for path, text in {**FILES, **changes}.items():
        if path not in without:
            place = base / "host" / path.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
    kept = [line for line in stats().splitlines() if line.split("\t")[0] not in without]
    gone = [f"{path}\tabsent" for path in without]
    (base / "stat.tsv").write_text("\n".join([*kept, *gone]) + "\n", encoding="utf-8")
    (folder / "meta.json").write_text(json.dumps({"made": MADE, "source": "the lab"}), encoding="utf-8")
    return folder
