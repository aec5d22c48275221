"""Looks at what is installed: the record, the plugin's DaemonSets and pods, the objects, what the nodes registered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

import vgpuctl
from vgpuctl.model import kube, pool
from vgpuctl.model.change import Target
from vgpuctl.model.facts import Facts, Part
from vgpuctl.model.install import libraries as library
from vgpuctl.model.install.drift import Drift, drift
from vgpuctl.model.install.manifests import PLUGIN, manifests, target, wanted_hashes
from vgpuctl.model.install.options import Options
from vgpuctl.model.install.reasons import events
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.model.status import (
    Installed,
    Library,
    Pod,
    Rollout,
    Status,
    Versions,
    faults,
    libraries_on,
    rollout,
    size,
)
from vgpuctl.sources.source import Objects
from vgpuctl.tasks.install import record
from vgpuctl.tasks.load import load

Object = dict[str, Any]
T = TypeVar("T")
_PARTS = (Part.VERSION, Part.NODES, Part.DEPLOYMENTS)
_AT_ONCE = 8
_NONE: list[Object] = []


@dataclass
class _Look:
    """One look at a source. unread: what it did not give, and why. wrong: what is there and cannot be right."""

    source: Objects
    unread: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def ask(self, what: str, read: Callable[[], T], default: T) -> T:
        """What was read; else the reason is kept."""
        try:
            return read()
        except Problem as problem:
            line = "; ".join(problem.lines())
            (self.wrong if problem.exit_code is Exit.FINDINGS else self.unread).append(f"{what}: {line}")
            return default


def look(source: Objects) -> Status:
    """The state of the installation, as far as the source tells."""
    see = _Look(source)
    with ThreadPoolExecutor(1) as aside:
        loading = aside.submit(load, (source,), _PARTS)
        kept = see.ask("the record of the installation", lambda: record.read(source), None)
        sets = see.ask("DaemonSets", lambda: _plugins(source.objects("DaemonSet")), _NONE)
        hashes = {arch: digest for item in sets for arch, digest in wanted_hashes(item).items()}
        pods = {id(item): _pods(see, item) for item in sets}
        rollouts = [_rollout(see, item, pods[id(item)]) for item in sets]
        found, why = _drift(see, kept, sets) if kept else (None, "vgpuctl has installed nothing here")
        facts = loading.result()
    see.unread += [f"{part.value}: {facts.part(part).reason}" for part in _PARTS if not facts.part(part).known]
    release = kept.release if kept else None
    installed = _installed(kept, source.now()) if kept else None
    lying = libraries_on([pod for items in pods.values() for pod in items], hashes)
    options = release.options if release else Options()
    return Status(
        source=source.name,
        at=source.now(),
        versions=_versions(facts, sets, release.version if release else None),
        installed=installed,
        libraries=_libraries(hashes, options) if kept else [],
        rollouts=rollouts,
        placed=lying,
        pool=size(pool.gpu_nodes(facts)) if facts.nodes.known else None,
        drift=found,
        drift_reason=why,
        findings=[*see.wrong, *faults(installed, rollouts, lying, found)],
        unread=list(dict.fromkeys(see.unread)),
    )


def verdict(status: Status) -> Exit:
    """The exit code; what is wrong beats what is not known. While somebody is at work drift is not looked for."""
    if status.findings:
        return Exit.FINDINGS
    unjudged = status.installed and status.drift is None and not status.installed.at_work
    return Exit.UNKNOWN if status.unread or unjudged else Exit.FINE


def _plugins(found: Iterable[Object]) -> list[Object]:
    """The DaemonSets of the plugin; ours first."""
    plugins = [item for item in found if (decoded := _decoded(item, kube.Workload)) and pool.runs_plugin(decoded)]
    return sorted(plugins, key=lambda item: (item["metadata"]["name"] != PLUGIN, item["metadata"]["name"]))


def _decoded(item: Object, kind: type[T]) -> T | None:
    """An object as far as it is one."""
    try:
        return msgspec.convert(item, kind, strict=False)
    except msgspec.ValidationError:
        return None


def _pods(see: _Look, daemonset: Object) -> list[Pod]:
    space, labels = daemonset["metadata"].get("namespace", ""), _labels(daemonset)
    query = {"labelSelector": ",".join(f"{key}={value}" for key, value in labels.items())}
    found = see.ask("pods of the plugin", lambda: see.source.objects("Pod", namespace=space, query=query), _NONE)
    pods = [Pod(raw, item) for raw in found if (item := _decoded(raw, kube.Pod))]
    if len(pods) < len(found):
        see.unread.append(f"pods of the plugin: {len(found) - len(pods)} could not be decoded")
    return [pod for pod in pods if pod.item.status.phase not in pool.ENDED]


def _labels(daemonset: Object) -> Mapping[str, str]:
    spec = daemonset.get("spec") or {}
    selector = spec.get("selector") or {}
    template: Mapping[str, Any] = spec.get("template") or {}
    return selector.get("matchLabels") or (template.get("metadata") or {}).get("labels") or {}


def _rollout(see: _Look, daemonset: Object, pods: list[Pod]) -> Rollout:
    refused: list[str] = []
    if len(pods) < (daemonset.get("status") or {}).get("desiredNumberScheduled", 0):
        metadata = daemonset["metadata"]
        query = {"fieldSelector": f"involvedObject.kind=DaemonSet,involvedObject.name={metadata['name']},type=Warning"}
        space = metadata.get("namespace", "")
        found = see.ask("events", lambda: see.source.objects("Event", namespace=space, query=query), _NONE)
        refused = list(events(found))[:1]
    return rollout(daemonset, pods, refused, see.source.now())


def _drift(see: _Look, kept: record.Kept, sets: list[Object]) -> tuple[list[Drift] | None, str]:
    """What has drifted, or why that is not judged."""
    release = kept.release
    if release.version != vgpuctl.__version__:
        return None, f"vgpuctl {release.version} knows what it installed, this is {vgpuctl.__version__}"
    if release.phase in ("upgrading", "uninstalling"):
        return None, f"it is {release.phase}"
    mine = next((item for item in sets if item["metadata"].get("namespace") == release.options.namespace), None)
    digests = (wanted_hashes(mine) if mine else {}) or _own(release.options)
    if release.options.shim == "vgpuctl" and not digests:
        return None, "neither the cluster nor this program has the library that was installed"
    wanted = manifests(release.options, {}, digests=digests)
    targets = [target(item) for item in wanted]
    with ThreadPoolExecutor(_AT_ONCE) as many:
        live = zip(targets, many.map(lambda one: _live(see, one), targets), strict=True)
        return drift(wanted, {one: item for one, item in live if item is not _UNREAD}), ""


def _own(options: Options) -> dict[str, str]:
    """architecture → sha256 of the library that this program would place; {} when it carries none."""
    try:
        return library.hashes(library.built()) if options.shim == "vgpuctl" else {}
    except Problem:
        return {}


_UNREAD: Object = {}


def _live(see: _Look, one: Target) -> Object | None:
    unread: Object | None = _UNREAD
    return see.ask(str(one), lambda: see.source.get(one), unread)


def _versions(facts: Facts, sets: list[Object], release: str | None) -> Versions:
    volcano = pool.volcano_version(facts)
    return Versions(
        kubernetes=facts.version.value,
        volcano=str(volcano) if volcano else None,
        plugin=_image(sets[0]) if sets else None,
        release=release,
        program=vgpuctl.__version__,
    )


def _image(daemonset: Object) -> str | None:
    """The plugin's image; its container stands first, or has its name."""
    containers = kube.PodSpec() if (found := _decoded(daemonset, kube.Workload)) is None else found.spec.template.spec
    named = [container for container in containers.containers if container.name == PLUGIN]
    return next((container.image for container in (*named, *containers.containers)), None)


def _installed(kept: record.Kept, now: float) -> Installed:
    release = kept.release
    usual = msgspec.to_builtins(Options())
    chosen = {key: value for key, value in msgspec.to_builtins(release.options).items() if value != usual[key]}
    holder = release.holder
    at_work = f"{holder.who} on {holder.host}" if holder and holder.until > now else ""
    return Installed(namespace=kept.namespace, phase=release.phase, at_work=at_work, options=chosen)


def _libraries(hashes: Mapping[str, str], options: Options) -> list[Library]:
    own = _own(options)
    return [
        Library(architecture=name, release=hashes.get(name), program=own.get(name)) for name in sorted({*hashes, *own})
    ]
