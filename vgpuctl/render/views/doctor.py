"""The views of doctor: the report by area, the list of checks, the explanation of one."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from vgpuctl.model.doctor import CheckExplanation, CheckList, CheckResult, DoctorReport, Status
from vgpuctl.render.grid import plain
from vgpuctl.render.terminal import Terminal
from vgpuctl.render.text import clean
from vgpuctl.render.view import Case, Cell, Column, View
from vgpuctl.render.views.alike import grouped, some

if TYPE_CHECKING:
    from rich.table import Table

MARKS = {
    Status.PASS: ("✔", "ok", "good"),
    Status.WARN: ("!", "warn", "warn"),
    Status.FAIL: ("✘", "FAIL", "bad"),
    Status.UNKNOWN: ("?", "?", "warn"),
    Status.SKIP: ("–", "-", "dim"),
}
"""By status: the mark, the word in ASCII, the style."""
_BAD = (Status.WARN, Status.FAIL, Status.UNKNOWN)
_ALIKE = (Status.UNKNOWN, Status.SKIP)
"""Results that share a line when they have one reason."""
_CASES = {Status.FAIL: "failure", Status.UNKNOWN: "error", Status.SKIP: "skipped"}
_WIDEST = 100
"""Columns of text beyond which lines are hard to read."""
_NAMED = 8
"""As many checks that were left out are named; more are counted."""


def _draw(output: DoctorReport, terminal: Terminal, wide: bool) -> Any:
    from rich.console import Group
    from rich.text import Text

    parts: list[Any] = []
    silent = {} if wide else _silent(output)
    names = max((len(result.check) for result in output.results), default=0)
    for area in output.areas:
        if area.id in silent:
            continue
        title = Text(clean(area.title), "strong")
        if area.read:
            title.append(clean(f"  {area.read}"), "dim")
        results = [result for result in output.results if result.area == area.id]
        results = results if wide else grouped(results)
        parts += [title, _grid(results, area.read, terminal, wide, names), Text()]
    for reason in dict.fromkeys(silent.values()):
        titles = [area.title for area in output.areas if silent.get(area.id) == reason]
        mark, word, style = MARKS[Status.SKIP]
        parts.append(Text(plain(f"{word if terminal.ascii else mark}  {', '.join(titles)}: {reason}", terminal), style))
    if silent:
        parts.append(Text())
    if output.left_out:
        named = len(output.left_out) <= _NAMED
        text = ", ".join(output.left_out) if named else f"{len(output.left_out)} checks, as asked"
        parts.append(Text(clean(f"left out: {text}"), "dim"))
    parts.append(Text(str(output.counts), _worst_style(output)))
    return Group(*parts)


def _silent(output: DoctorReport) -> dict[str, str]:
    """Areas of which every check was skipped for one reason, and the reason: they share a line."""
    reasons: dict[str, set[str]] = {}
    for result in output.results:
        skipped = result.summary if result.status is Status.SKIP else ""
        reasons.setdefault(result.area, set()).add(skipped)
    return {area: min(found) for area, found in reasons.items() if len(found) == 1 and "" not in found}


def _grid(results: Sequence[CheckResult], read: str, terminal: Terminal, wide: bool, names: int) -> Table:
    """The results of an area. What is well takes a line; what is unknown or skipped for one reason, a line together."""
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2, 0, 0))
    marks = 4 if terminal.ascii else 1
    grid.add_column(width=marks, no_wrap=True)
    grid.add_column(width=names, no_wrap=True)
    grid.add_column(max_width=_WIDEST if terminal.width else None, overflow="fold")
    room = terminal.width - marks - names - 4 if terminal.width else 0
    alike: dict[tuple[Status, str], list[CheckResult]] = {}
    for result in results:
        if result.status in _ALIKE and not wide:
            alike.setdefault((result.status, result.summary), []).append(result)
            continue
        mark, word, style = MARKS[result.status]
        told = Text(plain(_told(result, read), terminal))
        name_style = "strong" if result.status in _BAD else ""
        grid.add_row(Text(word if terminal.ascii else mark, style), Text(clean(result.check), name_style), told)
        _add_details(grid, result, terminal, wide, room)
    for (status, reason), same in sorted(alike.items(), key=lambda item: _ALIKE.index(item[0][0])):
        mark, word, style = MARKS[status]
        quiet = "dim" if status is Status.SKIP else ""
        checks = list(dict.fromkeys(result.check for result in same))
        name = checks[0] if len(checks) == 1 else f"{len(checks)} checks"
        alone = len(checks) == 1 or len(same) == len(results)
        told = Text(plain(reason if alone else f"{reason} ({some(checks)})", terminal), quiet)
        grid.add_row(Text(word if terminal.ascii else mark, style), Text(clean(name), quiet), told)
        if len(same) == 1:
            _add_details(grid, same[0], terminal, wide, room)
    return grid


def _add_details(grid: Table, result: CheckResult, terminal: Terminal, wide: bool, room: int) -> None:
    from rich.text import Text

    for style, line in _details(result, terminal, wide):
        for part in _wrapped(plain(line, terminal), room):
            grid.add_row("", "", Text(part, style))


def _wrapped(line: str, room: int) -> list[str]:
    """A line in lines of at most so many columns, the later ones set in; 0: as it is."""
    return (
        textwrap.wrap(line, min(max(room, 20), _WIDEST), subsequent_indent="  ", break_on_hyphens=False)
        if room
        else [line]
    )


def _told(result: CheckResult, read: str) -> str:
    """The summary, else the title; the subject in front where it is not what the area's heading says."""
    known = not result.subject or result.subject in read or result.summary.startswith(result.subject)
    text = result.summary or result.title
    return text if known else f"{result.subject}: {text}"


