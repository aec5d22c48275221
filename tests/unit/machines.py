"""A healthy GPU node as facts, to be changed in one thing by each test: the H200 node of tests/data/captures."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from vgpuctl.model import proc, smi
from vgpuctl.model.card import Library, Process
from vgpuctl.model.cdi import CdiSpec
from vgpuctl.model.facts import Facts
from vgpuctl.model.host import Host, PciDevice, Security, Space, Stat
from vgpuctl.model.reading import Reading, known, missing
from vgpuctl.model.region import RegionFile, parse
from vgpuctl.model.runtime import Containerd, Handler, Kubelet, Toolkit
from vgpuctl.model.shim import LIBRARY, LOCKS, MOUNTED, PRELOAD, REGIONS, Locks, Mapped, Program, Shim, ShimFile

CAPTURES = Path(__file__).parent.parent / "data" / "captures"
CAPTURED: dict[str, Any] = json.loads((CAPTURES / "facts.json").read_text(encoding="utf-8"))
TEXTS: dict[str, str] = CAPTURED["node"]
UUID = "GPU-5e1f0c2a-7d34-4b9e-8a61-c0ffee200001"
GIB = 1 << 30
NOW = 1_796_093_900.0
POD = "0d1e2f3a-0000-4000-8000-000000000001"
CONTAINER = f"{REGIONS}/{POD}_train"
UNREAD: Reading[Any] = missing("permission denied", "/somewhere", denied=True)


def absent(path: str) -> Reading[Any]:
    """A file that is known not to exist."""
    return missing(f"{path}: No such file or directory", path, absent=True)


def healthy() -> Facts:
    """A node on which every check of a machine passes or does not apply."""
    driver, cards = smi.xml(TEXTS["nvidia-smi -q -x"])
    library = known(Library("/usr/lib/x86_64-linux-gnu/libcuda.so.580.159.04", "580.159.04", "13.0"), "libcuda.so.1")
    return Facts(
        source="this node gpu-1",
        now=NOW,
        host=known(_host(), "gpu-1"),
        driver=known(replace(driver, library=library), "NVML"),
        cards=known((replace(cards[0], processes=known(listed("one-8g-50"), "NVML")),), "NVML"),
        regions=known((region("one-8g-50"),), REGIONS),
        shim=known(_shim(), "gpu-1", NOW),
    )


def listed(capture: str) -> tuple[Process, ...]:
    """The processes that NVML listed when a region was captured."""
    rows = CAPTURED["regions"][capture].get("nvml_processes", ())
    return tuple(Process(row["pid"], memory=row["bytes"]) for row in rows)


def region(capture: str) -> RegionFile:
    """A captured region as that of a container, its slots judged by the processes that NVML listed."""
    alive = {process.pid for process in listed(capture)}
    data = gzip.decompress((CAPTURES / f"{capture}.cache.gz").read_bytes())
    path = f"{CONTAINER}/{capture}.cache"
    found = parse(data).with_life(lambda slot: slot.pid in alive)
    return RegionFile(path, known(found, path), pod=POD, container="train")


def _shim() -> Shim:
    library = ShimFile(LIBRARY, Stat("file", 0o755, inode=77), "x86_64", "2.17", "5e1f" * 16, ours=True)
    pid = listed("one-8g-50")[0].pid
    program = Program(pid, POD, known(Mapped(MOUNTED, 77, False), f"/proc/{pid}/maps"))
    return Shim(
        used=True,
        file=known(library, LIBRARY),
        preload=known(f"{MOUNTED}\n", PRELOAD),
        machine=known("x86_64", "/bin/sh"),
        glibc=known("2.36", "/lib/x86_64-linux-gnu/libc.so.6"),
        programs=known((program,), "/proc/*/maps"),
        locks=known(Locks(Stat("directory", 0o777), Stat("absent")), LOCKS),
    )


def _host() -> Host:
    listed = proc.listing(TEXTS["ls -l /dev/nvidia* /dev/char 2>&1 | grep -i nvid"])
    nodes = {row.name: Stat("char", row.mode, 0, 0, row.size, row.minor or 0) for row in listed}
    nvidia = Handler("nvidia", "/usr/bin/nvidia-container-runtime", True)
    containerd = Containerd(("/etc/containerd/config.toml",), 2, "nvidia", (nvidia,))
    return Host(
        name="gpu-1",
        container=known("", "/"),
        kernel=known("6.18.44", "/proc/sys/kernel/osrelease"),
        pci=known((PciDevice("0000:00:06.0", 0x10DE, 0x2335, 0x030200),), "/sys/bus/pci/devices"),
        modules=known(proc.modules(TEXTS["cat /proc/modules | grep -i nvidia"]), "/proc/modules"),
        majors=known(proc.character_majors(TEXTS["cat /proc/devices | grep -i nvid"]), "/proc/devices"),
        nodes=known(nodes, "/dev"),
        links=known({"195:0": "../nvidia0", "195:255": "../nvidiactl"}, "/dev/char"),
        driver=known(proc.module_version(TEXTS["cat /proc/driver/nvidia/version"]), "/proc/driver/nvidia/version"),
        params=known(proc.pairs(TEXTS["cat /proc/driver/nvidia/params"]), "/proc/driver/nvidia/params"),
        cards=known((proc.card_info(TEXTS["cat /proc/driver/nvidia/gpus/*/information"]),), "/proc/driver/nvidia/gpus"),
        uuids=known((UUID,), "/proc/driver/nvidia/gpus"),
        xids=known((), "dmesg"),
        fabric_manager=absent("systemctl"),
        security=known(Security("off", False), "/sys/fs/selinux/enforce"),
        spaces=known({"/tmp": Space(400 * GIB, 200 * GIB, 10**7, 9 * 10**6)}, "statvfs"),
        tmp=known(Stat("directory", 0o1777), "/tmp"),
        engines=known({"containerd": "1.7.24"}, "containerd --version"),
        kubelet=known(
            Kubelet(
                "kubelet", "/var/lib/kubelet", "/var/lib/kubelet/config.yaml", "systemd", "/var/lib/kubelet/config.yaml"
            ),
            "/var/lib/kubelet/config.yaml",
        ),
        containerd=known(containerd, "/etc/containerd/config.toml"),
        docker=absent("/etc/docker/daemon.json"),
        crio=absent("/etc/crio/crio.conf"),
        toolkit=known(
            Toolkit("/etc/nvidia-container-runtime/config.toml"), "/etc/nvidia-container-runtime/config.toml"
        ),
        cdi=known(
            (CdiSpec("/etc/cdi/nvidia.yaml", "0.5.0", "nvidia.com/gpu", ("0", UUID, "all"), ("/dev/nvidia0",)),),
            "/etc/cdi",
        ),
        cdi_limit=known("0.7.0", "containerd"),
        preload=absent("/etc/ld.so.preload"),
    )


def with_host(facts: Facts, **changes: Any) -> Facts:
    """The facts with fields of the host changed."""
    return replace(facts, host=known(replace(facts.host.need(), **changes), facts.host.source))


def with_shim(facts: Facts, **changes: Any) -> Facts:
    """The facts with fields of the shim changed."""
    return replace(facts, shim=known(replace(facts.shim.need(), **changes), facts.shim.source, facts.shim.at))


def with_card(facts: Facts, **changes: Any) -> Facts:
    """The facts with fields of the first card changed."""
    first, *rest = facts.cards.need()
    return replace(facts, cards=known((replace(first, **changes), *rest), "NVML"))


def with_driver(facts: Facts, **changes: Any) -> Facts:
    """The facts with fields of the driver changed."""
    return replace(facts, driver=known(replace(facts.driver.need(), **changes), "NVML"))
