"""Which cluster, as whom: kubeconfig files with kubectl's rules, or the pod's own service account.

Files of a `KUBECONFIG` list are merged; the first one that names a cluster, a user, a context or the current
context wins, and paths in a file are relative to it. Only what reaches the API server is read.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vgpuctl.model.problem import Exit, Problem

_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_LISTS = ("clusters", "contexts", "users")


@dataclass(frozen=True)
class Flags:
    """kubectl's connection flags; "" means not given."""

    kubeconfig: str = ""
    context: str = ""
    cluster: str = ""
    user: str = ""
    as_user: str = ""
    as_group: tuple[str, ...] = ()


@dataclass(frozen=True)
class Access:
    """Where the API server is and who asks. name: for the output. namespace: the context's own, "" for none.

    user: the kubeconfig's user entry, from which `credentials` makes headers and a client certificate.
    headers: impersonation. base: the directory to which its relative paths belong.
    """

    name: str
    server: str
    namespace: str = ""
    ca: bytes = b""
    insecure: bool = False
    server_name: str = ""
    proxy: str = ""
    cluster: Mapping[str, Any] = field(default_factory=dict)
    user: Mapping[str, Any] = field(default_factory=dict)
    user_base: Path = Path()
    headers: tuple[tuple[str, str], ...] = ()


def find_access(flags: Flags, environ: Mapping[str, str] = os.environ) -> Access | None:
    """The access that kubectl would use; None when neither a kubeconfig nor the environment names a cluster.

    Raises Problem for files that cannot be read or understood and for names that they do not hold.
    """
    merged = _Merged(_files(flags, environ))
    named = flags.context or flags.cluster or merged.current
    if not named:
        if flags.kubeconfig:
            raise Problem(f"{flags.kubeconfig} has no current-context", remedy="name a context with --context")
        access = _in_cluster(flags, environ)
        if access is None and (merged.paths and merged.entries["contexts"]):
            raise Problem(f"{_join(merged.paths)} has no current-context", remedy="name a context with --context")
        return access
    return _access(flags, merged)


def _files(flags: Flags, environ: Mapping[str, str]) -> list[tuple[Path, bool]]:
    """The files to read, each with whether it must exist."""
    if flags.kubeconfig:
        return [(_at_home(flags.kubeconfig), True)]
    if listed := environ.get("KUBECONFIG"):
        return [(_at_home(name), False) for name in listed.split(os.pathsep) if name]
    home = environ.get("HOME")
    return [(Path(home) / ".kube" / "config", False)] if home else []


def _at_home(name: str) -> Path:
    """A path with its ~ expanded; as it stands for somebody without a home directory."""
    return Path(os.path.expanduser(name))  # noqa: PTH111  # Path.expanduser raises there


class _Merged:
    """Several kubeconfig files as one: entries by name with the file they stand in."""

    def __init__(self, files: list[tuple[Path, bool]]) -> None:
        self.paths: list[Path] = []
        self.current = ""
        self.entries: dict[str, dict[str, tuple[dict[str, Any], Path]]] = {name: {} for name in _LISTS}
        for path, needed in files:
            content = _load(path, needed)
            if content is not None:
                self._add(path, content)

    def _add(self, path: Path, content: dict[str, Any]) -> None:
        self.paths.append(path)
        self.current = self.current or str(content.get("current-context") or "")
        for list_name in _LISTS:
            for name, entry in _entries(path, content, list_name):
                self.entries[list_name].setdefault(name, (entry, path))

    def find(self, list_name: str, name: str) -> tuple[dict[str, Any], Path]:
        found = self.entries[list_name].get(name)
        if found is None:
            known = ", ".join(self.entries[list_name]) or "none"
            raise Problem(
                f"{_join(self.paths) or 'the kubeconfig'} has no {list_name[:-1]} {name!r}", f"it has: {known}"
            )
        return found


def _load(path: Path, needed: bool) -> dict[str, Any] | None:
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        if needed:
            raise Problem(f"kubeconfig {path} does not exist", remedy="see --kubeconfig and KUBECONFIG") from None
        return None
    except OSError as error:
        raise Problem(f"cannot read kubeconfig {path}", str(error.strerror)) from None
    import yaml

    try:
        content = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, ValueError) as error:
        raise Problem(f"kubeconfig {path} is not YAML", " ".join(str(error).split())) from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise Problem(f"kubeconfig {path} is not a mapping")
    return content


