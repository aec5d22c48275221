"""The Changes that mend what checks find in a cluster: each tests that it finds what was read, and can be undone.

None is offered for an object that a package manager keeps: it would bring the fault back.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from vgpuctl.model import kube, pool
from vgpuctl.model.change import Change, How, Line, Target
from vgpuctl.model.install.owner import owner
from vgpuctl.model.quantity import integer
from vgpuctl.model.quota.cap import COUNTED
from vgpuctl.model.quota.share import uncounted
from vgpuctl.model.resource import ResourceNames, What

Operations = list[dict[str, Any]]


def keeper(metadata: kube.Metadata) -> str:
    """What keeps an object as it is, and would undo a change of it, such as `Helm release gpu`; "" for nothing."""
    found = owner({"metadata": {"labels": metadata.labels, "annotations": metadata.annotations}})
    return found.name if found and found.elsewhere else ""


def monitor_path(
    item: kube.Workload, monitor: kube.Container, hook_path: str, mount: kube.VolumeMount | None
) -> tuple[Change, ...]:
    """Lets the monitor of a DaemonSet read under another HOOK_PATH. mount: what must be mounted there for that, None
    when it is. The pods are made anew, as the DaemonSet's strategy does it."""
    present = next((entry for entry in monitor.env or () if entry.name == "HOOK_PATH"), None)
    taken = mount and any(found.mount_path == mount.mount_path for found in monitor.volume_mounts or ())
    if keeper(item.metadata) or taken or (present and present.value is None):  # a value from elsewhere
        return ()
    base = f"/spec/template/spec/containers/{item.spec.template.spec.containers.index(monitor)}"
    operations: Operations = [{"op": "test", "path": f"{base}/name", "value": monitor.name}]
    lines = []
    if present is None or present.value != hook_path:
        operations += _env(base, monitor, present, hook_path)
        lines.append(Line(f"{monitor.name} HOOK_PATH", present.value if present else None, hook_path))
    if mount:
        operations.append(_append(f"{base}/volumeMounts", monitor.volume_mounts, _plain(mount)))
        lines.append(Line(f"{monitor.name} volumeMounts", None, mount.mount_path))
    metadata = item.metadata
    return (
        Change(
            Target("DaemonSet", metadata.name, metadata.namespace, "apps/v1"),
            How.PATCH,
            operations,
            before=_before(metadata),
            lines=tuple(lines),
            undo=f"kubectl -n {metadata.namespace} rollout undo daemonset/{metadata.name}",
            why="the monitor reads what the plugin's containers count; the plugin's pods are made anew",
        ),
    )


def _env(base: str, container: kube.Container, present: kube.EnvVar | None, value: str) -> Operations:
    if present is None:
        return [_append(f"{base}/env", container.env, {"name": "HOOK_PATH", "value": value})]
    path = f"{base}/env/{(container.env or []).index(present)}"
    return [
        {"op": "test", "path": f"{path}/name", "value": present.name},
        {"op": "test", "path": f"{path}/value", "value": present.value},
        {"op": "replace", "path": f"{path}/value", "value": value},
    ]


def _append(path: str, present: list[Any] | None, value: dict[str, Any]) -> dict[str, Any]:
    """Adds an element to a list, which may not be there yet."""
    return {"op": "add", "path": f"{path}/-" if present else path, "value": value if present else [value]}


def _plain(item: kube.Struct) -> dict[str, Any]:
    return {key: value for key, value in msgspec.to_builtins(item).items() if value}


def counted(quota: kube.ResourceQuota, names: ResourceNames) -> tuple[Change, ...]:
    """Writes the amounts of a quota under the names that the API server counts, in the place of those that it never
    counts. Amounts that are no plain numbers are left to people: what was meant is not known."""
    hard = quota.spec.hard or {}
    old = {key: what for key, what in uncounted(quota, names) if what is not What.PERCENTAGE}
    if not old or keeper(quota.metadata) or not all(hard[key].isdigit() for key in old):
        return ()
    amounts: dict[str, int] = {}
    for key, what in old.items():
        name, number = f"{COUNTED}{names.name(what)}", integer(hard[key]) or 0
        if name not in hard:
            amounts[name] = min(number, amounts.get(name, number))
    operations: Operations = [{"op": "test", "path": _hard(key), "value": hard[key]} for key in old]
    operations += [{"op": "add", "path": _hard(name), "value": str(number)} for name, number in amounts.items()]
    operations += [{"op": "remove", "path": _hard(key)} for key in old]
    back: Operations = [{"op": "remove", "path": _hard(name)} for name in amounts]
    back += [{"op": "add", "path": _hard(key), "value": hard[key]} for key in old]
    metadata = quota.metadata
    patch = shlex.quote(json.dumps(back))
    return (
        Change(
            Target("ResourceQuota", metadata.name, metadata.namespace),
            How.PATCH,
            operations,
            before=_before(metadata),
            lines=tuple(_quota_lines(amounts, hard, old)),
            undo=f"kubectl -n {metadata.namespace} patch resourcequota {metadata.name} --type=json -p {patch}",
            why="the API server counts these names; running pods stay, new ones above the cap are refused",
        ),
    )


def _quota_lines(amounts: Mapping[str, int], hard: Mapping[str, str], old: Iterable[str]) -> Iterable[Line]:
    for name, number in amounts.items():
        yield Line(name, None, str(number))
    for key in old:
        yield Line(key, hard[key], None)


def _hard(key: str) -> str:
    return f"/spec/hard/{key.replace('~', '~0').replace('/', '~1')}"


def restart(pods: Iterable[kube.Pod], node: str, undo: str) -> tuple[Change, ...]:
    """Deletes the plugin's pod of a node, which its DaemonSet makes anew; vGPU pods run on. undo: what brings the
    present state back."""
    for pod in pods:
        controlled = any(one.kind == "DaemonSet" and one.controller for one in pod.metadata.owner_references or ())
        if pod.spec.node_name == node and controlled and pool.alive(pod):
            metadata = pod.metadata
            line = Line(f"plugin pod on {node}", metadata.name, "a new one")
            target = Target("Pod", metadata.name, metadata.namespace)
            why = "the plugin reads its configuration when it starts; pods with vGPUs run on"
            return (Change(target, How.DELETE, None, _before(metadata), (line,), undo=undo, why=why),)
    return ()


def _before(metadata: kube.Metadata) -> dict[str, Any]:
    return {"metadata": {"name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid}}
