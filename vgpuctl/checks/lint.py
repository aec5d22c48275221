"""Runs the rules of lint over live objects: a rule belongs to a check, its findings become results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from vgpuctl.checks.check import Evidence, Result, Status
from vgpuctl.model import kube
from vgpuctl.model.context import Context
from vgpuctl.model.finding import Finding, Severity

Lint = Callable[[str, str, Context], tuple[list[Finding], Any]]

STATUS = {Severity.ERROR: Status.FAIL, Severity.WARNING: Status.WARN}
"""How bad a result is by its finding's severity; an info is none."""


def findings(lint: Lint, kind: str, api_version: str, item: Any, context: Context) -> list[Finding]:
    """What a lint has to say of one object as the API server holds it."""
    return lint(msgspec.json.encode(live(kind, api_version, item)).decode(), "", context)[0]


def live(kind: str, api_version: str, item: kube.Struct) -> dict[str, Any]:
    """An object as JSON data; it bears a uid, as all objects do that were read back."""
    body = kube.plain(kind, api_version, item)
    body.pop("status", None)
    return {**body, "metadata": {"uid": "read-back", **body.get("metadata", {})}}


def results(
    found: Iterable[Finding], rules: Mapping[str, str], check: str, subject: str, worst: Status = Status.FAIL
) -> Iterator[Result]:
    """The findings whose rule belongs to a check. rules: rule id → check id. worst: no result is worse."""
    for finding in found:
        status = STATUS.get(finding.severity)
        if status is None or rules.get(finding.rule) != check:
            continue
        yield Result(
            Status.WARN if worst is Status.WARN else status,
            finding.message,
            subject,
            (Evidence(subject, f"{finding.path} ({finding.rule})" if finding.path else finding.rule),),
            finding.remedy,
        )
