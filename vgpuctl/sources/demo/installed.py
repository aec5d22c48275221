"""What `vgpuctl install` made of the demo's cluster, as the API would give it."""

from __future__ import annotations

from functools import cache

from vgpuctl.model.install import libraries
from vgpuctl.model.install.manifests import images, manifests
from vgpuctl.model.install.options import Options
from vgpuctl.model.install.release import Release, config_map
from vgpuctl.model.problem import Problem
from vgpuctl.sources.demo.plan import Object, Plan

OPTIONS = Options()


@cache
def digests() -> dict[str, str]:
    """The libraries of this program; where it carries none, made-up ones."""
    try:
        return libraries.hashes(libraries.built())
    except Problem:
        return {name: libraries.sha256(name.encode()) for name in libraries.ARCHITECTURES}


def image() -> str:
    """The plugin's."""
    return images(OPTIONS)[0]


def objects(plan: Plan) -> list[Object]:
    """All objects of the installation, and its record."""
    found = [*manifests(OPTIONS, {}, digests=digests()), config_map(Release(phase="installed"))]
    for item in found:
        item["metadata"] |= {"uid": f"demo-{item['metadata']['name']}", "generation": 1}
        if item["kind"] == "DaemonSet":
            item["status"] = {
                "observedGeneration": 1,
                **dict.fromkeys(
                    (
                        "desiredNumberScheduled",
                        "currentNumberScheduled",
                        "updatedNumberScheduled",
                        "numberReady",
                        "numberAvailable",
                    ),
                    len(plan.nodes),
                ),
            }
    return found
