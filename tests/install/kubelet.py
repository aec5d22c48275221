"""The kubelets: init containers are run, as processes of this machine, with one directory for each node as its disk.

Where a variable of a container holds the path of a mount, the directory behind it is put in its place, so what is run
must take its paths from its environment. What it writes to its termination log, and its exit code, go into the pod's
status. When all ended well, kwok makes the pod run.
"""

from __future__ import annotations

import base64
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cluster.client import ApiError, Client

DOWN = "down"
TERMINATION_LOG = "/dev/termination-log"
STRATEGIC = "application/strategic-merge-patch+json"
_RETRY = 1.0
"""Seconds between two tries of an init container that failed; a real kubelet takes 10 s to 5 min."""
_FOLDERS = ("tmp", "usr/local", "var/lib/kubelet/device-plugins")
_GOES = {"type": "PodReadyToStartContainers", "status": "True"}

Objects = Iterable[Mapping[str, Any]]


@dataclass(frozen=True)
class Trouble:
    """reason: DOWN for a kubelet that does nothing; `ImagePullBackOff` and the like hold a pod; with `CrashLoopBackOff`
    its init containers run, and the others crash. image: only pods whose image's name has this in it."""

    reason: str = ""
    message: str = ""
    image: str = ""


class Kubelet:
    """All nodes' kubelets.

    root: holds a directory per node. troubles: by node, what befalls the pods that start there.
    """

    def __init__(self, client: Client, root: Path, nodes: Iterable[str]) -> None:
        self._client = client
        self._root = root
        self._tried: dict[str, tuple[float, int]] = {}
        self._done: set[str] = set()
        self.troubles: dict[str, Trouble] = {}
        self._nodes = tuple(nodes)
        self.clear()

    def host(self, node: str) -> Path:
        """The directory that is the node's disk."""
        return self._root / node

    def files(self, node: str) -> list[str]:
        """The files on the node's disk."""
        host = self.host(node)
        return sorted(str(path.relative_to(host)) for path in host.rglob("*") if not path.is_dir())

    def clear(self) -> None:
        """Brings all disks back to their start."""
        shutil.rmtree(self._root, ignore_errors=True)
        for node in self._nodes:
            for name in _FOLDERS:
                (self.host(node) / name).mkdir(parents=True)

    def look(self, nodes: Objects, pods: Objects) -> None:
        """Starts the pods that are bound and wait to be started."""
        for pod in pods:
            uid, host = pod["metadata"]["uid"], self.host(pod["spec"].get("nodeName") or "-")
            waits = pod["status"]["phase"] == "Pending" and "deletionTimestamp" not in pod["metadata"]
            if waits and uid not in self._done and host.is_dir() and _admitted(pod):
                self._start(pod)

    def _start(self, pod: Mapping[str, Any]) -> None:
        uid, node = pod["metadata"]["uid"], pod["spec"]["nodeName"]
        last, tries = self._tried.get(uid, (0.0, 0))
        if time.monotonic() - last < _RETRY:
            return
        self._tried[uid] = (time.monotonic(), tries + 1)
        inits, mains = pod["spec"].get("initContainers", []), pod["spec"]["containers"]
        trouble = self.troubles.get(node, Trouble())
        if trouble.reason == DOWN:
            return
        reason, message = (trouble.reason, trouble.message) if trouble.image in mains[0]["image"] else ("", "")
        if reason and reason != "CrashLoopBackOff":
            key, held = ("initContainerStatuses", inits) if inits else ("containerStatuses", mains)
            self._status(pod, {key: [_waiting(container, reason, message) for container in held]})
            return
        done: list[dict[str, Any]] = []
        for container in inits:
            try:
                code, told = self._run(pod, container)
            except MountError as error:
                self._status(pod, {"initContainerStatuses": [_waiting(c, "PodInitializing") for c in inits]})
                self._event(pod, "FailedMount", f"MountVolume.SetUp failed for volume: {error}")
                return
            ended = {"exitCode": code, "reason": "Error" if code else "Completed", "message": told}
            if code:
                waiting = _waiting(container, "CrashLoopBackOff", f"back-off restarting failed {container['name']}")
                failed = {**waiting, "restartCount": tries, "lastState": {"terminated": ended}}
                self._status(pod, {"initContainerStatuses": [*done, failed]})
                return
            state = {"terminated": ended}
            done.append({**_waiting(container, ""), "ready": True, "restartCount": tries, "state": state})
        status: dict[str, Any] = {"initContainerStatuses": done} if done else {}
        if reason:
            ended = {"exitCode": 2, "reason": "Error", "message": message}
            crashes = {"restartCount": tries, "lastState": {"terminated": ended}}
            status["containerStatuses"] = [{**_waiting(container, reason), **crashes} for container in mains]
        else:
            self._done.add(uid)
            status["conditions"] = [_GOES]
        self._status(pod, status)

    def _status(self, pod: Mapping[str, Any], status: Mapping[str, Any]) -> None:
        self._client.request("PATCH", f"{_path(pod)}/status", {"status": status}, content_type=STRATEGIC)

    def _event(self, pod: Mapping[str, Any], reason: str, message: str) -> None:
        metadata = pod["metadata"]
        involved = {"kind": "Pod", "namespace": metadata["namespace"], "name": metadata["name"], "uid": metadata["uid"]}
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        times = {"firstTimestamp": now, "lastTimestamp": now, "count": 1, "source": {"component": "kubelet"}}
        body = {"type": "Warning", "reason": reason, "message": message, "involvedObject": involved, **times}
        name = {"generateName": f"{metadata['name']}."}
        self._client.post(f"/api/v1/namespaces/{metadata['namespace']}/events", {"metadata": name, **body})

    def _run(self, pod: Mapping[str, Any], container: Mapping[str, Any]) -> tuple[int, str]:
        """Runs an init container: its exit code and what it left in its termination log (or said last)."""
        scratch = self._root.parent / "containers" / pod["metadata"]["uid"] / container["name"]
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        log = scratch / "termination-log"
        log.touch()
        volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes", [])}
        places = {}
        for mount in container.get("volumeMounts", []):
            inside = self._volume(pod, volumes[mount["name"]], scratch / mount["name"])
            places[mount["mountPath"].rstrip("/")] = str(inside / mount.get("subPath", ""))
        places["/k8s-vgpu"] = str(self._image(scratch))
        told_in = {container.get("terminationMessagePath", TERMINATION_LOG): str(log)}
        variables = {item["name"]: item.get("value", "") for item in container.get("env", [])}
        words = [_expanded(word, variables) for word in (*container.get("command", []), *container.get("args", []))]
        environment = {key: _replaced(value, places) for key, value in variables.items()}
        done = subprocess.run(
            [_replaced(word, told_in) for word in words], cwd=scratch, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=30, check=False,
            env={"PATH": os.environ["PATH"], **environment},
        )  # fmt: skip
        told = log.read_text()
        if not told and done.returncode and container.get("terminationMessagePolicy") == "FallbackToLogsOnError":
            told = done.stdout[-2048:]
        return done.returncode, _replaced(told, {outside: inside for inside, outside in places.items()}).strip()

    def _image(self, scratch: Path) -> Path:
        """What the plugin's image holds (docs/contract.md)."""
        image = scratch / "image"
        (image / "lib" / "nvidia").mkdir(parents=True)
        (image / "lib" / "nvidia" / "libvgpu.so").write_bytes(b"upstream's library")
        (image / "lib" / "nvidia" / "ld.so.preload").write_text("/usr/local/vgpu/libvgpu.so\n")
        return image

    def _volume(self, pod: Mapping[str, Any], volume: Mapping[str, Any], target: Path) -> Path:
        """The directory behind a volume. Raises MountError."""
        if "hostPath" in volume:
            path = self.host(pod["spec"]["nodeName"]) / str(volume["hostPath"]["path"]).lstrip("/")
            if volume["hostPath"].get("type") == "DirectoryOrCreate" and not path.exists():
                path.mkdir(parents=True)
            if volume["hostPath"].get("type") and not path.is_dir():
                raise MountError(f"hostPath type check failed: {volume['hostPath']['path']} is not a directory")
            return path
        target.mkdir()
        sources = volume["projected"]["sources"] if "projected" in volume else [volume]
        for source in sources:
            if "configMap" in source:
                self._config_map(pod["metadata"]["namespace"], source["configMap"], target)
        return target

    def _config_map(self, namespace: str, source: Mapping[str, Any], target: Path) -> None:
        try:
            found = self._client.get(f"/api/v1/namespaces/{namespace}/configmaps/{source['name']}")
        except ApiError as error:
            if error.status == 404 and source.get("optional"):
                return
            raise MountError(str(error)) from None
        data = {key: text.encode() for key, text in found.get("data", {}).items()}
        data |= {key: base64.b64decode(text) for key, text in found.get("binaryData", {}).items()}
        for item in source.get("items", [{"key": key, "path": key} for key in data]):
            path = target / item["path"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data[item["key"]])


class MountError(Exception):
    """A volume cannot be mounted; the text is the kubelet's."""


def _admitted(pod: Mapping[str, Any]) -> bool:
    """A pod with vGPUs starts once the plugin has handed them out."""
    return bool(pod["metadata"].get("annotations", {}).get("volcano.sh/bind-phase", "success") == "success")


def _waiting(container: Mapping[str, Any], reason: str, message: str = "") -> dict[str, Any]:
    state = {"waiting": {"reason": reason, "message": message}} if reason else {}
    known = {"name": container["name"], "image": container["image"], "imageID": "", "ready": False, "restartCount": 0}
    return {**known, "state": state}


def _path(pod: Mapping[str, Any]) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


def _expanded(word: str, variables: Mapping[str, str]) -> str:
    """What Kubernetes makes of dollar signs in a container's command and arguments."""
    return re.sub(
        r"\$\$|\$\(([\w.-]+)\)",
        lambda found: "$" if found[1] is None else variables.get(found[1], found.group()),
        word,
    )


def _replaced(text: str, names: Mapping[str, str]) -> str:
    """The text with each of the paths replaced; the longest one counts."""
    if not names:
        return text
    longest = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return re.sub(rf"({longest})(?![\w.-])", lambda found: names[found.group()], text)
