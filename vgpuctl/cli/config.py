"""`vgpuctl config`: the pool's configuration files."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from vgpuctl.cli.lint import Factor, Files, Gpus, Live, Volcano, nothing_named, read_files, verdict, with_options
from vgpuctl.cli.options import CONNECTION, OUTPUT, SOURCE, new_app, shared
from vgpuctl.cli.settings import Settings
from vgpuctl.cli.show import show
from vgpuctl.model.problem import Exit

app = new_app(no_args_is_help=True)

FORMS = ("table", "wide", "json", "yaml", "junit", "csv", "name")


class KindName(str, Enum):
    """The kinds of configuration, as `--kind` and `schema` name them."""

    DEVICE = "device-config"
    NODE = "node-config"
    SCHEDULER = "scheduler"


@app.callback()
def config() -> None:
    """Which configuration is right for my cards? Is this one right?"""


@app.command("validate")
@shared(CONNECTION, SOURCE, OUTPUT, forms=FORMS)
def validate_command(
    settings: Settings,
    files: Files = None,
    live: Live = False,
    kind: Annotated[KindName | None, typer.Option(help="What a file is, if it does not tell by itself")] = None,
    volcano_version: Volcano = None,
    factor: Factor = None,
    gpus: Gpus = None,
) -> Exit | None:
    """Find what is wrong with device configs, node configs and scheduler configurations.

    Bare files, ConfigMaps, Lists and several documents are told apart by what they hold. With --from BUNDLE, --demo
    or --live the pool is known, else tell of it by --volcano-version, --factor and --gpus; a rule that needs more
    than is known stays silent.
    """
    from vgpuctl.model.config.kind import KINDS
    from vgpuctl.model.context import Context
    from vgpuctl.tasks.config import validate_live, validate_texts

    if not files and not live:
        raise nothing_named("config validate")
    context = Context()
    if live or settings.bundle or settings.demo:
        from vgpuctl.cli.sources import sources
        from vgpuctl.model.pool import context as context_of
        from vgpuctl.tasks.context import PARTS
        from vgpuctl.tasks.load import load

        facts = load(sources(settings), PARTS)
        context = with_options(context_of(facts), volcano_version, factor, gpus)
        findings = validate_live(facts, context) if live else None
    else:
        context, findings = with_options(context, volcano_version, factor, gpus), None
    if findings is None:
        findings = validate_texts(read_files(files or ()), context, KINDS[kind.value] if kind else None)
    show(findings, settings)
    return verdict(findings, settings)
