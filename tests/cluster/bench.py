"""The control plane itself: etcd, kube-apiserver, kube-controller-manager."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import signal
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.client import HTTPException
from pathlib import Path
from types import TracebackType
from typing import Any

import yaml

from . import kubeconfig
from .binaries import find
from .certificates import Authority
from .client import ApiError, Client
from .process import Program, ProgramError, Scratch, free_ports

CRDS = Path(__file__).parent / "crds"

# Everything else is left out: without kubelets, node-lifecycle, taint-eviction and pod-garbage-collector
# would taint the nodes and remove the pods of every pool.
CONTROLLERS = (
    "namespace-controller", "resourcequota-controller", "garbage-collector-controller",
    "deployment-controller", "replicaset-controller", "daemonset-controller", "statefulset-controller",
    "job-controller", "cronjob-controller",
    # Without it the roles view, edit and admin are empty.
    "clusterrole-aggregation-controller",
    "validatingadmissionpolicy-status-controller",
)  # fmt: skip


class Bench:
    """A control plane on loopback with temporary data.

    `snapshot` is a directory that `save` wrote; without one the bench starts with our CRDs only.
    `controllers=False` leaves kube-controller-manager out, for measurements.
    Start it from a thread that lives as long as the bench: the programs die with it.
    """

    def __init__(self, *, snapshot: Path | None = None, controllers: bool = True) -> None:
        self._snapshot = snapshot
        self._controllers = controllers
        self._programs: dict[str, Program] = {}

    def __enter__(self) -> Bench:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Returns when the API server serves, our CRDs included. Raises BenchMissingError or process.ProgramError."""
        self.binaries = find()
        self._scratch = Scratch()
        self.directory = self._scratch.path
        try:
            self.authority = Authority(self.directory)
            self._copy_snapshot()
            for attempt in range(3):
                try:
                    self._start_programs()
                    break
                except ProgramError as error:
                    self._stop_programs()
                    # Somebody else took a port between our look and the program's.
                    if attempt == 2 or "address already in use" not in str(error):
                        raise
            self._install_crds()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Ends every program and removes all data."""
        self._stop_programs()
        self._scratch.remove()

    def restart(self) -> None:
        """Kills the API server and starts it again on the same address; returns when it serves."""
        program = self._programs["kube-apiserver"]
        program.restart()
        program.wait_until(self._serves)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """While inside, the API server hangs: connections open, nothing answers."""
        program = self._programs["kube-apiserver"]
        program.send(signal.SIGSTOP)
        try:
            yield
        finally:
            program.send(signal.SIGCONT)

    def kubectl(
        self, *arguments: str, stdin: str | None = None, config: Path | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """kubectl as the administrator, or as the user of another kubeconfig."""
        environment = {
            **os.environ,
            "KUBECONFIG": str(config or self.kubeconfig),
            "HOME": str(self.directory),
        }
        return subprocess.run(
            [str(self.binaries / "kubectl"), *arguments],
            input=stdin, capture_output=True, text=True, check=check, env=environment,
        )  # fmt: skip

    def client_as(self, user: str) -> Client:
        """A client with the rights of another user, such as `system:serviceaccount:NAMESPACE:NAME`."""
        headers = {"Impersonate-User": user}
        return Client(self.url, self.authority.certificate, self._administrator, headers=headers)

    def administrator_tls(self) -> ssl.SSLContext:
        """What a connection of the administrator needs."""
        context = ssl.create_default_context(cafile=str(self.authority.certificate))
        context.load_cert_chain(self._administrator.certificate, self._administrator.key)
        return context

    def pids(self) -> dict[str, int]:
        """The process id of each running program."""
        return {name: program.pid for name, program in self._programs.items()}

    def run(self, name: str, *arguments: str) -> Program:
        """Starts another program beside the control plane; it ends with the bench."""
        command = [str(self.binaries / name), *arguments]
        self._programs[name] = Program(name, command, self.directory / f"{name}.log")
        return self._programs[name]

    def save(self, target: Path) -> None:
        """Stops the bench's programs and keeps etcd's data as `target`, for `Bench(snapshot=target)`."""
        for name in reversed([n for n in self._programs if n != "etcd"]):
            self._programs.pop(name).stop()
        # etcd alone ends in an orderly way: its data is what is kept.
        self._programs.pop("etcd").stop(signal.SIGTERM)
        shutil.copytree(self.directory / "etcd", target)

    def _copy_snapshot(self) -> None:
        if self._snapshot is not None:
            # cp shares blocks where the file system can.
            subprocess.run(
                ["cp", "-R", "--reflink=auto", str(self._snapshot), str(self.directory / "etcd")], check=True
            )

    def _start_programs(self) -> None:
        etcd_port, port = free_ports(2)
        self.etcd = f"http://127.0.0.1:{etcd_port}"
        self.url = f"https://127.0.0.1:{port}"
        self.run(
            "etcd", f"--data-dir={self.directory / 'etcd'}", "--unsafe-no-fsync", "--log-level=warn",
            f"--listen-client-urls={self.etcd}", f"--advertise-client-urls={self.etcd}",
            "--listen-peer-urls=http://127.0.0.1:0",
            f"--quota-backend-bytes={8 << 30}",
        ).wait_until(self._etcd_serves)  # fmt: skip

        server = self.authority.issue("kube-apiserver", hosts=["127.0.0.1", "localhost"])
        signing = self.authority.signing_key()
        ca = self.authority.certificate
        self._administrator = administrator = self.authority.issue("administrator", groups=["system:masters"])
        self.kubeconfig = kubeconfig.write(
            self.directory / "administrator.kubeconfig", self.url, ca, user=administrator
        )
        self.client = Client(self.url, ca, administrator)
        self.run(
            "kube-apiserver", f"--etcd-servers={self.etcd}",
            "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", f"--secure-port={port}",
            f"--tls-cert-file={server.certificate}", f"--tls-private-key-file={server.key}",
            f"--cert-dir={self.directory}", f"--client-ca-file={ca}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={signing}", f"--service-account-signing-key-file={signing}",
            "--service-cluster-ip-range=10.96.0.0/24", "--endpoint-reconciler-type=none",
            "--authorization-mode=RBAC", "--allow-privileged",
            # No kubelet makes a node ready, no controller makes service accounts.
            "--disable-admission-plugins=TaintNodesByCondition,ServiceAccount",
        ).wait_until(self._serves)  # fmt: skip
        if self._controllers:
            self.run(
                "kube-controller-manager", f"--kubeconfig={self.kubeconfig}", "--leader-elect=false",
                "--secure-port=0", f"--controllers={','.join(CONTROLLERS)}",
                "--kube-api-qps=500", "--kube-api-burst=1000",
            )  # fmt: skip

    def _stop_programs(self) -> None:
        while self._programs:
            self._programs.popitem()[1].stop()

    def _etcd_serves(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.etcd}/readyz", timeout=1) as response:
                return bool(response.status == 200)
        except (urllib.error.URLError, OSError, HTTPException):
            return False

    def _serves(self) -> bool:
        try:
            return bool(self.client.get("/readyz") == "ok")
        except (ApiError, OSError, HTTPException):
            return False

    def _install_crds(self) -> None:
        base = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        definitions = [yaml.safe_load(path.read_text()) for path in sorted(CRDS.glob("*.yaml"))]
        for definition in definitions:
            self.client.apply(f"{base}/{definition['metadata']['name']}", definition)
        program = self._programs["kube-apiserver"]
        for definition in definitions:
            program.wait_until(functools.partial(self._serves_kind, definition))

    def _serves_kind(self, definition: dict[str, Any]) -> bool:
        spec = definition["spec"]
        version, plural = spec["versions"][0]["name"], spec["names"]["plural"]
        base = f"/apis/{spec['group']}/{version}"
        try:
            self.client.get(f"{base}/{plural}", limit="1")
            # What a group holds is told by others than those who serve it, and may be told later.
            return plural in [resource["name"] for resource in self.client.get(base)["resources"]]
        except ApiError:
            return False
