"""A rule as a record, and what it yields; the tables are in model.config, model.pod and model.quota."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from vgpuctl.model.context import Context
from vgpuctl.model.document import Position
from vgpuctl.model.finding import Finding, Severity

S = TypeVar("S")


@dataclass(frozen=True)
class Hit:
    """A place that breaks a rule. severity: None for the rule's own."""

    position: Position
    path: str
    message: str
    remedy: str = ""
    severity: Severity | None = None


@dataclass(frozen=True)
class Rule(Generic[S]):
    """id: stable. severity: unless a hit says otherwise. why: one sentence for the documentation.
    check: yields a hit for each place of a subject that breaks the rule."""

    id: str
    severity: Severity
    why: str
    check: Callable[[S, Context], Iterable[Hit]]


def apply_rules(rules: Iterable[Rule[S]], subject: S, context: Context, file: str) -> Iterator[Finding]:
    """What a table of rules has to say of one subject."""
    for rule in rules:
        for hit in rule.check(subject, context):
            yield Finding(
                rule=rule.id,
                severity=hit.severity or rule.severity,
                message=hit.message,
                remedy=hit.remedy,
                file=file,
                line=hit.position.line,
                column=hit.position.column,
                path=hit.path,
            )


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Findings by place; the same rule at the same place once."""
    unique = {(f.file, f.line, f.column, f.rule, f.path): f for f in findings}
    return sorted(unique.values(), key=lambda f: (f.file, f.line, f.column, f.rule))
