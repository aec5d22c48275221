"""Checks of Volcano's scheduler as it runs: version, health, what it reads and when it read it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from vgpuctl.checks import share
from vgpuctl.checks.check import Check, Evidence, Options, Result, Skip, Status, Where
from vgpuctl.model import annotation, kube, pool
from vgpuctl.model.facts import Facts, Part
from vgpuctl.model.reading import Missing
from vgpuctl.model.resource import ResourceNames
from vgpuctl.model.version_number import VersionNumber
from vgpuctl.model.volcano import fixed_names

_OLDEST = VersionNumber("1.9")
_RESTARTS = 3


def version(facts: Facts, options: Options) -> Iterator[Result]:
    found = pool.volcano_version(facts)
    if found is None:
        pods = [pod for pod in facts.pods.value or () if pool.is_scheduler(pod.spec, pod.metadata)]
        if not pods and not facts.deployments.known:
            facts.pods.need()
            raise Missing("no pod of Volcano's scheduler was found", facts.pods.source)
        images = share.some(container.image for pod in pods for container in pod.spec.containers[:1])
        raise Skip(f"the scheduler's image tells no version{f': {images}' if images else ''}")
    evidence = (Evidence("image of volcano-scheduler", f"v{found}"),)
    if found < _OLDEST:
        yield Result(
            Status.FAIL,
            f"Volcano {found} has no vGPU sharing of this kind",
            evidence=evidence,
            remedy="upgrade to 1.9 or newer",
        )
        return
    for queue in facts.queues.value or ():
        caps = sorted(_caps(queue) & {ResourceNames().memory, ResourceNames().cores})
        if caps and found < VersionNumber("1.13"):
            yield Result(
                Status.FAIL,
                f"Volcano {found} ignores a queue's cap on {share.some(caps)}",
                f"Queue {queue.metadata.name}",
                (*evidence, Evidence(f"Queue {queue.metadata.name}", f"caps {share.some(caps)}")),
                "upgrade Volcano to 1.13 or newer, or cap volcano.sh/vgpu-number",
            )
    if fixed_names(found) and pool.resource_names(facts).number != ResourceNames().number:
        yield Result(
            Status.FAIL,
            f"Volcano {found} reads allocatable by its fixed names: renamed resources leave every node without vGPUs",
            evidence=(
                *evidence,
                Evidence("device configuration", f"resourceCountName {pool.resource_names(facts).number}"),
            ),
            remedy="use volcano.sh/vgpu-number, -memory and -cores",
        )


def _caps(queue: kube.Queue) -> set[str]:
    guarantee = (queue.spec.guarantee or {}).get("resource")
    sections: tuple[Any, ...] = (queue.spec.capability, queue.spec.deserved, guarantee)
    return {name for section in sections if isinstance(section, dict) for name in section}


def running(facts: Facts, options: Options) -> Iterator[Result]:
    share.everything(facts)
    pods = pool.scheduler_pods(facts)
    if not pods:
        yield Result(
            Status.FAIL,
            "no scheduler of Volcano runs",
            evidence=(Evidence("Pods", f"none of {len(facts.pods.need())} is volcano-scheduler"),),
            remedy="install Volcano, or look at its Deployment",
        )
        return
    for pod in pods:
        subject = share.pod_subject(pod)
        trouble = _trouble(pod)
        if trouble:
            yield Result(
                Status.FAIL,
                "the scheduler does not run",
                subject,
                (Evidence(subject, trouble), *_last_words(facts)),
                "kubectl logs --previous of this pod",
            )
        elif (restarts := _restart_count(pod)) >= _RESTARTS:
            yield Result(
                Status.WARN,
                "the scheduler restarted again and again",
                subject,
                (Evidence(subject, f"{restarts} restarts"), *_last_words(facts)),
                "kubectl logs --previous of this pod",
            )
    yield from _admission(facts)


def _trouble(pod: kube.Pod) -> str:
    for status in pod.status.container_statuses or ():
        waiting = (status.state or {}).get("waiting")
        if waiting:
            return f"{waiting.reason}, {status.restart_count} restarts"
    return "" if pod.status.phase in ("Running", "") else f"phase {pod.status.phase}"


def _restart_count(pod: kube.Pod) -> int:
    return max((status.restart_count for status in pod.status.container_statuses or ()), default=0)


def _last_words(facts: Facts) -> tuple[Evidence, ...]:
    lines = (facts.logs.value or {}).get("scheduler", "").strip().splitlines()
    fatal = [line for line in lines if "panic" in line or line.startswith("F")]
    return (Evidence("scheduler log", " ".join((fatal or lines)[-1].split())[-200:]),) if lines else ()


def _admission(facts: Facts) -> Iterator[Result]:
    """Volcano's webhooks that must answer, and nobody there to do so."""
    for item in facts.webhooks.value or ():
        for hook in item.webhooks or ():
            service = (hook.get("clientConfig") or {}).get("service") or {}
            name, namespace = str(service.get("name", "")), str(service.get("namespace", ""))
            if "volcano" not in name or hook.get("failurePolicy", "Fail") != "Fail":
                continue
            serving = [
                pod
                for pod in facts.pods.need()
                if pod.metadata.namespace == namespace
                and pod.metadata.label("app") in ("volcano-admission", name.removesuffix("-service"))
            ]
            ready = [pod for pod in serving if pool.alive(pod) and not _trouble(pod)]
            if not ready:
                yield Result(
                    Status.FAIL,
                    "a webhook of Volcano must answer, but its pods do not run: jobs and pods are refused",
                    f"webhook {item.metadata.name}",
                    (
                        Evidence(
                            f"webhook {hook.get('name')}",
                            f"failurePolicy Fail, service {namespace}/{name}, no pod ready",
                        ),
                    ),
                    "look at the Deployment volcano-admission",
                )
                return


