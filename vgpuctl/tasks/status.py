"""Looks at what is installed: the record, the plugin's DaemonSets and pods, the objects, what the nodes registered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import msgspec

import vgpuctl
from vgpuctl.model import kube, pool
from vgpuctl.model.change import Target
from vgpuctl.model.configmaps import PLUGIN_NAMESPACES
from vgpuctl.model.decode import without_nulls
from vgpuctl.model.facts import Facts, Part
from vgpuctl.model.install import libraries as library
from vgpuctl.model.install.drift import Drift, drift
from vgpuctl.model.install.manifests import PLUGIN, is_device, manifests, target, wanted_hashes
from vgpuctl.model.install.options import Options
from vgpuctl.model.install.reasons import events, reason
from vgpuctl.model.pool import runs_plugin
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
_ODD = (AttributeError, KeyError, TypeError, ValueError, msgspec.ValidationError)
"""What an object that is not as the API gives it (one of a bundle) makes its readers raise."""


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
        except _ODD:
            self.unread.append(f"{what}: not as the API gives it")
        return default


@dataclass(frozen=True)
class _Plugin:
    """A DaemonSet of the plugin: its image, its pods, and the libraries that it places by architecture."""

    image: str | None
    pods: list[Pod]
    hashes: dict[str, str]
    rollout: Rollout


def look(source: Objects) -> Status:
    """The state of the installation, as far as the source tells."""
    see = _Look(source)
    with ThreadPoolExecutor(1) as aside:
        loading = aside.submit(load, (source,), _PARTS)
        kept = see.ask("the record of the installation", lambda: record.read(source), None)
        unsure = "; ".join((*see.wrong, *see.unread))
        seen = _plugins(see)
        plugins = seen or []
        found, why = _drift(see, kept, plugins) if kept else (None, unsure or "vgpuctl has installed nothing here")
        facts = loading.result()
    see.unread += [f"{part.value}: {facts.part(part).reason}" for part in _PARTS if not facts.part(part).known]
    hashes = {name: digest for plugin in plugins for name, digest in plugin.hashes.items()}
    installed = _installed(kept, source.now()) if kept else None
    rollouts = [plugin.rollout for plugin in plugins]
    lying = libraries_on([pod for plugin in plugins for pod in plugin.pods], hashes)
    return Status(
        source=source.name,
        at=source.now(),
        versions=_versions(facts, plugins, kept),
        installed=installed,
        installed_reason=unsure,
        libraries=_libraries(hashes, kept.release.options) if kept else [],
        rollouts=rollouts if seen is not None else None,
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


def _plugins(see: _Look) -> list[_Plugin] | None:
    """The plugin's DaemonSets, the one of our name first; None when they are not known."""
    found = see.ask("DaemonSets", partial(_daemonsets, see.source), None)
    if found is None:
        return None
    ours = [
        item for item in map(without_nulls, found) if (known := _decoded(item, kube.Workload)) and runs_plugin(known)
    ]
    ours.sort(key=lambda item: (item["metadata"].get("name") != PLUGIN, str(item["metadata"].get("name"))))
    looked = [see.ask(f"DaemonSet {_name(item)}", partial(_plugin, see, item), None) for item in ours]
    return [plugin for plugin in looked if plugin]


def _daemonsets(source: Objects) -> list[Object] | None:
    return source.objects("DaemonSet")


def _name(item: Object) -> str:
    metadata = item["metadata"]
    return f"{metadata.get('namespace')}/{metadata.get('name')}"


def _plugin(see: _Look, daemonset: Object) -> _Plugin | None:
    pods = _pods(see, daemonset)
    made = rollout(daemonset, pods, _refused(see, daemonset, len(pods)), see.source.now())
    return _Plugin(_image(daemonset), pods, wanted_hashes(daemonset), made)


def _decoded(item: Object, kind: type[T]) -> T | None:
    """An object as far as it is one."""
    try:
        return msgspec.convert(item, kind, strict=False)
    except msgspec.ValidationError:
        return None


