"""Kubeconfig files, complete in themselves: certificates are embedded, as installers write them."""

from __future__ import annotations

import base64
from pathlib import Path

import yaml

from .certificates import Pair


def write(
    path: Path,
    server: str,
    ca: Path,
    *,
    user: Pair | None = None,
    token: str | None = None,
    namespace: str = "default",
) -> Path:
    """Writes a kubeconfig with one context, `bench`, and gives its path back."""
    credentials: dict[str, str] = {}
    if user is not None:
        credentials["client-certificate-data"] = _base64(user.certificate)
        credentials["client-key-data"] = _base64(user.key)
    if token is not None:
        credentials["token"] = token
    cluster = {"server": server, "certificate-authority-data": _base64(ca)}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "bench", "cluster": cluster}],
        "users": [{"name": path.stem, "user": credentials}],
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": path.stem, "namespace": namespace}}],
        "current-context": "bench",
    }
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(config, sort_keys=False))
    return path


def _base64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
