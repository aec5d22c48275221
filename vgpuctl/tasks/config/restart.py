"""Restarts what reads its configuration once, and waits until it runs with the new one."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timezone
from typing import Any

from vgpuctl.model import annotation, kube, pool
from vgpuctl.model.change import Change, How, Line, Target
from vgpuctl.model.facts import Facts
from vgpuctl.model.install.reasons import is_ready, reason, told
from vgpuctl.tasks.apply import Conduct, Wait
from vgpuctl.tasks.install import rollout
from vgpuctl.tasks.install.live import Live
from vgpuctl.tasks.install.scheduler import RESTARTED

Steps = list[Change | Wait]


def plugin(cluster: Live, facts: Facts, conduct: Conduct) -> Steps:
    """All pods of the plugin, as its DaemonSet updates them. Raises Missing, Problem."""
    steps: Steps = []
    for item in pool.plugin_daemonsets(facts):
        target = _target("DaemonSet", item.metadata)
        live = cluster.get(target)
        if live is not None and _by_hand(live):
            pods = [pod for pod in pool.plugin_pods(facts) if _owned(pod, item.metadata.uid)]
            steps += (step for pod in pods for step in one_pod(cluster, pod))
        elif live is not None:
            steps.append(_template(target, live, conduct.now()))
    return steps


def plugin_runs(cluster: Live, facts: Facts, conduct: Conduct) -> Steps:
    """Until the plugin's newest template runs everywhere, whoever changed it. Raises Missing, Problem."""
    targets = [_target("DaemonSet", item.metadata) for item in pool.plugin_daemonsets(facts)]
    return [
        rollout.whole_rollout(cluster, target, "the plugin", conduct)
        for target in targets
        if (live := cluster.get(target)) and not _by_hand(live)
    ]


def plugin_on(cluster: Live, facts: Facts, nodes: Iterable[str]) -> Steps:
    """The plugin's pods on some nodes. Raises Missing."""
    wanted = set(nodes)
    pods = [pod for pod in pool.plugin_pods(facts) if pod.spec.node_name in wanted]
    pairs = [one_pod(cluster, pod) for pod in pods]
    return [*(step for pair in pairs for step in pair[:1]), *(step for pair in pairs for step in pair[1:])]


def one_pod(cluster: Live, pod: kube.Pod) -> Steps:
    """The deletion of a pod that its controller makes anew, and the wait for the new one."""
    metadata, node = pod.metadata, pod.spec.node_name
    target = Target("Pod", metadata.name, metadata.namespace)
    lines = (Line(f"plugin on {node}", metadata.name, "a new pod"),)
    before = {"metadata": {"uid": metadata.uid}}
    change = Change(target, How.DELETE, None, before, lines, routine=True)

    def others() -> list[dict[str, Any]]:
        found = cluster.objects("Pod", namespace=metadata.namespace, query={"fieldSelector": f"spec.nodeName={node}"})
        owner = next((one.uid for one in metadata.owner_references or ()), "")
        return [
            item
            for item in found
            if item["metadata"].get("uid") != metadata.uid
            and any(one.get("uid") == owner for one in item["metadata"].get("ownerReferences") or ())
        ]

    def why() -> str:
        return told([found for item in others() if (found := reason(item))])

    return [_later(), change, Wait(f"the plugin on {node} to run again", lambda: any(map(is_ready, others())), why)]


def _later() -> Wait:
    """Times tell no finer than seconds: a pod must begin in a later one than the change that it is to read, or it would
    be taken for older and restarted once more."""
    end: list[float] = []

    def done() -> bool:
        end[:] = end or [time.monotonic() + 1]
        return time.monotonic() >= end[0]

    return Wait("the second of the change to be over", done)


def scheduler(cluster: Live, facts: Facts, conduct: Conduct) -> Steps:
    """Volcano's scheduler; nothing where no Deployment of it is known."""
    steps: Steps = []
    for item in facts.deployments.value or ():
        target = _target("Deployment", item.metadata)
        if not pool.is_scheduler(item.spec.template.spec, item.spec.template.metadata):
            continue
        live = cluster.get(target)
        if live is not None:
            steps.append(_template(target, live, conduct.now()))
    return steps


