"""What the configuration of container runtimes, the kubelet and NVIDIA's toolkit says.

The functions take decoded TOML, JSON or YAML (plain data from outside, of any shape) and pick what matters; a value of
the wrong type counts as absent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

_CRI = ("cri", "io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime")
"""containerd's CRI plugin in configuration versions 1, 2 and 3."""


@dataclass(frozen=True)
class Handler:
    """A low-level runtime that a container engine knows. binary: its path, "" for the default. systemd: its cgroup
    driver is systemd; None when not said."""

    name: str
    binary: str = ""
    systemd: bool | None = None

    @property
    def nvidia(self) -> bool:
        return PurePosixPath(self.binary).name.startswith("nvidia-container-runtime")


@dataclass(frozen=True)
class Containerd:
    """paths: the files read, the imports last. version: of the configuration. default: the default handler's name.
    cdi: devices by CDI are switched on; None when not said. templates: k3s or rke2 templates that make the file."""

    paths: tuple[str, ...]
    version: int = 1
    default: str = "runc"
    handlers: tuple[Handler, ...] = ()
    cdi: bool | None = None
    templates: tuple[str, ...] = ()


@dataclass(frozen=True)
class Docker:
    """daemon.json. cgroup: `systemd`, `cgroupfs`, "" when not said."""

    path: str
    default: str = "runc"
    handlers: tuple[Handler, ...] = ()
    cgroup: str = ""


@dataclass(frozen=True)
class Crio:
    paths: tuple[str, ...]
    default: str = "crun"
    handlers: tuple[Handler, ...] = ()
    cgroup: str = "systemd"


@dataclass(frozen=True)
class Kubelet:
    """kind: kubelet, k3s or rke2. root: its root directory. config: the path of its file. cgroup: `systemd`,
    `cgroupfs`, "" when neither the command line nor the file says (from 1.31 on the runtime decides then)."""

    kind: str
    root: str
    config: str
    cgroup: str = ""
    source: str = ""


@dataclass(frozen=True)
class Toolkit:
    """NVIDIA container toolkit. envvar: unprivileged containers may ask for cards by NVIDIA_VISIBLE_DEVICES."""

    path: str
    envvar: bool = True
    volume_mounts: bool = False
    mode: str = "auto"


def merged(tables: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Tables laid over each other, the later ones win, as containerd treats imports."""
    result: dict[str, Any] = {}
    for table in tables:
        for key, value in table.items():
            old = result.get(key)
            both = isinstance(old, dict) and isinstance(value, Mapping)
            result[key] = merged([old, value]) if both else value  # type: ignore[list-item]
    return result


def containerd(table: Mapping[str, Any], paths: Sequence[str], templates: Sequence[str] = ()) -> Containerd:
    """From the merged TOML of config.toml and its imports."""
    plugins = _map(table.get("plugins"))
    cri = merged(_map(plugins.get(name)) for name in _CRI if name in plugins)
    section = _map(cri.get("containerd"))
    old_systemd = cri.get("systemd_cgroup") is True
    handlers = []
    for name, entry in _map(section.get("runtimes")).items():
        options = _map(_map(entry).get("options"))
        systemd = options.get("SystemdCgroup")
        binary = options.get("BinaryName") or _map(entry).get("runtime_engine") or ""
        said = systemd if isinstance(systemd, bool) else True if old_systemd else None
        handlers.append(Handler(name, str(binary), said))
    legacy = _map(section.get("default_runtime"))
    if legacy:
        options = _map(legacy.get("options"))
        binary = options.get("Runtime") or options.get("BinaryName") or legacy.get("runtime_engine") or ""
        handlers.append(Handler("default_runtime", str(binary), None))
    version = table.get("version")
    cdi = cri.get("enable_cdi")
    return Containerd(
        paths=tuple(paths),
        version=version if isinstance(version, int) else 1,
        default=_text(section.get("default_runtime_name")) or ("default_runtime" if legacy else "runc"),
        handlers=tuple(handlers),
        cdi=cdi if isinstance(cdi, bool) else None,
        templates=tuple(templates),
    )


def docker(table: Mapping[str, Any], path: str) -> Docker:
    """From daemon.json."""
    handlers = tuple(
        Handler(name, _text(_map(entry).get("path"))) for name, entry in _map(table.get("runtimes")).items()
    )
    options = table.get("exec-opts")
    driver = [
        str(option).partition("=")[2]
        for option in (options if isinstance(options, list) else [])
        if str(option).startswith("native.cgroupdriver=")
    ]
    return Docker(path, _text(table.get("default-runtime")) or "runc", handlers, driver[-1] if driver else "")


def crio(table: Mapping[str, Any], paths: Sequence[str]) -> Crio:
    """From the merged TOML of crio.conf and crio.conf.d."""
    section = _map(_map(table.get("crio")).get("runtime"))
    handlers = tuple(
        Handler(name, _text(_map(entry).get("runtime_path"))) for name, entry in _map(section.get("runtimes")).items()
    )
    default = _text(section.get("default_runtime")) or "crun"
    return Crio(tuple(paths), default, handlers, _text(section.get("cgroup_manager")) or "systemd")


def toolkit(table: Mapping[str, Any], path: str) -> Toolkit:
    """From the toolkit's config.toml; an absent key has the toolkit's own default."""
    envvar = table.get("accept-nvidia-visible-devices-envvar-when-unprivileged")
    mounts = table.get("accept-nvidia-visible-devices-as-volume-mounts")
    mode = _text(_map(table.get("nvidia-container-runtime")).get("mode")) or "auto"
    return Toolkit(path, envvar is not False, mounts is True, mode)


_KINDS = {"kubelet": "/var/lib/kubelet", "k3s": "/var/lib/kubelet", "rke2": "/var/lib/kubelet"}


def kubelet_command(commands: Iterable[Sequence[str]]) -> tuple[str, Sequence[str]] | None:
    """The kind and the arguments of the kubelet among command lines, None when there is none."""
    for arguments in commands:
        name = PurePosixPath(arguments[0]).name if arguments else ""
        if name in _KINDS and (name == "kubelet" or len(arguments) > 1):
            return name, arguments
    return None


def kubelet(
    kind: str, arguments: Sequence[str], table: Mapping[str, Any], default_config: str = "/var/lib/kubelet/config.yaml"
) -> Kubelet:
    """From the kubelet's command line and its configuration file; the command line wins."""
    config = kubelet_flag(arguments, "config") if kind == "kubelet" else ""
    flag = kubelet_flag(arguments, "cgroup-driver")
    path = config or default_config
    return Kubelet(
        kind=kind,
        root=(kubelet_flag(arguments, "root-dir") or _KINDS.get(kind, "/var/lib/kubelet")).rstrip("/"),
        config=path,
        cgroup=flag or _text(table.get("cgroupDriver")),
        source="its command line" if flag else path,
    )


def kubelet_flag(arguments: Sequence[str], name: str) -> str:
    """The value of `--name=value`, `--name value`, or (k3s, rke2) `--kubelet-arg=name=value`; "" when absent."""
    for number, argument in enumerate(arguments):
        match = re.fullmatch(rf"(?:--kubelet-arg=)?-?-?{re.escape(name)}=(.*)", argument)
        if match:
            return match.group(1)
        if argument == f"--{name}" and number + 1 < len(arguments):
            return arguments[number + 1]
    return ""


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
