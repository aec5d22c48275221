"""The cluster that is installed into: a bench with kwok, Volcano, GPU nodes, and the doubles that bring it to life."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from http.client import HTTPException
from pathlib import Path
from typing import Any

from tests.cluster import kwok
from tests.cluster.bench import Bench
from tests.cluster.client import MERGE, ApiError
from tests.cluster.pool import load, read
from tests.install import contents
from tests.install.contents import Contents
from tests.install.device_plugin import Card, DevicePlugin
from tests.install.kubelet import DOWN, STRATEGIC, Kubelet, Trouble
from tests.install.scheduler import Scheduler

HERE = Path(__file__).parent
NODES: Mapping[str, tuple[Card, ...]] = {
    "cpu-1": (),
    "gpu-1": tuple(Card(f"GPU-a0000000-0000-4000-8000-00000000000{index}", 81559, "H100") for index in range(4)),
    "gpu-2": tuple(Card(f"GPU-b0000000-0000-4000-8000-00000000000{index}", 81559, "H100") for index in range(4)),
    "gpu-3": tuple(Card(f"GPU-c0000000-0000-4000-8000-00000000000{index}", 15360, "T4") for index in range(2)),
}
"""The machines and the cards in them."""
GPU_NODES = tuple(name for name, cards in NODES.items() if cards)
DAEMONSET = "/apis/apps/v1/namespaces/kube-system/daemonsets/volcano-device-plugin"


class Rig:
    """One such cluster; it lives until the end of the `with`. Raises what a double stumbled over when it ends."""

    def __init__(self) -> None:
        self.bench = Bench()
        self._stop = threading.Event()
        self._looking = threading.Lock()
        self._error: BaseException | None = None
        self._complaints: deque[str] = deque(maxlen=10)

    def __enter__(self) -> Rig:
        self.bench.start()
        try:
            self.client, self.kubeconfig = self.bench.client, self.bench.kubeconfig
            self.kubelet = Kubelet(self.client, self.bench.directory / "hosts", NODES)
            self._doubles = (Scheduler(self.client), self.kubelet, DevicePlugin(self.bench, NODES, self.kubelet.host))
            load(self.bench, [*map(_node, NODES), *read(HERE / "cluster.yaml")])
            # After that: kwok describes nodes that are not ready by itself.
            kwok.start(self.bench, stages=sorted((HERE / "stages").glob("*.yaml")))
            self._thread = threading.Thread(target=self._live, name="doubles", daemon=True)
            self._thread.start()
            self.wait("Volcano runs", self.volcano_runs)
            self.start = self.contents()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self.bench.stop()
        self.check()

    def check(self) -> None:
        """Raises what went wrong in a double."""
        if self._error is not None:
            raise AssertionError("a double of the rig failed") from self._error

    def told(self) -> list[str]:
        """What the doubles were refused, the last of it."""
        return list(self._complaints)

    def contents(self) -> Contents:
        """All that is in the cluster now."""
        return contents.read(self.client)

    def reset(self) -> None:
        """Brings the cluster back to its start, whatever a test left in it."""
        self.kubelet.troubles.clear()
        self._complaints.clear()
        self.wait("the cluster is as at its start", self._restored)
        self.wait("Volcano runs", self.volcano_runs)

    def wait(self, what: str, condition: Callable[[], bool], timeout: float = 60.0) -> None:
        """Until it is true. Raises AssertionError after the timeout."""
        deadline = time.monotonic() + timeout
        while not condition():
            self.check()
            assert time.monotonic() < deadline, "\n".join((f"not within {timeout:g} s: {what}", *self.told()))
            time.sleep(0.1)

    def installed(self) -> dict[str, Any]:
        """The plugin's DaemonSet, in whatever namespace; {} for none."""
        found = self.client.get("/apis/apps/v1/daemonsets", fieldSelector="metadata.name=volcano-device-plugin")
        return dict(next(iter(found["items"]), {}))

    def settled(self) -> bool:
        """The plugin runs on every node that its DaemonSet wants, and the GPU nodes offer their vGPUs."""
        status = self.installed().get("status", {})
        wanted = status.get("desiredNumberScheduled", 0)
        return (
            wanted > 0
            and status.get("observedGeneration", 0) > 0
            and status.get("numberReady", 0) == wanted == status.get("updatedNumberScheduled", 0)
            and all(self.offered(node) > 0 for node in GPU_NODES)
        )

    def offered(self, node: str) -> int:
        """The vGPUs that a node offers."""
        allocatable = self.client.get(f"/api/v1/nodes/{node}")["status"]["allocatable"]
        return int(allocatable.get("volcano.sh/vgpu-number", 0))

    def pods(self, namespace: str, selector: str = "") -> list[dict[str, Any]]:
        query = {"labelSelector": selector} if selector else {}
        found: list[dict[str, Any]] = self.client.get(f"/api/v1/namespaces/{namespace}/pods", **query)["items"]
        return found

    @contextlib.contextmanager
    def trouble(self, node: str, reason: str, message: str = "", image: str = "") -> Iterator[None]:
        """While inside, pods that start on a node do not come up, see `Trouble`."""
        self.kubelet.troubles[node] = Trouble(reason, message, image)
        try:
            yield
        finally:
            self.kubelet.troubles.pop(node, None)

    @contextlib.contextmanager
    def down(self, node: str) -> Iterator[None]:
        """While inside, a node's kubelet says nothing and does nothing."""
        self._heard(node, None)
        self.kubelet.troubles[node] = Trouble(DOWN)
        try:
            yield
        finally:
            self.kubelet.troubles.pop(node, None)
            self._heard(node, kwok.FAKE)

    def _heard(self, node: str, fake: Mapping[str, str] | None) -> None:
        """Gives a node to kwok, or takes it away."""
        path = f"/api/v1/nodes/{node}"
        notes = fake or dict.fromkeys(kwok.FAKE)
        self.client.request("PATCH", path, {"metadata": {"annotations": notes}}, content_type=MERGE)
        told = {
            "type": "Ready",
            "status": "True" if fake else "Unknown",
            "reason": "KubeletReady" if fake else "NodeStatusUnknown",
        }
        body = {"status": {"conditions": [told]}}
        self.client.request("PATCH", f"{path}/status", body, content_type=STRATEGIC)

    def volcano_runs(self) -> bool:
        """Its Deployments are rolled out."""
        deployments = self.client.get("/apis/apps/v1/namespaces/volcano-system/deployments")["items"]
        return all(
            item["status"].get("readyReplicas", 0) == item["spec"]["replicas"]
            and item["status"].get("observedGeneration") == item["metadata"]["generation"]
            and item["status"].get("replicas", 0) == item["status"].get("updatedReplicas", 0)
            for item in deployments
        )

    def _restored(self) -> bool:
        with self._looking:  # else a double that still sees what was may write once more
            try:
                contents.restore(self.client, self.start)
                self.kubelet.clear()
                return contents.differences(self.start, self.contents()) == []
            except ApiError as error:  # custom kinds are not served yet when the server has just begun
                self._complaints.append(f"{type(error).__name__}: {error}")
                return False

    def _live(self) -> None:
        while not self._stop.wait(0.1):
            try:
                with self._looking:
                    nodes, pods = (self.client.get(f"/api/v1/{kind}")["items"] for kind in ("nodes", "pods"))
                    for double in self._doubles:
                        double.look(nodes, pods)
            except (ApiError, OSError, HTTPException) as error:
                # Objects go while they are looked at, rights are taken away, tests restart the API server.
                self._complaints.append(f"{type(error).__name__}: {error}")
            except BaseException as error:
                self._error = error
                return


def _node(name: str) -> dict[str, Any]:
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"}
    if NODES[name]:
        labels["nvidia.com/gpu.present"] = "true"
    resources = {"cpu": "64", "memory": "512Gi", "ephemeral-storage": "1Ti", "pods": "110"}
    moment = "2026-01-15T08:00:00Z"
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": dict(kwok.FAKE)},
        "spec": {"providerID": f"rig://{name}"},
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}, {"type": "Hostname", "address": name}],
            "conditions": [{**ready, "lastHeartbeatTime": moment, "lastTransitionTime": moment}],
            "nodeInfo": {
                "architecture": "amd64", "operatingSystem": "linux", "kernelVersion": "6.8.0-51-generic",
                "osImage": "Ubuntu 24.04.1 LTS", "containerRuntimeVersion": "containerd://1.7.24",
                "kubeletVersion": "v1.36.1", "kubeProxyVersion": "v1.36.1",
                "bootID": "", "machineID": "", "systemUUID": "",
            },
        },
    }  # fmt: skip
