"""The view of Findings: one finding a paragraph, as compilers show them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from vgpuctl.model.finding import Finding, Findings, Severity
from vgpuctl.render.terminal import Terminal
from vgpuctl.render.text import clean
from vgpuctl.render.view import Cell, Column, View

STYLES = {Severity.ERROR: "bad", Severity.WARNING: "warn", Severity.INFO: "dim"}


def place(finding: Finding) -> str:
    """`file:line:column`; the path instead where there are no lines."""
    if not finding.line:
        return ": ".join(filter(None, (finding.file, finding.path)))
    return f"{finding.file}:{finding.line}:{finding.column}"


def summary(output: Findings) -> str:
    """`2 errors, 1 warning, 0 infos in 3 files` (or objects, of a cluster), the last line."""
    counts = [
        f"{number} {level.value}{'' if number == 1 else 's'}"
        for level in Severity
        for number in (sum(finding.severity is level for finding in output.findings),)
    ]
    what = "object" if output.source else "file"
    number = len(dict.fromkeys(one.subject if output.source else one.file for one in output.checked))
    return f"{', '.join(counts)} in {number} {what}{'' if number == 1 else 's'}"


def _draw(output: Findings, terminal: Terminal, wide: bool) -> Any:
    from rich.console import Group
    from rich.text import Text

    arrow = "->" if terminal.ascii else "→"
    parts: list[Any] = []
    for finding in output.findings:
        line = Text(clean(place(finding)), "strong")
        line.append(": ")
        line.append(finding.severity.value, STYLES[finding.severity])
        line.append(clean(f": {finding.message} [{finding.rule}]"))
        parts.append(line)
        if wide and finding.line and finding.path:
            parts.append(Text(clean(f"  at {finding.path}"), "dim"))
        if finding.remedy:
            parts.append(Text(clean(f"  {arrow} {finding.remedy}"), "good"))
    if wide or (output.findings and not output.source):
        parts += (Text(clean(subject), "dim") for subject in _subjects(output))
    parts.append(Text(clean(_source(output) + summary(output))))
    return Group(*parts)


def _source(output: Findings) -> str:
    return f"{output.source}: " if output.source else ""


def _subjects(output: Findings) -> Iterator[str]:
    for one in output.checked:
        yield f"{one.file}: {one.subject}" if one.file else one.subject


def _rows(output: Findings) -> Sequence[Finding]:
    return output.findings


VIEWS = {
    "Findings": View(
        rows=_rows,
        columns=(
            Column("FILE", lambda row: row.file),
            Column("LINE", lambda row: str(row.line or ""), raw=lambda row: row.line or None, right=True),
            Column("COLUMN", lambda row: str(row.column or ""), raw=lambda row: row.column or None, right=True),
            Column("SEVERITY", lambda row: Cell(row.severity.value, STYLES[row.severity])),
            Column("RULE", lambda row: row.rule),
            Column("MESSAGE", lambda row: row.message),
            Column("REMEDY", lambda row: row.remedy),
            Column("PATH", lambda row: row.path),
        ),
        name=lambda row: f"{row.file}:{row.line}:{row.rule}",
        draw=_draw,
    )
}
