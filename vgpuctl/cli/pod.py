"""`vgpuctl pod`: specs of pods and of what makes pods."""

from __future__ import annotations

from functools import partial

from vgpuctl.cli.help import new_app
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

app = new_app(no_args_is_help=True)


@app.callback()
def pod() -> None:
    """Is this pod or job spec right?"""


@app.command("lint")
@shared(CONNECTION, SOURCE, OUTPUT, forms=FORMS)
def lint_command(
    settings: Settings,
    files: Files = None,
    live: Live = False,
    volcano_version: Volcano = None,
    factor: Factor = None,
    gpus: Gpus = None,
) -> Exit | None:
    """Find what is wrong with the vGPU requests of Pods, Deployments, Jobs, Volcano Jobs and other workloads.

    With --from BUNDLE, --demo or --live the pool is known, else tell of it by --volcano-version, --factor and --gpus;
    a rule that needs more than is known stays silent.
    """
    from vgpuctl.model.facts import Part
    from vgpuctl.model.pod.lint import lint
    from vgpuctl.tasks.lint import lint_facts, lint_texts

    return report(
        "pod lint",
        settings,
        files,
        live,
        (volcano_version, factor, gpus),
        partial(lint_facts, lint, ((Part.PODS, "Pod", "v1"),)),
        partial(lint_texts, lint),
    )
