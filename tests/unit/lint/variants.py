"""Reads texts with the findings that are expected marked at their lines: `# ! rule` (an error), `# ~ rule` (a
warning), `# . rule` (an info); several rules of one line stand one after the other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.contexts import context_from
from vgpuctl.model.context import Context
from vgpuctl.model.finding import Finding

_HEAD = re.compile(r"^=== (?P<name>[^{\n]+?)\s*(?P<context>\{.*\})?$", re.MULTILINE)
_MARK = re.compile(r"# ([!~.]) ([a-z0-9-]+(?: [a-z0-9-]+)*)")
_LEVELS = {"!": "error", "~": "warning", ".": "info"}


@dataclass(frozen=True)
class Variant:
    """A text of a file of variants: its name, its context, the (line, rule, severity) that are expected."""

    name: str
    text: str
    context: Context
    wanted: tuple[tuple[int, str, str], ...]


def variants(path: Path, usual: dict[str, Any]) -> Iterator[Variant]:
    """The texts of a file; `=== name {context}` begins each, and `{}` alone means that nothing is known."""
    whole = path.read_text(encoding="utf-8")
    heads = list(_HEAD.finditer(whole))
    for head, following in zip(heads, [*heads[1:], None], strict=True):
        text = whole[head.end() + 1 : following.start() if following else len(whole)]
        given = yaml.safe_load(head["context"]) if head["context"] else None
        context = usual if given is None else {**usual, **given} if given else {}
        context = {key: value for key, value in context.items() if value is not None}
        yield Variant(head["name"].strip(), text, context_from(context), tuple(_wanted(text)))


def _wanted(text: str) -> Iterator[tuple[int, str, str]]:
    for number, line in enumerate(text.splitlines(), start=1):
        for level, rules in _MARK.findall(line):
            yield from ((number, rule, _LEVELS[level]) for rule in rules.split())


def found(findings: list[Finding]) -> list[tuple[int, str, str]]:
    return sorted((finding.line, finding.rule, finding.severity.value) for finding in findings)
