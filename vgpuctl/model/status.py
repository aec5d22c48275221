"""What `status` shows: what is installed, how far it runs, which library lies where, and what has drifted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from vgpuctl.model import annotation, kube
from vgpuctl.model.install import placed
from vgpuctl.model.install.drift import Drift
from vgpuctl.model.install.owner import owner
from vgpuctl.model.install.reasons import is_ready, reason
from vgpuctl.model.install.release import COMMANDS
from vgpuctl.model.output import Item, Output
from vgpuctl.model.pool import GpuNode

STUCK: Final = 300.0
"""Seconds after which a pod that is not ready will not become so by waiting."""


class Versions(Item, frozen=True, kw_only=True):
    """None: not known, or not there. plugin: its image. release: of the vgpuctl that installed; program: of this."""

    kubernetes: str | None = None
    volcano: str | None = None
    plugin: str | None = None
    release: str | None = None
    program: str


class Installed(Item, frozen=True, kw_only=True):
    """The record of the installation. phase: installed, or what is half done. at_work: who is at it now, "" for nobody.
    options: those that are not the usual ones."""

    namespace: str
    phase: str
    at_work: str = ""
    options: dict[str, Any] = {}


class Library(Item, frozen=True, kw_only=True):
    """The preloaded library for an architecture, by its sha256: of the release, and of this program. None: it has
    none."""

    architecture: str
    release: str | None = None
    program: str | None = None


class Trouble(Item, frozen=True, kw_only=True):
    """Why pods do not come up. nodes: "" for a pod that has none yet. stuck: waiting alone does not help."""

    reason: str
    nodes: list[str]
    stuck: bool


class Rollout(Item, frozen=True, kw_only=True):
    """A DaemonSet of the plugin. owner: who wrote it, "" for vgpuctl. desired, updated, ready, unavailable: pods, as
    its controller counts them. current: it has counted the newest specification."""

    name: str
    namespace: str
    owner: str = ""
    desired: int = 0
    updated: int = 0
    ready: int = 0
    unavailable: int = 0
    current: bool = True
    troubles: list[Trouble] = []

    @property
    def done(self) -> bool:
        return self.current and self.desired == self.updated == self.ready


class Placed(Item, frozen=True, kw_only=True):
    """Nodes on which the same library lies. sha256: None when it is not known, for that reason. wanted: it is one that
    their DaemonSet places; None when that names none."""

    nodes: list[str]
    sha256: str | None = None
    reason: str = ""
    wanted: bool | None = None


class Size(Item, frozen=True, kw_only=True):
    """What the plugins registered. nodes: those with cards. unhealthy: cards."""

    nodes: int
    cards: int
    vgpus: int
    unhealthy: int


class Status(Output, frozen=True, kw_only=True):
    """What `status` prints. at: Unix seconds. installed: None when vgpuctl has installed nothing; with
    installed_reason that is not known. rollouts: None when not known. drift: None when it was not judged, for
    drift_reason. findings: what is wrong, a line each. unread: what could not be read, and why."""

    at: float
    versions: Versions
    installed: Installed | None = None
    installed_reason: str = ""
    libraries: list[Library] = []
    rollouts: list[Rollout] | None = []
    placed: list[Placed] = []
    pool: Size | None = None
    drift: list[Drift] | None = None
    drift_reason: str = ""
    findings: list[str] = []
    unread: list[str] = []


class Pod(msgspec.Struct, frozen=True):
    """A pod of the plugin, whole and decoded."""

    raw: Mapping[str, Any]
    item: kube.Pod

    @property
    def node(self) -> str:
        return self.item.spec.node_name


def rollout(daemonset: Mapping[str, Any], pods: Sequence[Pod], refused: Iterable[str], now: float) -> Rollout:
    """How far a DaemonSet has come. refused: why its controller could not make pods. now: Unix seconds."""
    metadata, status = daemonset["metadata"], daemonset.get("status") or {}
    whose = owner(daemonset)
    desired = _count(status, "desiredNumberScheduled")
    return Rollout(
        name=metadata["name"],
        namespace=metadata.get("namespace", ""),
        owner=whose.name if whose else "",
        desired=desired,
        updated=_count(status, "updatedNumberScheduled"),
        ready=_count(status, "numberReady"),
        unavailable=_count(status, "numberUnavailable"),
        current=_count(status, "observedGeneration") >= _count(metadata, "generation"),
        troubles=[
            *_grouped(_trouble(pod, now) for pod in pods if not is_ready(pod.raw)),
            *(Trouble(reason=text, nodes=[], stuck=True) for text in refused),
        ],
    )


def _count(values: Mapping[str, Any], key: str) -> int:
    found = values.get(key)
    return found if isinstance(found, int) else 0


def _trouble(pod: Pod, now: float) -> Trouble:
    found = reason(pod.raw)
    metadata = pod.item.metadata
    since = annotation.decode_time(_since(pod.raw) or metadata.creation_timestamp or "")
    old = since is not None and now - since > STUCK
    if found:
        return Trouble(reason=found.text, nodes=[found.node or pod.node], stuck=found.hopeless or old)
    text = "it is being deleted" if metadata.deletion_timestamp else f"{pod.item.status.phase or 'Pending'}, not ready"
    return Trouble(reason=text, nodes=[pod.node], stuck=old)


def _since(pod: Mapping[str, Any]) -> str:
    """When a pod stopped being ready, "" when it does not tell."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return next((str(item.get("lastTransitionTime") or "") for item in conditions if item.get("type") == "Ready"), "")


