"""`vgpuctl config generate`: a configuration for a kind of work and the pool's cards."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer

from vgpuctl.cli.config.base import app
from vgpuctl.cli.lint import Gpus, with_options
from vgpuctl.cli.options import CONNECTION, OUTPUT, SOURCE, shared
from vgpuctl.cli.settings import Settings
from vgpuctl.cli.show import show
from vgpuctl.model.problem import Exit

if TYPE_CHECKING:
    from vgpuctl.tasks.inventory import Inventory


class Profile(str, Enum):
    """The kinds of work of templates/profiles.yaml."""

    TRAINING = "training"
    INFERENCE = "inference"
    DEVELOPMENT = "development"


class Target(str, Enum):
    """What `generate --for` writes."""

    ALL = "all"
    DEVICE = "device-config"
    NODE = "node-config"
    SCHEDULER = "scheduler"


@app.command("generate")
@shared(CONNECTION, SOURCE, OUTPUT, forms=("yaml", "json"))
def generate_command(
    settings: Settings,
    profile: Annotated[Profile, typer.Option(help="The work that the pool is for")],
    target: Annotated[Target, typer.Option("--for", help="What to write")] = Target.ALL,
    gpus: Gpus = None,
) -> Exit | None:
    """Write the configuration for a kind of work and the pool's cards, as ConfigMaps for kubectl apply.

    The cards are those of --gpus, else of the cluster's nodes, else of this machine; without any the values fit the
    largest nodes, and a note says what to check.
    """
    from vgpuctl.cli.show import note, write
    from vgpuctl.model.config.generate import generated, kinds_for, plan, text

    found = _inventory(settings, gpus)
    if found.note:
        note(f"the cluster's nodes could not be read: {found.note}")
    chosen = plan(profile.value, found.context, named=found.named)
    kinds = kinds_for(target.value)
    result = generated(chosen, kinds, found.source)
    for line in result.notes:
        note(line)
    if settings.output == "yaml":
        write(text(chosen, kinds))
    else:
        show(result, settings)
    return None


def _inventory(settings: Settings, gpus: str | None) -> Inventory:
    """The cards to write for. Raises Problem when a source that was named cannot be read."""
    from vgpuctl.model.context import Context
    from vgpuctl.tasks.inventory import WANTED, Inventory, inventory

    if gpus:
        return Inventory(with_options(Context(), None, None, gpus), source=f"--gpus {gpus}")
    from vgpuctl.cli.sources import sources
    from vgpuctl.tasks.load import load

    facts = load(sources(settings, machine=True), WANTED)
    found = inventory(facts)
    if found.note and (settings.bundle or settings.kubeconfig or settings.context):
        facts.nodes.need()
    return found
