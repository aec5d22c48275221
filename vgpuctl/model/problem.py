"""Errors that a user sees: what, where, why and what to do; and the exit codes of the whole tool."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """Exit codes, the same in every output form."""

    FINE = 0
    FINDINGS = 1
    """A check failed, a config is invalid, a pod does not fit, drift, conflict, an object was refused."""
    USAGE = 2
    UNKNOWN = 3
    """It could not be found out: no cluster, no permission, no driver, a silent source."""
    TIMEOUT = 4
    """`--wait` or `--timeout` ran out."""
    INTERRUPTED = 130


class Problem(Exception):
    """A failure told in up to three lines: what (and where), why, and what to do. status: the HTTP code with which an
    API server refused, 0 where there was none. passing: it may be over soon, so the same may be tried again."""

    status = 0
    passing = False

    def __init__(self, what: str, why: str = "", remedy: str = "", exit_code: Exit = Exit.UNKNOWN) -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.remedy = remedy
        self.exit_code = exit_code

    def lines(self) -> list[str]:
        """The lines to show, without empty ones."""
        return [line for line in (self.what, self.why, self.remedy) if line]