def _grouped(found: Iterable[Trouble]) -> list[Trouble]:
    """The same trouble of several nodes as one, what is stuck first."""
    groups: dict[tuple[bool, str], list[str]] = {}
    for one in found:
        groups.setdefault((not one.stuck, one.reason), []).extend(one.nodes)
    return [
        Trouble(reason=text, nodes=sorted(nodes), stuck=not moving) for (moving, text), nodes in sorted(groups.items())
    ]


def libraries_on(pods: Iterable[Pod], wanted: Mapping[str, str]) -> list[Placed]:
    """Which library lies on which nodes; the one on most nodes first. wanted: architecture → sha256."""
    groups: dict[tuple[str | None, str], list[str]] = {}
    for pod in pods:
        reading = placed.sha256(pod.item)
        groups.setdefault((reading.value, reading.reason), []).append(pod.node)
    return [
        Placed(
            nodes=sorted(nodes),
            sha256=digest,
            reason=why,
            wanted=digest in wanted.values() if digest and wanted else None,
        )
        for (digest, why), nodes in sorted(groups.items(), key=lambda group: (group[0][0] is None, -len(group[1])))
    ]


def size(nodes: Iterable[GpuNode]) -> Size:
    """What is registered on nodes."""
    having = [node for node in nodes if node.cards]
    cards = [card for node in having for card in node.cards]
    return Size(
        nodes=len(having),
        cards=len(cards),
        vgpus=sum(card.count for card in cards),
        unhealthy=sum(not card.healthy for card in cards),
    )


def faults(
    installed: Installed | None, rollouts: Sequence[Rollout], found: Sequence[Placed], drift: Sequence[Drift] | None
) -> Iterator[str]:
    """What is wrong, a line each."""
    if installed and installed.phase in COMMANDS and not installed.at_work:
        command = COMMANDS[installed.phase]
        yield f"an {command} is half done: vgpuctl {command} finishes it"
    for item in rollouts:
        stuck = {node for trouble in item.troubles if trouble.stuck for node in trouble.nodes or [trouble.reason]}
        if stuck:
            yield f"DaemonSet {item.namespace}/{item.name}: {_pods(len(stuck))} not come up"
    nodes = sum(len(group.nodes) for group in found if group.wanted is False)
    if nodes and all(item.updated == item.desired for item in rollouts):
        yield f"another library than the DaemonSet places lies on {nodes} node{'' if nodes == 1 else 's'}"
    if drift:
        force = " --force-conflicts" if any(item.differences for item in drift) else ""
        what = "1 object has drifted" if len(drift) == 1 else f"{len(drift)} objects have drifted"
        yield f"{what}: vgpuctl upgrade{force} brings back what was installed"


def _pods(number: int) -> str:
    return f"{number} pod{' does' if number == 1 else 's do'}"
