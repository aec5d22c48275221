"""Runs an exec credential plugin (https://kubernetes.io/docs/reference/access-authn-authz/authentication), for a
limited time: the program is the user's, and may ask a server that is silent.
"""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import msgspec

from vgpuctl.model.problem import Problem
from vgpuctl.sources.cluster.kubeconfig import Access

_PERSON = 180.0
"""Seconds for a plugin on a terminal, where it may be waiting for a person to log in."""
_EXTENSION = "client.authentication.k8s.io/exec"


def ask(access: Access, seconds: float) -> Mapping[str, Any]:
    """The status that the plugin of an access gives. seconds: how long it may take, 0 for as long as it wants; a person
    gets three minutes. Raises Problem."""
    plugin: Mapping[str, Any] = access.user["exec"]
    command = str(plugin.get("command") or "")
    what = f"the credential plugin {command!r} of {access.name}"
    person = plugin.get("interactiveMode") != "Never" and sys.stdin.isatty() and sys.stderr.isatty()
    limit = max(seconds, _PERSON) if person and seconds else seconds
    try:
        done = subprocess.run(
            [_program(command, access), *map(str, plugin.get("args") or ())],
            stdin=None if person else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=None if person else subprocess.PIPE,
            env=_environment(plugin, access, person),
            timeout=limit or None,
            check=False,
        )
    except FileNotFoundError:
        hint = " ".join(str(plugin.get("installHint") or "").split())
        raise Problem(f"{what} is not installed", remedy=hint or f"install {command}") from None
    except subprocess.TimeoutExpired:
        raise Problem(
            f"{what} did not end within {limit:g} s",
            remedy=f"does it work by hand? --request-timeout {'0 lets it run on' if person else 'waits longer'}",
        ) from None
    except (OSError, ValueError, TypeError, KeyError) as error:  # what a kubeconfig may hold instead of texts
        raise Problem(f"{what} failed", " ".join(str(error).split())) from None
    if done.returncode:
        if person:
            raise Problem(f"{what} failed", remedy="what it said stands above")
        said = " ".join(done.stderr.decode("utf-8", "replace").split())
        raise Problem(f"{what} failed", f"exit code {done.returncode}" + (f": {said}" if said else ""))
    return _status(done.stdout, plugin, what)


def _program(command: str, access: Access) -> str:
    """A path is relative to the kubeconfig, a bare name is looked up."""
    return str((access.user_base / command).absolute()) if "/" in command else command


def _environment(plugin: Mapping[str, Any], access: Access, person: bool) -> dict[str, str]:
    spec: dict[str, Any] = {"interactive": person}
    if plugin.get("provideClusterInfo"):
        spec["cluster"] = _cluster(access)
    info = {"apiVersion": plugin.get("apiVersion"), "kind": "ExecCredential", "spec": spec}
    added = {str(entry["name"]): str(entry["value"]) for entry in plugin.get("env") or ()}
    return {**os.environ, **added, "KUBERNETES_EXEC_INFO": msgspec.json.encode(info).decode()}


def _cluster(access: Access) -> dict[str, Any]:
    extensions = access.cluster.get("extensions") or ()
    told = {
        "server": access.server,
        "tls-server-name": access.server_name,
        "insecure-skip-tls-verify": access.insecure,
        "certificate-authority-data": base64.b64encode(access.ca).decode(),
        "proxy-url": access.proxy,
        "config": next((one.get("extension") for one in extensions if one.get("name") == _EXTENSION), None),
    }
    return {key: value for key, value in told.items() if value}


def _status(answer: bytes, plugin: Mapping[str, Any], what: str) -> Mapping[str, Any]:
    try:
        found = msgspec.json.decode(answer, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError):
        raise Problem(f"{what} failed", "what it printed is no ExecCredential") from None
    if found.get("apiVersion") != plugin.get("apiVersion"):
        why = f"it answers in {found.get('apiVersion')}, the kubeconfig wants {plugin.get('apiVersion')}"
        raise Problem(f"{what} failed", why)
    status = found.get("status")
    if not isinstance(status, Mapping):
        raise Problem(f"{what} gave no status")
    if not status.get("token") and not (status.get("clientCertificateData") and status.get("clientKeyData")):
        raise Problem(f"{what} gave neither a token nor a client certificate")
    return status
