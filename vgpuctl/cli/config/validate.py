"""`vgpuctl config validate` and `schema`: what a right configuration is."""

from __future__ import annotations

from functools import partial
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
    report,
)
from vgpuctl.cli.options import CONNECTION, OUTPUT, SOURCE, shared
from vgpuctl.cli.settings import Settings
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

    return report(
        "config validate",
        settings,
        files,
        live,
        (volcano_version, factor, gpus),
        validate_live,
        partial(validate_texts, kind=KINDS[kind.value] if kind else None),
    )


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
