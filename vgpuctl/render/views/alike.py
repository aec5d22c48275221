"""Results that say the same of many things, told once: `37 nodes: …`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from vgpuctl.model.doctor import CheckResult, Evidence

_SHOWN = 3


def grouped(results: Iterable[CheckResult]) -> list[CheckResult]:
    """The results in order; those of one check with one status and one summary become one, which counts its subjects.

    A subject begins with its kind: `Node gpu-1`, `Pod lab/train`. The evidence of the first few is kept.
    """
    groups: dict[tuple[str, str, str], list[CheckResult]] = {}
    for result in results:
        groups.setdefault((result.check, result.status, result.summary), []).append(result)
    return [_one(group) for group in groups.values()]


def _one(group: list[CheckResult]) -> CheckResult:
    subjects = list(dict.fromkeys(result.subject for result in group))
    if len(subjects) < 2:
        return group[0] if len(group) == 1 else msgspec.structs.replace(group[0], evidence=_evidence(group))
    kinds = {subject.partition(" ")[0] for subject in subjects if " " in subject}
    noun = f"{kinds.pop().lower()}s" if len(kinds) == 1 else "places"
    names = [subject.partition(" ")[2] or subject for subject in subjects]
    return msgspec.structs.replace(group[0], subject=f"{len(names)} {noun} ({some(names)})", evidence=_evidence(group))


def some(names: Sequence[str]) -> str:
    """The first few: `a, b, c and 34 more`."""
    rest = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {rest} more" if rest > 0 else "")


def _evidence(group: list[CheckResult]) -> tuple[Evidence, ...]:
    return tuple(dict.fromkeys(item for result in group for item in result.evidence))[:_SHOWN]
