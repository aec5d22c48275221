"""All checks, in the order in which doctor runs and shows them; docs/checks.md is generated from here."""

from __future__ import annotations

from vgpuctl.checks.check import Check

AREAS = ("host", "driver", "runtime", "cluster", "plugin", "volcano", "config", "quota", "pods", "shim")


def all_checks() -> tuple[Check, ...]:
    """Every check, area by area."""
    return ()
