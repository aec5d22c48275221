"""Texts whose comments say what must be found: `#! rule` an error on that line, `#? rule` a warning."""

from __future__ import annotations

import re

from vgpuctl.model.config.kind import KINDS
from vgpuctl.model.config.validate import validate
from vgpuctl.model.context import Context
from vgpuctl.model.finding import Severity

_MARK = re.compile(r"#([!?]) ([a-z-]+(?:, [a-z-]+)*)\s*$")
_LEVELS = {"!": Severity.ERROR, "?": Severity.WARNING}

Found = set[tuple[int, str, Severity]]


def wanted(text: str) -> Found:
    """What the marks of a text ask for."""
    return {
        (number, rule, _LEVELS[match.group(1)])
        for number, line in enumerate(text.splitlines(), 1)
        if (match := _MARK.search(line))
        for rule in match.group(2).split(", ")
    }


def found(text: str, kind: str = "", context: Context | None = None, file: str = "file") -> Found:
    """The errors and warnings in a text."""
    verdict = validate(text, file, context or Context(), KINDS.get(kind))
    return {(f.line, f.rule, f.severity) for f in verdict.findings if f.severity is not Severity.INFO}


def infos(text: str, kind: str = "", context: Context | None = None) -> list[str]:
    verdict = validate(text, "file", context or Context(), KINDS.get(kind))
    return [f.rule for f in verdict.findings if f.severity is Severity.INFO]


def block(text: str, spaces: int = 4) -> str:
    """A text indented, as it stands in a literal block."""
    return "".join(" " * spaces + line if line.strip() else line for line in text.splitlines(keepends=True))


def config_map(name: str, key: str, text: str, namespace: str = "kube-system") -> str:
    return (
        f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  namespace: {namespace}\n"
        f"data:\n  {key}: |\n{block(text)}"
    )
