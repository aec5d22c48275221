"""Our own variants of the doctor cases: other spellings of the same defects, and healthy twins."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases.__main__ import cases, differences

_OWN = Path(__file__).parent / "own"


@pytest.mark.parametrize(("suite", "case"), [pytest.param(s, c, id=c.name) for s, c in cases(_OWN)])
def test_the_case_passes(suite: str, case: Path) -> None:
    assert differences(suite, case) == []