def configured(facts: Facts, options: Options) -> Iterator[Result]:
    facts.deployments.need()
    mounted = pool.mounted_config(facts)
    if mounted is None:
        raise Skip("no Deployment of the scheduler was found")
    subject = f"Deployment {mounted.namespace}/{mounted.deployment}"
    if not mounted.key:
        yield Result(
            Status.FAIL,
            "the scheduler does not read a ConfigMap",
            subject,
            (Evidence(subject, "no --scheduler-conf in a mounted ConfigMap"),),
            "start it with --scheduler-conf=/volcano.scheduler/volcano-scheduler.conf",
        )
        return
    place = f"ConfigMap {mounted.namespace}/{mounted.name}"
    item = pool.configmap(facts, mounted.namespace, mounted.name)
    evidence = (Evidence(subject, f"reads {mounted.key} of {place}"),)
    if item is None:
        yield Result(
            Status.FAIL, "the ConfigMap that the scheduler mounts does not exist", place, evidence, f"create {place}"
        )
    elif mounted.key not in (item.data or {}):
        keys = share.some(item.data or {}) or "nothing"
        yield Result(
            Status.FAIL,
            "the key that the scheduler reads is not in its ConfigMap: it runs on its built-in configuration",
            place,
            (*evidence, Evidence(place, f"holds {keys}")),
            f"rename the key to {mounted.key}",
        )
    else:
        yield Result(Status.PASS, f"it reads {mounted.key} of {place}", subject, evidence)


def reloaded(facts: Facts, options: Options) -> Iterator[Result]:
    """What is read once per process was changed after the process began."""
    share.everything(facts)
    schedulers, plugins = pool.scheduler_pods(facts), pool.plugin_pods(facts)
    if not schedulers and not plugins:
        raise Skip("no pod of the scheduler or the plugin was found")
    scheduler, device, node = pool.scheduler_config(facts), pool.plugin_config(facts), pool.node_config(facts)
    for text, pods in ((device, schedulers), (device, plugins), (node, plugins)):
        if text is not None:
            yield from _older(text, pods)
    if scheduler is not None and "deviceshare" in scheduler.text:
        yield from _unregistered(facts, scheduler, schedulers)


