"""Which library lies on a node: what the init container of the plugin's pod there said when it had placed it."""

from __future__ import annotations

import re
from typing import Final

from vgpuctl.model import kube
from vgpuctl.model.install import libraries
from vgpuctl.model.reading import Reading, known, missing

CONTAINER: Final = "place"
"""The init container of templates/install/plugin.yaml."""
_SHA256 = re.compile(r"[0-9a-f]{64}")


def wanted(item: kube.Workload) -> dict[str, str]:
    """architecture → sha256 of the library that a DaemonSet places; {} when it places none, or the image's own."""
    for container in item.spec.template.spec.init_containers or ():
        for entry in container.env or () if container.name == CONTAINER else ():
            if entry.name == "LIBRARIES":
                return libraries.read(entry.value or "")
    return {}


def places(spec: kube.PodSpec) -> bool:
    """Whether pods of this kind place the library as we do it."""
    return any(container.name == CONTAINER for container in spec.init_containers or ())


def sha256(pod: kube.Pod) -> Reading[str]:
    """The sha256 of the library that a plugin's pod placed on its node; else why that is not known."""
    source = f"Pod {pod.metadata.namespace}/{pod.metadata.name}"
    if not places(pod.spec):
        return missing("its pod has no init container that places it", source, absent=True)
    if failed := failure(pod):
        return missing(failed, source)
    ended, waiting = _state(pod, "terminated"), _state(pod, "waiting")
    said = " ".join(ended.message.split()) if ended else ""
    if _SHA256.fullmatch(said):
        return known(said, source)
    if ended:
        return missing("the init container did not say what it placed", source)
    return missing(f"not placed yet ({waiting.reason if waiting and waiting.reason else 'its pod starts'})", source)


def failure(pod: kube.Pod) -> str:
    """What the init container said when it could not place the library; "" when it could, or has not ended."""
    ended = _state(pod, "terminated")
    if ended is None or not ended.exit_code:
        return ""
    return f"{CONTAINER} failed with exit code {ended.exit_code}: {' '.join(ended.message.split()) or ended.reason}"


def _state(pod: kube.Pod, key: str) -> kube.ContainerState | None:
    statuses = pod.status.init_container_statuses or ()
    return next(((status.state or {}).get(key) for status in statuses if status.name == CONTAINER), None)
