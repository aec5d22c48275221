"""Kubeconfigs of people with fewer rights, and of clusters that do not answer."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import kubeconfig
from .bench import Bench
from .process import free_ports

RBAC = "/apis/rbac.authorization.k8s.io/v1"
READ = ("get", "list", "watch")
Rule = Mapping[str, Sequence[str]]


class Access:
    """Makes users of one bench. Each method gives the path of a kubeconfig; `name` is the user's name.

    The RBAC objects carry the user's name: use names that no other test uses.
    """

    def __init__(self, bench: Bench) -> None:
        self._bench = bench

    def nobody(self, name: str) -> Path:
        """A known user without any right: everything is 403."""
        return self.user(name, [])

    def read_only(self, name: str) -> Path:
        """Reads everything in the cluster, writes nothing."""
        return self.user(name, [{"apiGroups": ["*"], "resources": ["*"], "verbs": READ}])

    def namespaced(self, name: str, namespace: str) -> Path:
        """Everything within one namespace, nothing cluster-wide: nodes, queues and the rest are 403."""
        return self.user(name, [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}], namespace)

    def user(self, name: str, rules: Sequence[Rule], namespace: str | None = None) -> Path:
        """A user with a client certificate and these RBAC rules, in a namespace or cluster-wide."""
        self._grant({"kind": "User", "name": name, "apiGroup": "rbac.authorization.k8s.io"}, name, rules, namespace)
        pair = self._bench.authority.issue(name)
        return self._write(name, user=pair, namespace=namespace or "default")

    def service_account(self, name: str, rules: Sequence[Rule], namespace: str) -> Path:
        """A service account in `namespace` with a token of one hour, and rules for that namespace."""
        client = self._bench.client
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}"
        client.apply(path, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}, manager="access")
        self._grant({"kind": "ServiceAccount", "name": name, "namespace": namespace}, name, rules, namespace)
        token = client.post(
            f"{path}/token",
            {
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest",
                "spec": {"expirationSeconds": 3600},
            },
        )["status"]["token"]
        return self._write(name, token=token, namespace=namespace)

    def expired(self, name: str) -> Path:
        """An administrator whose client certificate ended an hour ago: everything is 401."""
        pair = self._bench.authority.issue(name, groups=["system:masters"], expired=True)
        return self._write(name, user=pair)

    def wrong_token(self, name: str) -> Path:
        """A token that the API server does not know: everything is 401."""
        return self._write(name, token="not-a-token")

    def closed(self, name: str) -> Path:
        """A cluster whose port refuses connections."""
        return self._write(name, server=f"https://127.0.0.1:{free_ports(1)[0]}", token="unused")

    @contextlib.contextmanager
    def hanging(self, name: str) -> Iterator[Path]:
        """A cluster that takes connections and never says a word, not even in the TLS handshake."""
        with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
            yield self._write(name, server=f"https://127.0.0.1:{server.getsockname()[1]}", token="unused")

    def _write(self, name: str, server: str | None = None, **credentials: Any) -> Path:
        path = self._bench.directory / f"{name}.kubeconfig"
        return kubeconfig.write(path, server or self._bench.url, self._bench.authority.certificate, **credentials)

    def _grant(self, subject: Mapping[str, str], name: str, rules: Sequence[Rule], namespace: str | None) -> None:
        scope, kind = (f"{RBAC}/namespaces/{namespace}", "Role") if namespace else (RBAC, "ClusterRole")
        role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": name}}
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
        binding = {**role, "kind": f"{kind}Binding", "roleRef": reference, "subjects": [subject]}
        plural = f"{kind.lower()}s"
        self._bench.client.apply(f"{scope}/{plural}/{name}", {**role, "rules": list(rules)})
        self._bench.client.apply(f"{scope}/{kind.lower()}bindings/{name}", binding)
