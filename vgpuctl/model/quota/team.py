"""A team's share as it is stated: by `quota set`, in a teams file, by `quota export`."""

from __future__ import annotations

import re
from typing import Final

from vgpuctl.model.output import Item, Output

MANAGED_BY: Final = "app.kubernetes.io/managed-by"
MANAGER: Final = "vgpuctl"
TEAM: Final = "vgpuctl.dev/team"
QUOTA: Final = "vgpu"
"""The name of the ResourceQuota; that of a priority is `vgpu-<priority>`, and so is its PriorityClass."""

PRIORITIES: Final = {"low": 100, "normal": 1000, "high": 10_000}
"""The values of the priority classes that vgpuctl makes; others must exist."""

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SYSTEM = re.compile(r"kube-.*|volcano-system|volcano-monitoring|openshift.*|gpu-operator")


class Amounts(Item, frozen=True, kw_only=True, omit_defaults=True):
    """An amount of the pool; None is no limit. memory: a size such as `200Gi`, or a bare number of memory units.
    cores: percent of a card, so 800 is eight cards."""

    number: int | None = None
    memory: str | None = None
    cores: int | None = None


class TeamQueue(Item, frozen=True, kw_only=True, omit_defaults=True):
    """A Volcano Queue that a team's namespaces share. Without amounts of its own its capability is the team's."""

    name: str
    capability: Amounts | None = None
    guarantee: Amounts | None = None


class Team(Item, frozen=True, kw_only=True, omit_defaults=True):
    """One team. namespaces: each gets the quota; empty: one of the team's name. priorities: vGPUs by priority."""

    name: str
    namespaces: list[str] = []
    number: int | None = None
    memory: str | None = None
    cores: int | None = None
    priorities: dict[str, int] = {}
    queue: TeamQueue | None = None

    @property
    def places(self) -> list[str]:
        return self.namespaces or [self.name]

    @property
    def amounts(self) -> Amounts:
        return Amounts(number=self.number, memory=self.memory, cores=self.cores)


class Teams(Output, frozen=True, kw_only=True):
    """All teams, as `quota export` writes and `quota apply -f` reads them."""

    teams: list[Team] = []


def labels(team: str) -> dict[str, str]:
    """The labels of the objects that are ours."""
    return {MANAGED_BY: MANAGER, TEAM: team}


def quota_name(priority: str = "") -> str:
    return f"{QUOTA}-{priority}" if priority else QUOTA


def wrong_name(name: str, what: str = "a team's name") -> str:
    """Why a name cannot be used; "" when it can."""
    if not _LABEL.fullmatch(name):
        return f"{name!r} cannot be {what}: lower-case letters, digits and dashes, at most 63"
    return ""


def wrong_queue(name: str) -> str:
    """Why a queue cannot be a team's; "" when it can."""
    if name in ("root", "default"):
        return f"the queue {name} is everybody's: a cap on it would be a cap for all teams"
    return wrong_name(name, "a queue's name")


def wrong_namespace(name: str) -> str:
    """Why a namespace cannot get a quota; "" when it can."""
    if _SYSTEM.fullmatch(name):
        return f"{name} is a system namespace: a quota there would stop the cluster's own pods"
    return wrong_name(name, "a namespace")