def _entries(path: Path, content: dict[str, Any], list_name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    items = content.get(list_name) or []
    key = list_name[:-1]
    if not isinstance(items, list):
        raise Problem(f"kubeconfig {path}: {list_name} is not a list")
    for item in items:
        if not isinstance(item, dict) or "name" not in item or not isinstance(item.get(key) or {}, dict):
            raise Problem(f"kubeconfig {path}: an item of {list_name} is not a mapping with name and {key}")
        yield str(item["name"]), item.get(key) or {}


def _access(flags: Flags, merged: _Merged) -> Access:
    context: Mapping[str, Any] = {}
    context_name = flags.context or merged.current
    if context_name:
        context = merged.find("contexts", context_name)[0]
    cluster_name = flags.cluster or str(context.get("cluster") or "")
    cluster, cluster_path = merged.find("clusters", cluster_name)
    user_name = flags.user or str(context.get("user") or "")
    user, user_path = merged.find("users", user_name) if user_name else ({}, cluster_path)
    if not cluster.get("server"):
        raise Problem(f"kubeconfig {cluster_path}: cluster {cluster_name!r} has no server")
    has_tls = any(cluster.get(key) for key in ("certificate-authority", "certificate-authority-data"))
    return Access(
        name=f"context {context_name}" if context_name and not flags.cluster else f"cluster {cluster_name}",
        server=_url(str(cluster["server"]), has_tls),
        namespace=str(context.get("namespace") or ""),
        ca=file_or_data(cluster, "certificate-authority", cluster_path.parent) or b"",
        insecure=cluster.get("insecure-skip-tls-verify") is True,
        server_name=str(cluster.get("tls-server-name") or ""),
        proxy=str(cluster.get("proxy-url") or ""),
        cluster=cluster,
        user=user,
        user_base=user_path.parent,
        headers=_impersonation(flags, user),
    )


def file_or_data(entry: Mapping[str, Any], key: str, base: Path) -> bytes | None:
    """The content of `key-data` (base64), else of the file that `key` names; None when there is neither."""
    data = entry.get(f"{key}-data")
    if data:
        try:
            return base64.b64decode(str(data), validate=False)
        except (binascii.Error, ValueError) as error:
            raise Problem(f"the kubeconfig's {key}-data is not base64", str(error)) from None
    name = entry.get(key)
    if not name:
        return None
    path = base / str(name)
    try:
        return path.read_bytes()
    except OSError as error:
        raise Problem(f"cannot read {path}, the kubeconfig's {key}", str(error.strerror)) from None


def _impersonation(flags: Flags, user: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """The headers of https://kubernetes.io/docs/reference/access-authn-authz/user-impersonation/."""
    name = flags.as_user or str(user.get("as") or "")
    groups = flags.as_group or tuple(map(str, user.get("as-groups") or ()))
    if groups and not name:
        raise Problem("--as-group needs --as", "", "name the user to impersonate with --as", Exit.USAGE)
    headers = [("Impersonate-User", name)] if name else []
    headers += [("Impersonate-Group", group) for group in groups]
    if not flags.as_user:
        if user.get("as-uid"):
            headers.append(("Impersonate-Uid", str(user["as-uid"])))
        extra = user.get("as-user-extra") or {}
        headers += [(f"Impersonate-Extra-{key}", str(value)) for key, values in extra.items() for value in values]
    return tuple(headers)


def _in_cluster(flags: Flags, environ: Mapping[str, str], directory: Path = _SERVICE_ACCOUNT) -> Access | None:
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
    token = directory / "token"
    if not host or not port or not token.is_file():
        return None
    namespace = directory / "namespace"
    return Access(
        name="in-cluster",
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        namespace=namespace.read_text(encoding="utf-8").strip() if namespace.is_file() else "",
        ca=file_or_data({"certificate-authority": "ca.crt"}, "certificate-authority", directory) or b"",
        user={"tokenFile": str(token)},
        headers=_impersonation(flags, {}),
    )


def _url(server: str, has_tls: bool) -> str:
    if "://" not in server:
        server = f"{'https' if has_tls else 'http'}://{server}"
    return server.rstrip("/")


def _join(paths: list[Path]) -> str:
    return os.pathsep.join(map(str, paths))
