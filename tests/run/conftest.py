"""A machine of its own for each test: a built library, a state directory, a simulated driver's state."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session", autouse=True)
def library(built: None) -> None:
    """Every test here runs programs under the library."""


@pytest.fixture
def place(tmp_path: Path) -> dict[str, str]:
    """An environment with a state directory and a simulated machine of its own."""
    home = tmp_path / "runtime"
    home.mkdir(mode=0o700)
    return {**os.environ, "XDG_RUNTIME_DIR": str(home), "VGPUCTL_FAKE_STATE": str(tmp_path / "cards")}
