"""Every case passes: right line, right severity, stable rule id, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases.__main__ import cases, differences

_DATA = Path(__file__).parent / "data"
_SHARED = Path(__file__).parents[3] / "shared" / "cases"


@pytest.mark.parametrize(("suite", "case"), [pytest.param(s, c, id=f"{s}-{c.name}") for s, c in cases(_DATA)])
def test_the_case_passes(suite: str, case: Path) -> None:
    assert differences(suite, case) == []


def test_the_cases_are_the_shared_ones_byte_for_byte() -> None:
    if not _SHARED.is_dir():
        pytest.skip("the shared cases are not beside the checkout")
    shared = {path.relative_to(_SHARED): path.read_bytes() for path in _SHARED.rglob("*") if path.is_file()}
    shared.pop(Path("README.md"), None)
    assert {path.relative_to(_DATA): path.read_bytes() for path in _DATA.rglob("*") if path.is_file()} == shared
