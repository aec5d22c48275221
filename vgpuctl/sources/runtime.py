"""Reads how the container engines, the kubelet and NVIDIA's toolkit of a machine are configured."""

from __future__ import annotations

import fnmatch
import json
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

import yaml

from vgpuctl.model import runtime as model
from vgpuctl.model.cdi import CdiSpec, cdi_spec
from vgpuctl.model.reading import Reading, known, missing
from vgpuctl.sources.files import Files

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_CONTAINERD = {
    "k3s": "/var/lib/rancher/k3s/agent/etc/containerd/config.toml",
    "rke2": "/var/lib/rancher/rke2/agent/etc/containerd/config.toml",
    "kubelet": "/etc/containerd/config.toml",
    "microk8s": "/var/snap/microk8s/current/args/containerd.toml",
    "k0s": "/etc/k0s/containerd.toml",
}
_TEMPLATES = ("config.toml.tmpl", "config-v3.toml.tmpl")
_TOOLKIT = (
    "/usr/local/nvidia/toolkit/.config/nvidia-container-runtime/config.toml",
    "/etc/nvidia-container-runtime/config.toml",
)
_CDI = ("/etc/cdi", "/var/run/cdi", "/run/cdi")
_IMPORTS = 50
_VERSION = re.compile(r"\bv?(\d+\.\d+(?:\.\d+)?)")
_ENGINES = {"containerd": "containerd", "docker": "dockerd", "crio": "crio"}
_Lines = Reading[tuple[tuple[str, ...], ...]]
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_kubelet(files: Files, commands: _Lines) -> Reading[model.Kubelet]:
    """The kubelet that runs, else the one whose configuration file is there."""
    found = model.kubelet_command(commands.value or ())
    default = "/var/lib/kubelet/config.yaml"
    kind, arguments = found or ("kubelet", ())
    path = model.kubelet_flag(arguments, "config") or default
    table = _decoded(files, path, _yaml)
    if found is None and table.value is None:
        return missing("no kubelet is here", path, absent=True) if table.absent and commands.known else table.lost()
    content = table.value if isinstance(table.value, Mapping) else {}
    return known(model.kubelet(kind, arguments, content, default), path)


def read_containerd(files: Files, commands: _Lines, kubelet: Reading[model.Kubelet]) -> Reading[model.Containerd]:
    """containerd's configuration: the file that it was started with, else the one of the kubelet's distribution."""
    started = [
        model.kubelet_flag(line, "config") or model.kubelet_flag(line, "c")
        for line in commands.value or ()
        if line and PurePosixPath(line[0]).name == "containerd"
    ]
    kind = kubelet.value.kind if kubelet.value else "kubelet"
    places = dict.fromkeys([*filter(None, started), _CONTAINERD[kind], *_CONTAINERD.values()])
    reasons = []
    for path in places:
        reading = _toml_tree(files, path)
        if reading.value is not None:
            tables, paths = reading.value
            folder = str(PurePosixPath(path).parent)
            templates = [f"{folder}/{name}" for name in _TEMPLATES if files.read(f"{folder}/{name}").known]
            return known(model.containerd(model.merged(tables), paths, templates), path)
        reasons.append(reading)
        if files.stat(path).map(lambda found: found.exists).value:
            return reading.lost()
    return reasons[0].lost()


def read_docker(files: Files) -> Reading[model.Docker]:
    path = "/etc/docker/daemon.json"
    return _decoded(files, path, _json).map(lambda table: model.docker(table, path))


def read_crio(files: Files) -> Reading[model.Crio]:
    paths = ["/etc/crio/crio.conf"]
    paths += [f"/etc/crio/crio.conf.d/{name}" for name in files.list("/etc/crio/crio.conf.d").value or ()]
    readings = [(path, _decoded(files, path, _toml)) for path in paths if path.endswith(".conf")]
    tables = [(path, reading.value) for path, reading in readings if reading.value is not None]
    if not tables:
        return readings[0][1].lost()
    return known(
        model.crio(model.merged(table for _, table in tables), [path for path, _ in tables]), "/etc/crio/crio.conf"
    )


