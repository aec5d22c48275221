"""`vgpuctl card`: take a card out of service, and bring it back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from vgpuctl.cli.conduct import FORMS, DryRun, Timeout, Yes, conduct, finish
from vgpuctl.cli.help import new_app
from vgpuctl.cli.options import CONNECTION, OUTPUT, shared
from vgpuctl.cli.settings import Settings
from vgpuctl.model.problem import Exit, Problem

if TYPE_CHECKING:
    from vgpuctl.tasks.apply import Outcome

app = new_app(no_args_is_help=True)
Card = Annotated[
    str,
    typer.Argument(
        metavar="NODE/GPU",
        help="The node, and the card's UUID, how that begins, or the index that nvidia-smi on the node shows",
    ),
]


@app.callback()
def card() -> None:
    """Take a card out of service, and bring it back."""


@app.command("cordon")
@shared(CONNECTION, OUTPUT, forms=FORMS)
def cordon_command(
    settings: Settings, card: Card, dry_run: DryRun = None, yes: Yes = False, timeout: Timeout = "3m"
) -> Exit | None:
    """Take a card out of service: nothing new is placed on it, what runs there stays.

    The node config gets the card's UUID or index under filterdevices, and the plugin is restarted on that node only.
    Which UUID an index is shows once it is out: what `top` counts are only the cards that are in service.
    """
    from vgpuctl.tasks.card import cordon

    return _run(cordon, settings, card, dry_run, yes, timeout)


@app.command("uncordon")
@shared(CONNECTION, OUTPUT, forms=FORMS)
def uncordon_command(
    settings: Settings, card: Card, dry_run: DryRun = None, yes: Yes = False, timeout: Timeout = "3m"
) -> Exit | None:
    """Bring a card back into service."""
    from vgpuctl.tasks.card import uncordon

    return _run(uncordon, settings, card, dry_run, yes, timeout)


def _run(
    work: Callable[..., Outcome], settings: Settings, card: str, dry_run: str | None, yes: bool, timeout: str
) -> Exit:
    from vgpuctl.cli.sources import need_cluster
    from vgpuctl.tasks.card import PARTS
    from vgpuctl.tasks.load import load

    node, slash, gpu = card.rpartition("/")
    if not (node and slash and gpu):
        raise Problem(f"{card} is not NODE/GPU", remedy="such as gpu-1/0 or gpu-1/GPU-3f2a", exit_code=Exit.USAGE)
    how = conduct(dry_run, yes, timeout, False)
    cluster = need_cluster(replace(settings, namespace="", all_namespaces=False))
    return finish(work(cluster, load((cluster,), PARTS), node, gpu, how), settings)
