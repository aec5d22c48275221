"""From a kubeconfig's user to an Authorization header and a client certificate."""

from __future__ import annotations

import base64
import binascii
import calendar
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vgpuctl.model.problem import Problem
from vgpuctl.sources.cluster.exec_plugin import ask
from vgpuctl.sources.cluster.kubeconfig import Access, file_or_data


@dataclass(frozen=True)
class Credentials:
    """authorization: the header's value, "" for none. certificate and key: PEM, empty for none."""

    authorization: str = ""
    certificate: bytes = b""
    key: bytes = b""


def credentials(access: Access, seconds: float = 0.0) -> Credentials:
    """Resolves the credentials of an access anew: files are read, exec plugins run, so many seconds (0: no limit).
    Raises Problem."""
    user = access.user
    certificate = file_or_data(user, "client-certificate", access.user_base) or b""
    key = file_or_data(user, "client-key", access.user_base) or b""
    if isinstance(user.get("exec"), Mapping):
        return _from_plugin(ask(access, seconds), Credentials("", certificate, key))
    return Credentials(_authorization(access), certificate, key)


def _authorization(access: Access) -> str:
    user = access.user
    if user.get("tokenFile"):
        path = access.user_base / str(user["tokenFile"])
        try:
            return f"Bearer {path.read_text(encoding='utf-8').strip()}"
        except (OSError, UnicodeDecodeError) as error:
            if not user.get("token"):
                raise Problem(f"cannot read {path}, the kubeconfig's tokenFile", str(error)) from None
    if user.get("token"):
        return f"Bearer {user['token']}"
    if user.get("username"):
        pair = f"{user['username']}:{user.get('password', '')}"
        return f"Basic {base64.b64encode(pair.encode()).decode()}"
    if isinstance(user.get("auth-provider"), Mapping):
        return _from_provider(access)
    return ""


def _from_plugin(status: Mapping[str, Any], given: Credentials) -> Credentials:
    """What an exec plugin gave, in the place of what the kubeconfig has."""
    token, certificate, key = (status.get(name) for name in ("token", "clientCertificateData", "clientKeyData"))
    return Credentials(
        f"Bearer {token}" if token else "",
        str(certificate).encode() if certificate else given.certificate,
        str(key).encode() if key else given.key,
    )


def _from_provider(access: Access) -> str:
    """The older auth providers (oidc, gcp), as the kubernetes client knows them."""
    from kubernetes.client import Configuration
    from kubernetes.config.kube_config import KubeConfigLoader

    name = str(access.user["auth-provider"].get("name"))
    config = {
        "current-context": "it",
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "clusters": [{"name": "it", "cluster": {"server": access.server}}],
        "users": [{"name": "it", "user": {"auth-provider": dict(access.user["auth-provider"])}}],
    }
    configuration = Configuration()
    try:
        KubeConfigLoader(config, config_base_path=str(Path())).load_and_set(configuration)
    except Exception as error:  # the client raises whatever the provider's library raises
        raise Problem(f"the auth provider {name!r} of {access.name} failed", " ".join(str(error).split())) from None
    token: str = configuration.api_key.get("BearerToken", "")
    if not token:
        raise Problem(
            f"the auth provider {name!r} of {access.name} is not supported", remedy="use an exec plugin for it"
        )
    return token


_PEM = re.compile(rb"-----BEGIN CERTIFICATE-----(.*?)-----END CERTIFICATE-----", re.DOTALL)
_VALIDITY = re.compile(rb"(?:\x17\x0d\d{12}Z|\x18\x0f\d{14}Z)(?:\x17\x0d(\d{12})Z|\x18\x0f(\d{14})Z)")
"""The two times of an X.509 certificate's validity, as DER writes them (RFC 5280, 4.1.2.5)."""


def expiry(certificate: bytes, now: float) -> str:
    """Says when a PEM certificate ended, if it ended before `now` (Unix seconds); "" otherwise."""
    block = _PEM.search(certificate)
    try:
        found = _VALIDITY.search(base64.b64decode(block.group(1))) if block else None
    except binascii.Error:
        return ""
    if not found:
        return ""
    text = found.group(2) or (b"19" if found.group(1) >= b"50" else b"20") + found.group(1)
    end = time.strptime(text.decode(), "%Y%m%d%H%M%S")
    return (
        time.strftime("the client certificate expired on %Y-%m-%d at %H:%M UTC", end)
        if calendar.timegm(end) < now
        else ""
    )
