"""The kinds of defects that cases name → the rule ids that report them; a kind that is not here is its own rule id."""

from __future__ import annotations

RULES = {
    "factor-missing": "factor-zero",
    "indentation-lost": "wrong-nesting",
}


def rule_of(kind: str) -> str:
    """The id of the rule that must find a defect of this kind."""
    return RULES.get(kind, kind)
