"""Validates configurations: texts, or those that a cluster runs on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from vgpuctl.model import configmaps
from vgpuctl.model.config.kind import DEVICE, NODE, SCHEDULER, Kind
from vgpuctl.model.config.validate import validate
from vgpuctl.model.context import Context
from vgpuctl.model.finding import Checked, Finding, Findings, Severity

if TYPE_CHECKING:  # what only --live needs is imported late
    from vgpuctl.model.facts import Facts

_NEEDED = (DEVICE, SCHEDULER)


def validate_texts(texts: Iterable[tuple[str, str]], context: Context, kind: Kind | None = None) -> Findings:
    """The findings in (file name, text) pairs. kind: what a text is where its own words do not tell."""
    verdicts = [validate(text, file, context, kind) for file, text in texts]
    return Findings(
        checked=[one for verdict in verdicts for one in verdict.checked],
        findings=[finding for verdict in verdicts for finding in verdict.findings],
    )


def validate_live(facts: Facts, context: Context) -> Findings:
    """The findings in the three configurations that the pool reads. Raises Missing when ConfigMaps are not known."""
    from vgpuctl.model import pool

    readers = ((DEVICE, pool.plugin_config), (NODE, pool.node_config), (SCHEDULER, pool.scheduler_config))
    checked: list[Checked] = []
    findings: list[Finding] = []
    for kind, read in readers:
        text = read(facts)
        if text is None:
            if kind in _NEEDED:
                findings.append(_missing(kind))
            continue
        name = f"{text.place.removeprefix('ConfigMap ')}:{text.key}"
        verdict = validate(text.text, name, context, kind)
        checked.append(Checked(file=name, subject=kind.title))
        findings += verdict.findings
    return Findings(source=facts.source, checked=checked, findings=findings)


def _missing(kind: Kind) -> Finding:
    wanted = kind.configmap(Context()) or configmaps.SCHEDULER
    places = " or ".join(kind.namespaces(Context()) or (configmaps.SCHEDULER_NAMESPACE,))
    return Finding(
        rule="cm-name",
        severity=Severity.ERROR,
        file=f"{places}/{wanted}",
        message=f"there is no {kind.title}: no ConfigMap {wanted} with {kind.data_key} in {places}",
        remedy=f"vgpuctl config generate --for {kind.name} | kubectl apply -f -",
    )
