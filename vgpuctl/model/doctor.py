"""What doctor found: the results of the checks, and their count."""

from __future__ import annotations

from enum import Enum

from vgpuctl.model.output import Item, Output


class Status(str, Enum):
    """pass: fine. warn: works, but not well. fail: does not work. unknown: tried and not obtained. skip: does not
    apply, or cannot be read from here."""

    PASS = "pass"
    WARN = "warn"
    FAIL = "fail"
    UNKNOWN = "unknown"
    SKIP = "skip"


class Evidence(Item, frozen=True):
    """What was read and where: source is a path, an object (`Node gpu-1`) or "NVML"."""

    source: str
    text: str


class Area(Item, frozen=True, kw_only=True):
    """A group of checks. read: where its facts were read, "" when nowhere."""

    id: str
    title: str
    read: str = ""


class CheckResult(Item, frozen=True, kw_only=True):
    """One result. check: the stable id. subject: the node, card, pod or file it is about, "" for the whole.
    summary: one line. remedy: what to do. fix: what `--fix` would do, a line each."""

    check: str
    area: str
    title: str
    status: Status
    summary: str
    subject: str = ""
    evidence: tuple[Evidence, ...] = ()
    remedy: str = ""
    fix: tuple[str, ...] = ()


class Counts(Item, frozen=True, kw_only=True):
    """How many results have each status."""

    passed: int = 0
    warnings: int = 0
    failed: int = 0
    unknown: int = 0
    skipped: int = 0

    def __str__(self) -> str:
        warnings = "1 warning" if self.warnings == 1 else f"{self.warnings} warnings"
        return f"{self.passed} passed, {warnings}, {self.failed} failed, {self.unknown} unknown, {self.skipped} skipped"


class DoctorReport(Output, frozen=True, kw_only=True):
    """What `doctor` prints. version: of vgpuctl. at: when the facts were read, Unix seconds. left_out: the ids
    of the checks that --only and --skip left out."""

    version: str = ""
    at: float = 0.0
    areas: tuple[Area, ...] = ()
    results: tuple[CheckResult, ...] = ()
    counts: Counts = Counts()
    left_out: tuple[str, ...] = ()


class CheckInfo(Item, frozen=True, kw_only=True):
    """A check as `--list` and `--explain` show it. where: machine, plugin pod, probe pod, API. explain: why it
    matters."""

    id: str
    area: str
    title: str
    worst: Status
    fixable: bool
    where: tuple[str, ...]
    explain: str = ""


class CheckList(Output, frozen=True, kw_only=True):
    """What `doctor --list` prints."""

    checks: tuple[CheckInfo, ...] = ()


class CheckExplanation(Output, frozen=True, kw_only=True):
    """What `doctor --explain ID` prints."""

    check: CheckInfo