def scheduler_runs(cluster: Live, facts: Facts) -> Steps:
    """Until the scheduler's newest template runs."""
    return [
        rollout.deployment(cluster, _target("Deployment", item.metadata), "the scheduler to run again")
        for item in facts.deployments.value or ()
        if pool.is_scheduler(item.spec.template.spec, item.spec.template.metadata)
    ]


def older(pods: Iterable[kube.Pod], templates: Iterable[kube.PodTemplate], text: pool.Text) -> list[kube.Pod]:
    """The pods that began before a text was last changed. Within one second, which is all that the times tell, one is
    taken to have done so unless its template was marked for a restart since."""
    changed = pool.data_changed(text.map, [text.key])
    if changed is None:
        return []
    marks = [annotation.decode_time(one.metadata.annotation(RESTARTED) or "") for one in templates]
    ordered = any(mark is not None and mark >= changed for mark in marks)
    began = [(pod, time) for pod in pods if (time := pool.started(pod)) is not None]
    return [pod for pod, time in began if time < changed or (time == changed and not ordered)]


def registered(
    cluster: Live,
    before: Mapping[str, annotation.Register],
    wanted: Mapping[str, tuple[int, int]],
    old: int | None,
    since: float | None,
) -> Wait:
    """Until nodes register what the new configuration makes of their cards. before: what they register now. wanted: by
    node, vGPUs per card and MiB per unit. old: MiB per unit of what they register now; None when that is not
    known, then it must have been written since a time (Unix seconds)."""

    def wrong() -> Iterator[str]:
        for node in cluster.objects("Node"):
            name = node["metadata"]["name"]
            if name not in wanted or name not in before:
                continue
            text = (node["metadata"].get("annotations") or {}).get(annotation.REGISTER, "")
            now = {card.uuid: card for card in annotation.decode_register(text).cards}
            split, factor = wanted[name]
            written = _written(node)
            if old is None and since is not None and written is not None and written < since:
                yield f"{name} registers as before"
                continue
            for card in before[name].cards:
                new = now.get(card.uuid)
                if new and not _fits(card, new, split, old, factor):
                    yield f"{name} registers {new.count} vGPUs of {new.memory} units on {new.uuid}"
                    break

    def why() -> str:
        found = list(wrong())
        return "; ".join(found[:3]) + (f" and {len(found) - 3} more" if len(found) > 3 else "")

    return Wait("the nodes register what the new configuration says", lambda: next(wrong(), None) is None, why)


def _written(node: Mapping[str, Any]) -> float | None:
    """When a node's register annotation last became another one."""
    key = f"f:{annotation.REGISTER}"
    for entry in node["metadata"].get("managedFields") or ():
        fields = (entry.get("fieldsV1") or {}).get("f:metadata", {}).get("f:annotations", {})
        if key in fields:
            return annotation.decode_time(str(entry.get("time", "")))
    return None


def _fits(
    old: annotation.RegisteredCard, new: annotation.RegisteredCard, split: int, was: int | None, factor: int
) -> bool:
    """A card is registered with these vGPUs, and with units that the same memory can have."""
    if new.mode != "mig" and new.count != split:
        return False
    if was is None:
        return True
    least, most = old.memory * was, (old.memory + 1) * was - 1
    return least // factor <= new.memory <= most // factor


def _by_hand(daemonset: Mapping[str, Any]) -> bool:
    """Its pods are made anew only when they are deleted."""
    return (daemonset["spec"].get("updateStrategy") or {}).get("type") == "OnDelete"


def _owned(pod: kube.Pod, uid: str) -> bool:
    return any(one.uid == uid for one in pod.metadata.owner_references or ())


def _target(kind: str, metadata: kube.Metadata) -> Target:
    return Target(kind, metadata.name, metadata.namespace, "apps/v1")


def _template(target: Target, live: Mapping[str, Any], now: float) -> Change:
    annotations = (live["spec"]["template"].get("metadata") or {}).get("annotations") or {}
    moment = f"{datetime.fromtimestamp(now, timezone.utc):%Y-%m-%dT%H:%M:%SZ}"
    body = {"spec": {"template": {"metadata": {"annotations": {RESTARTED: moment}}}}}
    lines = (Line(f"annotation {RESTARTED} of its pods", annotations.get(RESTARTED), moment),)
    return Change(target, How.MERGE, body, dict(live), lines, why="it reads its configuration once")
