"""A machine through its files: /proc, /sys, /dev, the runtime's configuration.

Every field of `Host` is read on its own; what cannot be read is a missing Reading with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import TypeVar

from vgpuctl.model import proc, smi
from vgpuctl.model.card import MigProfile
from vgpuctl.model.host import ABSENT, FabricManager, Host, PciDevice, Security, Sockets, Space, Stat
from vgpuctl.model.proc import CardInfo
from vgpuctl.model.reading import Reading, known, missing
from vgpuctl.model.runtime import Kubelet
from vgpuctl.model.shim import HOOK_PATH, LIBRARY, REGIONS
from vgpuctl.sources import runtime
from vgpuctl.sources.files import Files

_NVIDIA = 0x10DE
_PROCESSES = 40_000
_COMMAND_LINE = 16_384
_VERSION = re.compile(r"\d{3}\.\d+(?:\.\d+)?")
_SOCKET_ROOTS = (
    "/var/lib/kubelet",
    "/var/lib/rancher/k3s/agent/kubelet",
    "/var/lib/rancher/rke2/agent/kubelet",
    "/var/lib/k0s/kubelet",
    "/var/snap/microk8s/common/var/lib/kubelet",
)
_SPACES = (REGIONS, HOOK_PATH, "/tmp")

COMMANDS: Mapping[str, tuple[str, ...]] = {
    "systemctl-nvidia-fabricmanager": ("systemctl", "status", "nvidia-fabricmanager", "--no-pager", "--lines=20"),
    "nvidia-smi-mig-lgip": ("nvidia-smi", "mig", "-lgip"),
    "dmesg": ("dmesg",),
    "containerd-version": ("containerd", "--version"),
    "docker-version": ("docker", "--version"),
    "crio-version": ("crio", "--version"),
}
"""Commands that only read, by the name that a bundle files their output under."""

T = TypeVar("T")


def read_host(files: Files) -> Host:
    """All of a machine, as far as `files` shows it."""
    commands = command_lines(files)
    kubelet = runtime.read_kubelet(files, commands)
    return Host(
        name=files.name,
        container=_container(files),
        kernel=files.read("/proc/sys/kernel/osrelease").map(str.strip),
        pci=_pci(files),
        modules=parsed(files.read("/proc/modules", 4 << 20), proc.modules),
        majors=parsed(files.read("/proc/devices"), proc.character_majors),
        nodes=_nodes(files),
        links=_links(files),
        driver=_driver(files),
        params=parsed(files.read("/proc/driver/nvidia/params"), proc.pairs),
        cards=_cards(files),
        uuids=_uuids(files),
        mig_profiles=_mig_profiles(files),
        xids=parsed(_command(files, "dmesg"), proc.xids),
        fabric_manager=_fabric_manager(files),
        security=_security(files),
        spaces=_spaces(files),
        tmp=files.stat("/tmp", follow=True),
        engines=runtime.read_engines(files, commands, _command),
        kubelet=kubelet,
        containerd=runtime.read_containerd(files, commands, kubelet),
        docker=runtime.read_docker(files),
        crio=runtime.read_crio(files),
        toolkit=runtime.read_toolkit(files),
        cdi=runtime.read_cdi(files),
        cdi_limit=files.read("/commands/cdi-limit.txt").map(str.strip),
        sockets=_sockets(files, kubelet),
        preload=files.read("/etc/ld.so.preload"),
    )


def parsed(reading: Reading[str], parse: Callable[[str], T]) -> Reading[T]:
    """A text turned into a value; a text that is not what it should be is missing, with the reason."""
    if reading.value is None:
        return reading.lost()
    try:
        return known(parse(reading.value), reading.source)
    except ValueError as error:
        return missing(f"{reading.source}: {error}", reading.source)


def command_lines(files: Files) -> Reading[tuple[tuple[str, ...], ...]]:
    """The command lines of all processes that can be seen."""
    names = files.list("/proc")
    if names.value is None:
        return names.lost()
    lines = []
    for name in [name for name in names.value if name.isdigit()][:_PROCESSES]:
        text = files.read(f"/proc/{name}/cmdline", _COMMAND_LINE).value
        if text:
            lines.append(tuple(text.rstrip("\0").split("\0")))
    if not lines:
        return missing("no process can be seen", "/proc")
    return known(tuple(lines), "/proc/*/cmdline")


def _command(files: Files, name: str) -> Reading[str]:
    return files.command(name, COMMANDS[name])


def _container(files: Files) -> Reading[str]:
    for path, name in (("/.dockerenv", "a Docker container"), ("/run/.containerenv", "a Podman container")):
        if files.stat(path).map(lambda found: found.exists).value:
            return known(name, path)
    if files.stat("/var/run/secrets/kubernetes.io/serviceaccount").map(lambda found: found.exists).value:
        return known("a pod", "/var/run/secrets/kubernetes.io/serviceaccount")
    return known("", "/")


def _pci(files: Files) -> Reading[tuple[PciDevice, ...]]:
    folder = "/sys/bus/pci/devices"
    names = files.list(folder)
    if names.value is None:
        return names.lost()
    devices = []
    for address in names.value:
        texts = [files.read(f"{folder}/{address}/{field}", 64).value for field in ("vendor", "device", "class")]
        try:
            vendor, device, kind = (int(text or "", 16) for text in texts)
        except ValueError:
            continue
        if vendor == _NVIDIA:
            devices.append(PciDevice(address, vendor, device, kind))
    return known(tuple(devices), folder)


def _nodes(files: Files) -> Reading[Mapping[str, Stat]]:
    names = files.list("/dev")
    if names.value is None:
        return names.lost()
    paths = [f"/dev/{name}" for name in names.value if name.startswith("nvidia") and name != "nvidia-caps"]
    paths += [f"/dev/nvidia-caps/{name}" for name in files.list("/dev/nvidia-caps").value or ()]
    found = {path: files.stat(path).value for path in paths}
    return known({path: value for path, value in found.items() if value is not None}, "/dev")


def _links(files: Files) -> Reading[Mapping[str, str]]:
    names = files.list("/dev/char")
    if names.value is None:
        return names.lost()
    found = {name: files.stat(f"/dev/char/{name}").map(lambda stat: stat.target).value for name in names.value}
    return known({name: target for name, target in found.items() if target and "nvidia" in target}, "/dev/char")


def _driver(files: Files) -> Reading[proc.ModuleVersion]:
    reading = parsed(files.read("/proc/driver/nvidia/version"), proc.module_version)
    if reading.known:
        return reading
    other = files.read("/sys/module/nvidia/version")
    return other.map(lambda text: proc.ModuleVersion(text.strip())) if other.known else reading


def _cards(files: Files) -> Reading[tuple[CardInfo, ...]]:
    folder = "/proc/driver/nvidia/gpus"
    names = files.list(folder)
    if names.value is None:
        return names.lost()
    found = [parsed(files.read(f"{folder}/{name}/information"), proc.card_info) for name in names.value]
    broken = next((reading for reading in found if not reading.known), None)
    if broken is not None:
        return broken.lost()
    return known(tuple(reading.need() for reading in found), folder)


def _uuids(files: Files) -> Reading[tuple[str, ...]]:
    cards = _cards(files)
    if cards.value:
        return cards.map(lambda found: tuple(card.uuid for card in found))
    listed = files.read("/commands/nvidia-smi-L.txt").map(lambda text: tuple(smi.uuids(text)))
    return listed if listed.value else cards.map(lambda found: ())


def _mig_profiles(files: Files) -> Reading[tuple[MigProfile, ...]]:
    reading = parsed(files.read("/commands/nvidia-smi-mig-lgip.txt"), smi.mig_profiles)
    return reading if reading.value else missing("the driver was not asked for MIG profiles", "nvidia-smi mig -lgip")


def _fabric_manager(files: Files) -> Reading[FabricManager]:
    reading = _command(files, "systemctl-nvidia-fabricmanager")
    return reading.map(fabric_manager)


def fabric_manager(text: str) -> FabricManager:
    """From `systemctl status nvidia-fabricmanager`."""
    active = bool(re.search(r"^\s*Active: active", text, re.M))
    line = next((line.strip() for line in text.splitlines() if "version" in line and _VERSION.search(line)), "")
    found = _VERSION.search(line)
    state = next((line.strip() for line in text.splitlines() if "Active:" in line or "could not be found" in line), "")
    return FabricManager(active, found.group() if found else "", line or state or text.strip()[:200])


def _security(files: Files) -> Reading[Security]:
    enforce = files.read("/sys/fs/selinux/enforce", 16).map(str.strip).value
    apparmor = files.read("/sys/module/apparmor/parameters/enabled", 16).map(str.strip).value == "Y"
    if enforce is None and not files.list("/sys/fs").known:
        return missing("/sys/fs cannot be read", "/sys/fs")
    state = {"1": "enforcing", "0": "permissive"}.get(enforce or "", "off")
    library = files.stat(LIBRARY).value or ABSENT
    return known(Security(state, apparmor, library, files.stat(REGIONS).value or ABSENT), "/sys/fs/selinux/enforce")


def _spaces(files: Files) -> Reading[Mapping[str, Space]]:
    found = {path: files.space(path) for path in _SPACES}
    values = {path: reading.value for path, reading in found.items() if reading.value is not None}
    if not values:
        return found["/tmp"].lost()
    return known(values, "statvfs")


def _sockets(files: Files, kubelet: Reading[Kubelet]) -> Reading[tuple[Sockets, ...]]:
    roots = dict.fromkeys([kubelet.value.root] if kubelet.value else [])
    roots |= dict.fromkeys(_SOCKET_ROOTS)
    found = []
    for root in roots:
        path = f"{root}/device-plugins"
        names = files.list(path)
        real = files.real(path)
        if names.value is not None and real.value is not None:
            sockets = tuple(name for name in names.value if name.endswith(".sock"))
            found.append(Sockets(path, real.value, sockets))
    if not found:
        return missing("no directory of device plugin sockets is here", f"{_SOCKET_ROOTS[0]}/device-plugins")
    return known(tuple(found), f"{PurePosixPath(found[0].path)}")
