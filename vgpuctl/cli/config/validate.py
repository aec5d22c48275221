"""`vgpuctl config validate` and `schema`: what a right configuration is."""

from __future__ import annotations

from typing import Annotated

import typer

from vgpuctl.cli.config.base import KindName, app
from vgpuctl.cli.lint import (
    FORMS,
    Factor,
    Files,
    Gpus,
    Live,
    Volcano,
    context_for,
    nothing_named,
    read_files,
    verdict,
    with_options,
)
from vgpuctl.cli.options import CONNECTION, OUTPUT, SOURCE, shared
from vgpuctl.cli.settings import Settings
from vgpuctl.cli.show import show
from vgpuctl.model.problem import Exit


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
    from vgpuctl.tasks.config.validate import validate_live, validate_texts

    if not files and not live:
        raise nothing_named("config validate")
    facts, context = context_for(settings, live)
    context = with_options(context, volcano_version, factor, gpus)
    findings = (
        validate_live(facts, context)
        if live and facts
        else validate_texts(read_files(files or ()), context, KINDS[kind.value] if kind else None)
    )
    show(findings, settings)
    return verdict(findings, settings)


@app.command("schema")
@shared(OUTPUT, forms=("json",))
def schema_command(
    settings: Settings, kind: Annotated[KindName, typer.Argument(help="Which schema", show_default=False)]
) -> Exit | None:
    """Print the JSON Schema of a configuration, for editors."""
    from vgpuctl import resources
    from vgpuctl.cli.show import write

    write(resources.text(f"schemas/{kind.value}.schema.json"))
    return None
