"""docs/checks.md, from the registry of checks."""

from __future__ import annotations

from collections.abc import Iterator

from vgpuctl.checks.check import Check, Where
from vgpuctl.checks.registry import AREAS, all_checks

_WHERE = {
    Where.MACHINE: "on the machine",
    Where.PLUGIN: "plugin's pod",
    Where.PROBE: "probe pod",
    Where.API: "API",
}


def files() -> dict[str, str]:
    """The page, by its path."""
    return {"docs/checks.md": "\n".join(_lines()) + "\n"}


def _lines() -> Iterator[str]:
    yield "# The checks of `vgpuctl doctor`"
    yield ""
    yield "Written by `make generate` from the registry (vgpuctl/checks/registry.py); do not edit."
    yield ""
    yield "Statuses: **pass** (also with a note), **warn** (works, but not well), **fail** (does not work), **unknown**"
    yield "(tried and not obtained), **skip** (does not apply, or cannot be read from where doctor runs). `--only` and"
    yield "`--skip` take the ids and the areas; `doctor --explain ID` shows one entry of this page."
    for area in AREAS:
        yield ""
        yield f"## {area.title} (`{area.id}`)"
        yield ""
        yield f"{area.about[:1].upper()}{area.about[1:]}."
        for check in all_checks():
            if check.area == area.id:
                yield from _check(check)


def _check(check: Check) -> Iterator[str]:
    facts = [f"worst: {check.worst.value}", f"read: {', '.join(_WHERE[where] for where in check.where)}"]
    facts += ["`--fix` mends it"] if check.fixable else []
    facts += [f"after: {', '.join(f'`{name}`' for name in check.after)}"] if check.after else []
    yield ""
    yield f"### {check.id}"
    yield f"{check.title}. ({' · '.join(facts)})"
    if check.explain:
        yield ""
        yield check.explain