def _older(text: pool.Text, pods: list[kube.Pod]) -> Iterator[Result]:
    changed = pool.data_changed(text.map, [text.key])
    for pod in pods:
        began = pool.started(pod)
        if changed is not None and began is not None and began < changed:
            yield Result(
                Status.FAIL,
                f"it started before {text.place} was last changed, and reads it once",
                share.pod_subject(pod),
                (
                    Evidence(text.place, f"changed {_time(changed)}"),
                    Evidence(share.pod_subject(pod), f"started {_time(began)}"),
                ),
                _restart(pod),
            )


def _unregistered(facts: Facts, text: pool.Text, pods: list[kube.Pod]) -> Iterator[Result]:
    """The scheduler reloads its configuration, but registers the vGPU device once."""
    changed = pool.data_changed(text.map, [text.key])
    names = pool.resource_names(facts)
    for pod in pods:
        began = pool.started(pod)
        if changed is None or began is None or began >= changed:
            continue
        placed = [item for item in facts.pods.need() if item.spec.node_name and pool.is_vgpu_pod(item, names)]
        since = [item for item in placed if (annotation.decode_time(item.status.start_time or "") or began) >= began]
        bare = [item for item in since if not item.metadata.annotation(annotation.IDS)]
        if since and not bare:
            continue
        evidence = [
            Evidence(text.place, f"changed {_time(changed)}"),
            Evidence(share.pod_subject(pod), f"started {_time(began)}"),
        ]
        evidence += [Evidence(share.pod_subject(item), f"bound without {annotation.IDS}") for item in bare[:3]]
        yield Result(
            Status.FAIL if bare else Status.WARN,
            f"it started before {text.place} was last changed: vGPU turned on by a reload does not take effect",
            share.pod_subject(pod),
            tuple(evidence),
            _restart(pod),
        )


def _restart(pod: kube.Pod) -> str:
    owner = next((item for item in pod.metadata.owner_references or () if item.controller), None)
    space = pod.metadata.namespace
    if pool.is_plugin(pod.spec, pod.metadata):
        return f"kubectl -n {space} delete pod {pod.metadata.name}"
    name = owner.name.rpartition("-")[0] if owner and owner.kind == "ReplicaSet" else "volcano-scheduler"
    return f"kubectl -n {space} rollout restart deployment/{name}"


def _time(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))


CHECKS = (
    Check(
        "volcano-version",
        "Volcano can do what the pool asks of it",
        "volcano",
        Status.FAIL,
        (),
        (Where.API,),
        version,
        also=(Part.PODS, Part.DEPLOYMENTS, Part.QUEUES, Part.CONFIGMAPS),
    ),
    Check(
        "scheduler-running",
        "Volcano's scheduler and webhooks run",
        "volcano",
        Status.FAIL,
        (Part.PODS,),
        (Where.API,),
        running,
        also=(Part.WEBHOOKS, Part.LOGS),
    ),
    Check(
        "scheduler-conf",
        "The scheduler reads the configuration that we look at",
        "volcano",
        Status.FAIL,
        (Part.DEPLOYMENTS, Part.CONFIGMAPS),
        (Where.API,),
        configured,
    ),
    Check(
        "config-reload",
        "Scheduler and plugin started after the last change of what they read once",
        "volcano",
        Status.FAIL,
        (Part.PODS, Part.CONFIGMAPS),
        (Where.API,),
        reloaded,
        also=(Part.DEPLOYMENTS,),
        explain="The device configuration is read once per process, by the scheduler and by the plugin. The scheduler "
        "reloads its own, but a deviceshare that was first built with vGPU off never registers the device.",
    ),
)