def _details(result: CheckResult, terminal: Terminal, wide: bool) -> Iterator[tuple[str, str]]:
    """Style and text of the lines below a result: what was read, what to do."""
    if result.status in _BAD or wide:
        for evidence in result.evidence:
            if evidence.text != result.summary:
                yield "dim", f"{evidence.source}: {evidence.text}"
            elif evidence.source not in result.summary:
                yield "dim", f"tried: {evidence.source}"
    if result.remedy and result.status in _BAD:
        yield "", f"{'->' if terminal.ascii else '→'} {result.remedy}"
    if result.fix and result.status in _BAD:
        yield "", f"{'->' if terminal.ascii else '→'} vgpuctl doctor --fix: {'; '.join(result.fix)}"


def _worst_style(output: DoctorReport) -> str:
    counts = output.counts
    return "bad" if counts.failed else "warn" if counts.unknown or counts.warnings else "good"


def _short(output: DoctorReport) -> list[str]:
    lines = [f"vgpuctl {output.version} doctor: {output.source}"]
    unknown: dict[str, list[str]] = {}
    for result in grouped(result for result in output.results if result.status in _BAD):
        remedy = f" -> {result.remedy}" if result.remedy else ""
        told = _told(result, output.source)
        if result.status is Status.UNKNOWN:
            unknown.setdefault(f"{told}{remedy}", []).append(f"{result.area}/{result.check}")
        else:
            lines.append(f"{MARKS[result.status][1]:<4}  {result.area}/{result.check}  {told}{remedy}")
    mark = MARKS[Status.UNKNOWN][1]
    lines += [f"{mark:<4}  {some(list(dict.fromkeys(checks)))}  {told}" for told, checks in unknown.items()]
    return [*lines, str(output.counts)]


def _cases(output: DoctorReport) -> list[Case]:
    cases = []
    for result in output.results:
        subject = f" [{result.subject}]" if result.subject else ""
        outcome = _CASES.get(result.status, "passed")
        text = [result.summary] if result.summary else []
        if result.status in _BAD:
            text += [f"{evidence.source}: {evidence.text}" for evidence in result.evidence]
            text += [f"remedy: {result.remedy}"] if result.remedy else []
        cases.append(Case(result.area, f"{result.check}{subject}", outcome, text))
    return cases


def _results(output: DoctorReport) -> Sequence[CheckResult]:
    return output.results


def _checks(output: CheckList) -> Sequence[Any]:
    return output.checks


def _explained(output: CheckExplanation, terminal: Terminal, wide: bool) -> Any:
    from rich.console import Group
    from rich.text import Text

    check = output.check
    lines = [
        Text(clean(f"{check.area}/{check.id}"), "strong"),
        Text(clean(check.title)),
        Text(),
        Text(clean(check.explain)),
        Text(),
        Text(clean(f"worst: {check.worst.value}; read {', '.join(check.where)}")),
    ]
    if check.fixable:
        lines.append(Text("`vgpuctl doctor --fix` can mend it"))
    return Group(*lines)


_CHECK_COLUMNS = (
    Column("CHECK", lambda row: row.id),
    Column("AREA", lambda row: row.area),
    Column("WORST", lambda row: row.worst.value),
    Column("FIX", lambda row: "yes" if row.fixable else ""),
    Column("WHAT", lambda row: row.title, shrink=20),
)

VIEWS = {
    "DoctorReport": View(
        rows=_results,
        columns=(
            Column("AREA", lambda row: row.area),
            Column("CHECK", lambda row: row.check),
            Column("STATUS", lambda row: Cell(row.status.value, MARKS[row.status][2])),
            Column("SUBJECT", lambda row: row.subject),
            Column("SUMMARY", lambda row: row.summary),
            Column("REMEDY", lambda row: row.remedy),
        ),
        name=lambda row: row.check,
        draw=_draw,
        short=_short,
        cases=_cases,
    ),
    "CheckList": View(
        rows=_checks,
        columns=_CHECK_COLUMNS,
        name=lambda row: row.id,
    ),
    "CheckExplanation": View(
        rows=lambda output: [output.check], columns=_CHECK_COLUMNS, name=lambda row: row.id, draw=_explained
    ),
}