def read_toolkit(files: Files) -> Reading[model.Toolkit]:
    readings = [(path, _decoded(files, path, _toml)) for path in _TOOLKIT]
    for path, reading in readings:
        if reading.value is not None:
            return known(model.toolkit(reading.value, path), path)
    worst = next((reading for path, reading in readings if _there(files, path)), readings[-1][1])
    return worst.lost()


def read_cdi(files: Files) -> Reading[tuple[CdiSpec, ...]]:
    """Every CDI specification, with the paths in it that do not exist."""
    folders = {folder: files.list(folder) for folder in _CDI}
    if not any(names.known for names in folders.values()):
        if all(_absent(files, folder) for folder in _CDI):
            return known((), " and ".join(_CDI[:2]))
        first = next((names for folder, names in folders.items() if not _absent(files, folder)), folders[_CDI[0]])
        return first.lost()
    specs: dict[str, CdiSpec] = {}
    for folder, names in folders.items():
        for name in names.value or ():
            path = f"{folder}/{name}"
            real = files.real(path).value or path
            if not name.endswith((".yaml", ".json", ".yml")) or real in specs:
                continue
            reading = _decoded(files, path, _yaml, 8 << 20)
            if reading.value is None:
                return reading.lost()
            try:
                spec = cdi_spec(reading.value, path)
            except ValueError as error:
                return missing(f"{path}: {error}", path)
            absent = tuple(used for used in spec.paths if _absent(files, used))
            specs[real] = replace(spec, absent=absent)
    return known(tuple(specs.values()), " and ".join(_CDI[:2]))


def read_engines(
    files: Files, commands: _Lines, command: Callable[[Files, str], Reading[str]]
) -> Reading[Mapping[str, str]]:
    """The container engines that run or are installed, and their versions ("" when an engine does not say)."""
    running = {PurePosixPath(line[0]).name for line in commands.value or () if line and line[0]}
    found: dict[str, str] = {}
    reasons = []
    for engine, process in _ENGINES.items():
        text = command(files, f"{engine}-version")
        version = _VERSION.search(text.value or "")
        if version:
            found[engine] = version.group(1)
        elif process in running or text.known:
            found[engine] = ""
        else:
            reasons.append(text)
    if not found and not (commands.known and all(text.absent for text in reasons)):
        return reasons[0].lost()
    return known(found, "--version of containerd, docker and crio")


def _toml_tree(files: Files, path: str) -> Reading[tuple[list[Mapping[str, Any]], list[str]]]:
    """A TOML file and its `imports`, in the order in which they are laid over each other."""
    first = _decoded(files, path, _toml)
    if first.value is None:
        return first.lost()
    tables, paths = [first.value], [path]
    imports = first.value.get("imports")
    for pattern in imports if isinstance(imports, list) else ():
        for place in _glob(files, str(pattern), str(PurePosixPath(path).parent)):
            table = _decoded(files, place, _toml).value
            if table is not None and place not in paths and len(paths) < _IMPORTS:
                tables.append(table)
                paths.append(place)
    return known((tables, paths), path)


def _glob(files: Files, pattern: str, base: str) -> list[str]:
    full = PurePosixPath(base) / pattern
    names = files.list(str(full.parent)).value or ()
    return [str(full.parent / name) for name in names if fnmatch.fnmatch(name, full.name)]


def _decoded(files: Files, path: str, decode: Callable[[str], Any], most: int = 1 << 20) -> Reading[Any]:
    text = files.read(path, most)
    if text.value is None:
        return text.lost()
    try:
        return known(decode(text.value), path)
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        return missing(f"{path}: {' '.join(str(error).split())[:200]}", path)


def _toml(text: str) -> Any:
    return tomllib.loads(text)


def _json(text: str) -> Any:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError("it is not a JSON object")
    return value


def _yaml(text: str) -> Any:
    value = yaml.load(text, _Loader)
    return {} if value is None else value  # an empty file says nothing


def _there(files: Files, path: str) -> bool:
    return files.stat(path).map(lambda found: found.exists).value is True


def _absent(files: Files, path: str) -> bool:
    return files.stat(path, follow=True).map(lambda found: not found.exists).value is True
