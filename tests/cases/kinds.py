"""The kinds of defects that cases name → the rule ids that report them; a kind that is not here is its own rule id.

Several ids: which of them speaks depends on the pool, or on the object in which the defect is.
"""

from __future__ import annotations

RULES: dict[str, tuple[str, ...]] = {
    "factor-missing": ("factor-zero",),
    "indentation-lost": ("wrong-nesting",),
    # From Volcano 1.13 on no percentage is scheduled, so that it would also win over memory is part of that finding.
    "percentage-and-memory": ("percentage-and-memory", "percentage-unschedulable"),
    # In a quota a figure in the wrong unit is above the whole pool, in a pod above every card.
    "unit-factor": ("unit-factor", "memory-over-card"),
    # A mode that no node has.
    "no-matching-card": ("no-matching-card", "mode-value"),
}


def rules_of(kind: str) -> tuple[str, ...]:
    """The ids of the rules that find defects of this kind."""
    return RULES.get(kind, (kind,))
