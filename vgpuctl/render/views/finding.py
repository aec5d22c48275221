"""The view of Findings: one finding a paragraph, as compilers show them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from vgpuctl.model.finding import Finding, Findings, Severity
from vgpuctl.render.grid import paint, plain, width
from vgpuctl.render.terminal import Terminal
from vgpuctl.render.view import Case, Cell, Column, View

_ROW = 160
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


def _lines(output: Findings, terminal: Terminal, wide: bool) -> Iterator[str]:
    arrow = "->" if terminal.ascii else "→"
    for finding in output.findings:
        level = paint(finding.severity.value, STYLES[finding.severity], terminal)
        head = paint(plain(place(finding), terminal), "strong", terminal)
        first, *rest = _wrapped(
            f"{finding.message} [{finding.rule}]", terminal, len(place(finding)) + 4 + len(finding.severity.value)
        )
        yield f"{head}: {level}: {first}"
        yield from (f"    {line}" for line in rest)
        if finding.excerpt.strip():
            yield from _excerpt(finding, terminal)
        if wide and finding.line and finding.path:
            yield paint(plain(f"  at {finding.path}", terminal), "dim", terminal)
        if finding.remedy:
            first, *rest = _wrapped(finding.remedy, terminal, 6)
            yield "  " + paint(f"{arrow} {first}", "good", terminal)
            yield from ("    " + paint(line, "good", terminal) for line in rest)
    if wide or not output.source:
        yield from (paint(plain(subject, terminal), "dim", terminal) for subject in _subjects(output))
    yield plain(_source(output) + summary(output), terminal)


def _wrapped(text: str, terminal: Terminal, used: int) -> list[str]:
    """A text in lines that fit the terminal, the first one shorter by what stands before it."""
    text = plain(text, terminal)
    if terminal.width is None:
        return [text]
    room = max(terminal.width - 4, 20)
    lead = " " * min(max(used - 4, 0), room // 2)
    lines = textwrap.wrap(lead + text, room, drop_whitespace=True, break_on_hyphens=False)
    return [lines[0][len(lead) :], *lines[1:]] if lines else [""]


def _excerpt(finding: Finding, terminal: Terminal) -> Iterator[str]:
    """The line with a caret below the column; a long line is shown around it."""
    row, column = finding.excerpt.replace("\t", " "), finding.column - 1
    room = max((terminal.width or _ROW) - 10, 20)
    begin = max(0, column - room // 2) if width(row) > room else 0
    shown = row[begin : begin + room]
    yield paint(f"{finding.line:>6} | ", "dim", terminal) + plain(shown, terminal)
    caret = " " * width(row[begin:column]) + "^"
    yield paint(f"{'':>6} | ", "dim", terminal) + paint(caret, STYLES[finding.severity], terminal)


def _source(output: Findings) -> str:
    return f"{output.source}: " if output.source else ""


def _subjects(output: Findings) -> Iterator[str]:
    for one in output.checked:
        yield f"{one.file}: {one.subject}" if one.file else one.subject


def _cases(output: Findings) -> list[Case]:
    """A test report: a case for each finding, and one for each file without any."""
    cases = [
        Case(
            finding.file or output.source,
            f"{finding.rule} {finding.line}:{finding.column}",
            "failure" if finding.severity is not Severity.INFO else "passed",
            (f"{place(finding)}: {finding.severity.value}: {finding.message}", finding.remedy),
        )
        for finding in output.findings
    ]
    bad = {finding.file for finding in output.findings}
    return cases + [Case(one.file, one.subject, "passed") for one in output.checked if one.file not in bad]


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
        lines=_lines,
        cases=_cases,
    )
}
