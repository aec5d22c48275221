"""All checks, in the order in which doctor runs and shows them; docs/checks.md is generated from here."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

from vgpuctl.checks.check import Check


@dataclass(frozen=True)
class Area:
    """A group of checks. title: its heading. about: one line for the documentation. modules: of this package, each with
    a tuple CHECKS."""

    id: str
    title: str
    about: str
    modules: tuple[str, ...]


AREAS = (
    Area("host", "Host", "the machine: card, device nodes, kernel modules, space", ("host",)),
    Area("driver", "Driver", "the NVIDIA driver and what it says of its cards", ("driver", "cards")),
    Area("runtime", "Container runtime", "how containers get at the cards", ("runtime", "cdi")),
    Area(
        "shim",
        "Library",
        "the preloaded library that keeps containers within their share",
        ("shim", "regions", "limits"),
    ),
    Area("cluster", "Cluster", "the API server, our rights, the GPU nodes", ("cluster",)),
    Area("plugin", "Device plugin", "what it registered, what the nodes offer", ("plugin", "placing")),
    Area("volcano", "Volcano", "the scheduler, what it reads, its queues", ("scheduler", "deviceshare", "queues")),
    Area("config", "Configuration", "the rules of config validate, on what runs", ("config",)),
    Area("quota", "Quotas", "what limits the teams", ("quota",)),
    Area("pods", "Pods", "what they ask for and what they were given", ("pods", "allocation")),
)


def all_checks() -> tuple[Check, ...]:
    """Every check, area by area."""
    modules = (import_module(f"vgpuctl.checks.{name}") for area in AREAS for name in area.modules)
    return tuple(check for module in modules for check in module.CHECKS)
