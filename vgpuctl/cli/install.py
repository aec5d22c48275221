"""`vgpuctl install`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vgpuctl.cli.conduct import FORMS, DryRun, Force, Yes, conduct, finish
from vgpuctl.cli.help import new_app
from vgpuctl.cli.options import CONNECTION, OUTPUT, shared
from vgpuctl.cli.plugin import AUTO, chosen, plugin_options
from vgpuctl.cli.settings import Settings
from vgpuctl.cli.show import note, write
from vgpuctl.model.install.options import Options
from vgpuctl.model.problem import Exit, Problem

if TYPE_CHECKING:
    from vgpuctl.sources.cluster import Cluster

app = new_app()

Skip = Annotated[
    list[str] | None, typer.Option("--skip", help="Leave out a check of the preflight (repeatable)", metavar="ID")
]


@app.command()
@shared(CONNECTION, OUTPUT, forms=FORMS)
@plugin_options
def install(
    settings: Settings,
    given: dict[str, Any],
    patch_scheduler: Annotated[
        bool, typer.Option("--patch-scheduler", help="Turn vGPU sharing on in Volcano's scheduler, and restart it")
    ] = False,
    skip: Skip = None,
    export: Annotated[
        str | None,
        typer.Option(help="Only write the manifests, without a cluster; - is the standard output", metavar="DIR|-"),
    ] = None,
    images: Annotated[bool, typer.Option("--images", help="Only list the images that nodes pull")] = False,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Until the plugin runs on every node")] = True,
    dry_run: DryRun = None,
    yes: Yes = False,
    timeout: Annotated[str, typer.Option("--timeout", help="How long to wait for the nodes", metavar="TIME")] = "5m",
    force_conflicts: Force = False,
) -> Exit | None:
    """Put the vGPU device plugin, its library, rights and configuration into the cluster.

    It first looks whether that can work, shows what it will change, and takes back what it did when a step is refused.
    Cut off at any point, it is finished by running it again. In namespace kube-system, or in that of -n. What is there
    already of the device plugin is left to its owner, or replaced with --force-conflicts until the uninstall.
    """
    if settings.namespace:
        given["namespace"] = settings.namespace
    if export is not None or images:
        _alone(export, images, given, {"--dry-run": dry_run, "--patch-scheduler": patch_scheduler, "--skip": skip})
        options = chosen(Options(), given)
        _write_images(options) if export is None else _export(options, export)
        return None
    from vgpuctl.tasks.install.install import Wish
    from vgpuctl.tasks.install.install import install as task
    from vgpuctl.tasks.install.record import read

    cluster = whole_cluster(settings)
    kept = read(cluster)
    find_monitoring(cluster, given)
    options = chosen(kept.release.options if kept else Options(), given)
    wish = Wish(options, patch_scheduler, frozenset(skip or ()), wait)
    return finish(task(cluster, kept, wish, conduct(dry_run, yes, timeout, force_conflicts)), settings)


def whole_cluster(settings: Settings) -> Cluster:
    """The live cluster, whatever -n and -l say. Raises Problem when there is none."""
    from vgpuctl.cli.sources import need_cluster

    return need_cluster(replace(settings, namespace="", all_namespaces=False, selector=""))


def find_monitoring(cluster: Cluster, given: dict[str, Any]) -> None:
    """Puts the kind that the cluster serves in the place of `auto`."""
    from vgpuctl.tasks.install.live import monitors

    if given.get("monitoring") != AUTO:
        return
    given["monitoring"] = monitors(cluster)
    if not given["monitoring"]:
        note("the cluster serves neither PodMonitor nor ServiceMonitor: no monitoring is set up")


def _alone(export: str | None, images: bool, given: dict[str, Any], others: dict[str, Any]) -> None:
    """Raises Problem (wrong use) for what is not done without a cluster, so that nobody takes it for done."""
    if export == "":
        raise Problem("--export is empty", remedy="name a directory, or - for stdout", exit_code=Exit.USAGE)
    if images and export is not None:
        raise Problem("--export and --images: one at a time", exit_code=Exit.USAGE)
    if given.get("monitoring") == AUTO:
        raise Problem("--monitoring auto asks a cluster", remedy="name the kind", exit_code=Exit.USAGE)
    mine = "--images" if images else "--export"
    for option in (name for name, value in others.items() if value):
        raise Problem(f"{option} needs a cluster, and {mine} asks none", remedy="leave it out", exit_code=Exit.USAGE)


def _write_images(options: Options) -> None:
    from vgpuctl.model.install.manifests import images

    write("".join(f"{image}\n" for image in images(options)))


def _export(options: Options, place: str) -> None:
    from vgpuctl.model.install import export
    from vgpuctl.model.install.manifests import manifests
    from vgpuctl.sources.folder import write_folder
    from vgpuctl.tasks.install.install import built

    objects = manifests(options, built(options))
    note("the configuration is a guess without a cluster: see its comments, and vgpuctl config generate --gpus")
    if place == "-":
        write(export.text(objects))
        return
    files = export.files(objects)
    others = write_folder(place, files, export.KUSTOMIZATION)
    if others:
        note(f"no part of this export, and left in {place}: {', '.join(others)}")
    note(f"{len(files)} files in {place}: kubectl apply -k {place}, or take them over into a repository")
