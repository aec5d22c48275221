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
    """The sha256 of the library that a plugin's pod placed on its node; the reason why it is not known is what the
    container said, if it failed."""
    source = f"Pod {pod.metadata.namespace}/{pod.metadata.name}"
    if not places(pod.spec):
        return missing("its pod has no init container that places it", source, absent=True)
    statuses = pod.status.init_container_statuses or ()
    state = next((status.state for status in statuses if status.name == CONTAINER), None) or {}
    ended, waiting = state.get("terminated"), state.get("waiting")
    said = " ".join(ended.message.split()) if ended else ""
    if ended and ended.exit_code == 0 and _SHA256.fullmatch(said):
        return known(said, source)
    if ended and ended.exit_code:
        return missing(f"{CONTAINER} failed with exit code {ended.exit_code}: {said or ended.reason}", source)
    if ended:
        return missing("the init container did not say what it placed", source)
    return missing(f"not placed yet ({waiting.reason if waiting and waiting.reason else 'its pod starts'})", source)
