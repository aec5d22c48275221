"""Lints texts, or what a cluster holds, by the rules of a subject (pods or quotas)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from vgpuctl.model import kube
from vgpuctl.model.context import Context
from vgpuctl.model.facts import Facts
from vgpuctl.model.finding import Checked, Finding, Findings, Severity
from vgpuctl.model.place import Lines

Lint = Callable[[str, str, Context], tuple[list[Finding], list[Checked]]]
"""A subject's lint: text, file name, context → findings by place, what was looked at."""


def lint_texts(lint: Lint, texts: Iterable[tuple[str, str]], context: Context) -> Findings:
    """The findings in (file name, text) pairs."""
    findings: list[Finding] = []
    checked: list[Checked] = []
    for file, text in texts:
        found, subjects = lint(text, file, context)
        lines = Lines(text.removeprefix("\ufeff"))
        found = [*_undecodable(lines, text.removeprefix("\ufeff"), file), *found]
        findings += (msgspec.structs.replace(one, excerpt=lines.row(one.line)) if one.line else one for one in found)
        checked += subjects or [Checked(file=file, subject="nothing to lint in it")]
    return Findings(findings=findings, checked=checked)


def _undecodable(lines: Lines, text: str, file: str) -> Iterator[Finding]:
    """Bytes that are no UTF-8 were read as U+FFFD."""
    offset = text.find("\ufffd")
    if offset >= 0:
        place = lines.at(offset)
        yield Finding(
            rule="encoding",
            severity=Severity.ERROR,
            message="the text is not UTF-8: kubectl and the API server refuse it",
            remedy="save it as UTF-8",
            file=file,
            line=place.line,
            column=place.column,
        )


def lint_facts(lint: Lint, kinds: Sequence[tuple[str, str, str]], facts: Facts, context: Context) -> Findings:
    """The findings in what the facts hold. kinds: (part, kind, apiVersion). Objects have no lines: each is named.

    The objects are linted as one list, so rules on all of them together hold. Raises Missing when no part is known.
    """
    readings = [(facts.part(part), kind, version) for part, kind, version in kinds]  # type: ignore[arg-type]
    if not any(reading.known for reading, _, _ in readings):
        readings[0][0].need()
    objects: list[dict[str, Any]] = []
    for reading, kind, version in readings:
        objects += (kube.plain(kind, version, item) for item in reading.value or ())
    text = msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": objects})
    findings, checked = lint(text.decode(), "", context)
    titles = [_title(item) for item in objects]
    return Findings(
        source=facts.source,
        findings=[_named(finding, titles) for finding in findings],
        checked=[Checked(file=facts.source, subject=one.subject) for one in checked],
    )


def _title(item: dict[str, Any]) -> str:
    metadata = item.get("metadata") or {}
    place = f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else metadata.get("name", "")
    return f"{item['kind']} {place}"


def _named(finding: Finding, titles: list[str]) -> Finding:
    """A finding in a list of objects as one in the object: named, with a path of its own, without a line."""
    head, _, rest = finding.path.partition("]")
    number = head.removeprefix("items[")
    title = titles[int(number)] if number.isdigit() and int(number) < len(titles) else ""
    return msgspec.structs.replace(finding, file=title, line=0, column=0, path=rest.removeprefix("."))
