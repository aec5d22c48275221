"""`python -m tests.cases DIR`: runs the cases of a directory with inputs/ and doctor/, names each difference."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.cases import doctor, inputs

SUITES: dict[str, Callable[[Path], list[str]]] = {"inputs": inputs.differences, "doctor": doctor.differences}
"""A folder of cases → what says how a case of it differs."""


def cases(directory: Path) -> Iterator[tuple[str, Path]]:
    """(suite, case) for each case below a directory, in order. inputs/ or doctor/ itself will do."""
    for suite in SUITES:
        folder = directory if directory.name == suite else directory / suite
        if folder.is_dir():
            yield from ((suite, path.parent) for path in sorted(folder.glob("*/expected.yaml")))


def differences(suite: str, case: Path) -> list[str]:
    """How a case differs; a crash is a difference too."""
    try:
        return SUITES[suite](case)
    except Exception:
        return [line for line in traceback.format_exc().splitlines()[-4:] if line.strip()]


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python -m tests.cases DIR", file=sys.stderr)
        return 2
    found = list(cases(Path(arguments[0])))
    if not found:
        print(f"no cases in {arguments[0]}: inputs/*/expected.yaml or doctor/*/expected.yaml", file=sys.stderr)
        return 2
    failed = 0
    for suite, case in found:
        lines = differences(suite, case)
        failed += bool(lines)
        for line in lines:
            print(f"{suite}/{case.name}: {line}")
    print(f"{len(found) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