def _pods(see: _Look, daemonset: Object) -> list[Pod]:
    """The pods that a DaemonSet has made and that have not ended."""
    metadata, spec = daemonset["metadata"], daemonset["spec"]
    labels = (spec.get("selector") or {}).get("matchLabels") or spec["template"]["metadata"]["labels"]
    query = {"labelSelector": ",".join(f"{key}={value}" for key, value in labels.items())}
    space = metadata.get("namespace", "")
    found = see.ask("pods of the plugin", lambda: see.source.objects("Pod", namespace=space, query=query), _NONE)
    pods = [
        pod for raw in map(without_nulls, found) if (pod := see.ask("a pod of the plugin", partial(_pod, raw), None))
    ]
    uids = {metadata.get("uid"), None}
    return [pod for pod in pods if _owner(pod.item) in uids and pod.item.status.phase not in pool.ENDED]


def _pod(raw: Object) -> Pod | None:
    """A pod that can be told about. Raises what an odd one makes the readers of it raise."""
    reason(raw)
    return Pod(raw, msgspec.convert(raw, kube.Pod, strict=False))


def _owner(pod: kube.Pod) -> str | None:
    """The UID of its controller."""
    return next((one.uid for one in pod.metadata.owner_references or () if one.controller), None)


def _refused(see: _Look, daemonset: Object, pods: int) -> list[str]:
    """Why the controller could not make pods, where some are missing."""
    if pods >= (daemonset.get("status") or {}).get("desiredNumberScheduled", 0):
        return []
    metadata = daemonset["metadata"]
    query = {"fieldSelector": f"involvedObject.kind=DaemonSet,involvedObject.name={metadata['name']},type=Warning"}
    space = metadata.get("namespace", "")
    found = see.ask("events", lambda: see.source.objects("Event", namespace=space, query=query), _NONE)
    return list(events(found))[:1]


def _drift(see: _Look, kept: record.Kept, plugins: list[_Plugin]) -> tuple[list[Drift] | None, str]:
    """What has drifted, or why that is not judged."""
    release = kept.release
    if release.version != vgpuctl.__version__:
        return None, f"vgpuctl {release.version} knows what it installed, this is {vgpuctl.__version__}"
    if release.phase in ("upgrading", "uninstalling"):
        return None, f"it is {release.phase}"
    mine = (one.hashes for one in plugins if one.rollout.namespace == release.options.namespace)
    digests = next(mine, {}) or _own(release.options)
    if release.options.shim == "vgpuctl" and not digests:
        return None, "neither the cluster nor this program has the library that was installed"
    made = manifests(release.options, {}, digests=digests)
    wanted = [item for item in made if not is_device(item) or not _elsewhere(see, target(item))]
    targets = [target(item) for item in wanted]
    with ThreadPoolExecutor(_AT_ONCE) as many:
        live = zip(targets, many.map(lambda one: _live(see, one), targets), strict=True)
        return drift(wanted, {one: item for one, item in live if item is not _UNREAD}), ""


def _elsewhere(see: _Look, one: Target) -> bool:
    """The device configuration is in another namespace where the plugin looks, so that none was made."""
    others = (Target(one.kind, one.name, space) for space in PLUGIN_NAMESPACES if space != one.namespace)
    return any(_live(see, other) for other in others)


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


def _versions(facts: Facts, plugins: list[_Plugin], kept: record.Kept | None) -> Versions:
    volcano = pool.volcano_version(facts)
    return Versions(
        kubernetes=facts.version.value,
        volcano=str(volcano) if volcano else None,
        plugin=plugins[0].image if plugins else None,
        release=kept.release.version if kept else None,
        program=vgpuctl.__version__,
    )


def _image(daemonset: Object) -> str | None:
    """The plugin's image; its container has its name, or stands first."""
    containers = daemonset["spec"]["template"]["spec"]["containers"]
    named = [container for container in containers if container["name"] == PLUGIN]
    return next((container.get("image") for container in (*named, *containers)), None)


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
