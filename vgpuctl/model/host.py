"""A machine as its own files tell it: /proc, /sys, /dev, the runtime's configuration.

`Host` holds Readings of what the files said, already parsed (`model.proc`, `model.runtime`, `model.cdi`). The same type
is filled from the local root, a pod on a node and a bundle.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from vgpuctl.model.card import MigProfile
from vgpuctl.model.cdi import CdiSpec
from vgpuctl.model.proc import CardInfo, Modules, ModuleVersion
from vgpuctl.model.reading import Reading, missing
from vgpuctl.model.runtime import Containerd, Crio, Docker, Kubelet, Toolkit

_NOT_READ = "not read"


@dataclass(frozen=True)
class Stat:
    """What lstat says of a path. kind: absent, file, directory, link, char, block, fifo, socket or other; that a path
    does not exist is a fact, not a missing one. mode: permission bits. label: the SELinux label, "" for none.
    inode and modified (Unix seconds): 0 where they were not recorded."""

    kind: str
    mode: int = 0
    uid: int = 0
    gid: int = 0
    major: int = 0
    minor: int = 0
    target: str = ""
    size: int = 0
    label: str = ""
    inode: int = field(default=0, compare=False)
    modified: float = field(default=0.0, compare=False)

    @property
    def exists(self) -> bool:
        return self.kind != "absent"


ABSENT = Stat("absent")


@dataclass(frozen=True)
class Space:
    """A file system, in bytes and inodes; inodes 0: the file system does not count them."""

    total: int
    free: int
    inodes: int = 0
    inodes_free: int = 0


@dataclass(frozen=True)
class PciDevice:
    """A PCI function. address: such as 0000:00:06.0. kind: the class, 24 bits (03xxxx: display)."""

    address: str
    vendor: int
    device: int
    kind: int


@dataclass(frozen=True)
class Sockets:
    """A directory of device plugin sockets. path: as named. real: after links. names: the sockets in it."""

    path: str
    real: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class FabricManager:
    """active: the service runs. version: of its interface, "" when it does not say. text: the line that says so."""

    active: bool
    version: str
    text: str


@dataclass(frozen=True)
class Security:
    """selinux: enforcing, permissive or off. apparmor: enabled. library and regions: what they are labelled."""

    selinux: str
    apparmor: bool
    library: Stat = ABSENT
    regions: Stat = ABSENT


@dataclass(frozen=True)
class Host:
    """What is known of one machine. Each field is a Reading of its own.

    container: what contains us ("" on the machine itself): then only what the container shows can be read.
    pci: its NVIDIA functions. nodes: the nvidia device nodes by path. links: /dev/char links to them.
    majors: character device majors by name. spaces: file systems by path. xids: Xid lines of the kernel log.
    engines: versions of container engines by name. cdi_limit: the newest CDI version that the runtime understands.
    """

    name: str
    container: Reading[str] = missing(_NOT_READ)
    kernel: Reading[str] = missing(_NOT_READ)
    pci: Reading[tuple[PciDevice, ...]] = missing(_NOT_READ)
    modules: Reading[Modules] = missing(_NOT_READ)
    majors: Reading[Mapping[str, int]] = missing(_NOT_READ)
    nodes: Reading[Mapping[str, Stat]] = missing(_NOT_READ)
    links: Reading[Mapping[str, str]] = missing(_NOT_READ)
    driver: Reading[ModuleVersion] = missing(_NOT_READ)
    params: Reading[Mapping[str, str]] = missing(_NOT_READ)
    cards: Reading[tuple[CardInfo, ...]] = missing(_NOT_READ)
    uuids: Reading[tuple[str, ...]] = missing(_NOT_READ)
    mig_profiles: Reading[tuple[MigProfile, ...]] = missing(_NOT_READ)
    xids: Reading[tuple[str, ...]] = missing(_NOT_READ)
    fabric_manager: Reading[FabricManager] = missing(_NOT_READ)
    security: Reading[Security] = missing(_NOT_READ)
    spaces: Reading[Mapping[str, Space]] = missing(_NOT_READ)
    tmp: Reading[Stat] = missing(_NOT_READ)
    engines: Reading[Mapping[str, str]] = missing(_NOT_READ)
    kubelet: Reading[Kubelet] = missing(_NOT_READ)
    containerd: Reading[Containerd] = missing(_NOT_READ)
    docker: Reading[Docker] = missing(_NOT_READ)
    crio: Reading[Crio] = missing(_NOT_READ)
    toolkit: Reading[Toolkit] = missing(_NOT_READ)
    cdi: Reading[tuple[CdiSpec, ...]] = missing(_NOT_READ)
    cdi_limit: Reading[str] = missing(_NOT_READ)
    sockets: Reading[tuple[Sockets, ...]] = missing(_NOT_READ)
    preload: Reading[str] = missing(_NOT_READ)

    @property
    def has_gpu(self) -> bool | None:
        """Whether an NVIDIA card is here by any sign; None when nothing could be read."""
        signs = [
            self.pci.map(lambda found: any(device.kind >> 16 == 3 for device in found)).value,
            self.cards.map(bool).value,
            self.driver.known or None,
            self.nodes.map(lambda nodes: any(path[len("/dev/nvidia") :].isdigit() for path in nodes)).value,
        ]
        if any(signs):
            return True
        return None if all(sign is None for sign in signs) else False
