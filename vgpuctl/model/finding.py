"""A finding: a rule that a text breaks, with its place and its remedy; the base of validate and lint.

Rules are records in one table per subject (`RULES` there); a finding names its rule by the stable id.
"""

from __future__ import annotations

from enum import Enum

from vgpuctl.model.output import Item, Output


class Severity(str, Enum):
    """How bad: an error does not do what it says, a warning may, an info is worth knowing."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Finding(Item, frozen=True, kw_only=True):
    """One rule broken at one place.

    rule: the stable id, such as `factor-zero`. file: as the user named it. line and column: 1-based, in that file,
    also for text inside a ConfigMap's block; 0 when the finding is about the whole file. path: the place as
    keys, such as `nvidia.gpuMemoryFactor`. message: what is wrong and its effect. remedy: what to write instead.
    excerpt: the line itself, "" where there is none.
    """

    rule: str
    severity: Severity
    message: str
    remedy: str = ""
    file: str = ""
    line: int = 0
    column: int = 0
    path: str = ""
    excerpt: str = ""


class Findings(Output, frozen=True, kw_only=True):
    """What validate and lint print. `checked` names each file (or object) and what it was taken to be."""

    checked: list[Checked] = []
    findings: list[Finding] = []

    @property
    def worst(self) -> Severity | None:
        """The worst severity, None when there is no finding."""
        present = {finding.severity for finding in self.findings}
        return next((level for level in Severity if level in present), None)


class Checked(Item, frozen=True, kw_only=True):
    """One text that was looked at: its name and what it was taken to be."""

    file: str
    subject: str
