"""Runs a case of inputs/: the function of its command on its input, the findings against the expected ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from tests.cases.kinds import rules_of
from tests.contexts import context_from
from vgpuctl.cli.lint import read_files
from vgpuctl.model.config.kind import DEVICE, NODE, SCHEDULER, Kind
from vgpuctl.model.context import Context
from vgpuctl.model.finding import Finding, Findings, Severity
from vgpuctl.model.pod.lint import lint as pod_lint
from vgpuctl.model.quota.lint import lint as quota_lint
from vgpuctl.tasks.config.validate import validate_texts
from vgpuctl.tasks.lint import Lint, lint_texts

Run = Callable[[list[tuple[str, str]], Context], Findings]


def _validate(kind: Kind) -> Run:
    return lambda texts, context: validate_texts(texts, context, kind)


def _lint(lint: Lint) -> Run:
    return lambda texts, context: lint_texts(lint, texts, context)


COMMANDS: dict[str, Run] = {
    "config validate": _validate(DEVICE),
    "node-config validate": _validate(NODE),
    "scheduler validate": _validate(SCHEDULER),
    "pod lint": _lint(pod_lint),
    "quota lint": _lint(quota_lint),
}
"""A case's command → what the command of vgpuctl does with texts and a context."""


def differences(case: Path) -> list[str]:
    """What differs from a case's expected.yaml, a line each; none when the case passes."""
    expected: dict[str, Any] = yaml.safe_load((case / "expected.yaml").read_text(encoding="utf-8"))
    run = COMMANDS.get(expected["command"])
    if run is None:
        return [f"no command {expected['command']}"]
    ((_, text),) = read_files([str(case / expected["input"])])
    name = expected.get("real_name") or expected["input"]
    findings = run([(name, text)], context_from(expected.get("context") or {})).findings
    return [*_missed(expected, findings), *_too_many(expected, findings)]


def _missed(expected: dict[str, Any], findings: list[Finding]) -> list[str]:
    found = {(finding.line, finding.rule, finding.severity.value) for finding in findings}
    return [
        f"not found: line {d['line']} {' or '.join(rules_of(d['kind']))} {d['severity']}"
        for d in expected.get("defects") or ()
        if not any((d["line"], rule, d["severity"]) in found for rule in rules_of(d["kind"]))
    ]


def _too_many(expected: dict[str, Any], findings: list[Finding]) -> list[str]:
    """Errors and warnings that no defect stands for; infos too where not even those are wanted."""
    allowed = {
        (line, rule)
        for defect in expected.get("defects") or ()
        for line in (defect["line"], *(defect.get("other_lines") or ()))
        for rule in rules_of(defect["kind"])
    }
    infos_free = not expected.get("fully_valid") or expected.get("may_report_info")
    return [
        f"not wanted: line {f.line} {f.rule} {f.severity.value}: {f.message}"
        for f in findings
        if (f.line, f.rule) not in allowed and not (f.severity is Severity.INFO and infos_free)
    ]
