"""Which sources a command reads, from its settings: one place for all commands.

`--demo`, `--from` and `--local` (or `--root`) name the source; else it is the cluster of the kubeconfig or of the pod
that we run in, else this machine.
"""

from __future__ import annotations

from typing import cast

from vgpuctl.cli.settings import Settings
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.model.quota.team import wrong_name
from vgpuctl.model.selector import Selector, selector
from vgpuctl.sources.cluster import Cluster, Flags, find_access
from vgpuctl.sources.cluster.cluster import no_cluster
from vgpuctl.sources.source import Objects, Source


def sources(settings: Settings, *, machine: bool = False) -> tuple[Source, ...]:
    """The sources to read, best first. machine: this machine too, beside a cluster. Raises Problem."""
    if settings.demo:
        from vgpuctl.sources.demo import Demo

        return (Demo(),)
    if settings.bundle:
        from vgpuctl.sources.bundle import open_bundle

        return (open_bundle(settings.bundle),)
    if not (settings.local or settings.root) and (cluster := find_cluster(settings)):
        return (cluster, *_machine(settings)) if machine else (cluster,)
    return _machine(settings)


def pool(settings: Settings) -> tuple[Source, ...]:
    """The source of a pool's objects: never this machine, unless it is named. Raises Problem without a cluster."""
    named = settings.demo or settings.bundle or settings.local or settings.root
    return sources(settings) if named else (need_cluster(settings),)


def objects(settings: Settings) -> Objects:
    """The source of a pool's whole objects. Raises Problem (a machine has none)."""
    if settings.local or settings.root:
        raise Problem("a machine alone holds no objects of a cluster", exit_code=Exit.USAGE)
    return cast("Objects", pool(settings)[0])  # a cluster, a bundle or the demo: each holds them


def find_cluster(settings: Settings) -> Cluster | None:
    """The live cluster that the settings name, None when there is none. Raises Problem for a broken kubeconfig.

    Wrong use is told before the API server is asked, which has no words for it.
    """
    namespace = "" if settings.all_namespaces else settings.namespace
    if namespace and (why := wrong_name(namespace, "a namespace")):
        raise Problem(f"-n: {why}", exit_code=Exit.USAGE)
    labels(settings)
    flags = Flags(
        settings.kubeconfig, settings.context, settings.cluster, settings.user, settings.as_user, settings.as_group
    )
    access = find_access(flags)
    if access is None:
        return None
    return Cluster(
        access,
        namespace=namespace,
        selector=settings.selector,
        timeout=settings.request_timeout,
    )


def labels(settings: Settings) -> Selector:
    """What -l selects. Raises Problem (wrong use) for what is not understood."""
    try:
        return selector(settings.selector)
    except ValueError as error:
        raise Problem(f"-l {settings.selector} is not understood", str(error), exit_code=Exit.USAGE) from None


def need_cluster(settings: Settings) -> Cluster:
    """The live cluster, for commands that write. Raises Problem when there is none, or when another source is named."""
    named = [
        flag for flag, on in (("--demo", settings.demo), ("--from", settings.bundle), ("--local", settings.local)) if on
    ]
    if named:
        raise Problem(f"this changes a live cluster, {named[0]} names none", exit_code=Exit.USAGE)
    cluster = find_cluster(settings)
    if cluster is None:
        raise no_cluster()
    return cluster


def _machine(settings: Settings) -> tuple[Source, ...]:
    from vgpuctl.sources.machine import Machine

    return (Machine.local(settings.root, settings.request_timeout or 10.0),)
