"""Fixtures that every test may use: golden files, and a world without the developer's own configuration."""

from __future__ import annotations

import difflib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

pytest_plugins = ["tests.cluster.plugin"]

# A busy machine is no reason to fail; what hangs is caught by the run as a whole.
settings.register_profile("vgpuctl", deadline=None)
settings.load_profile("vgpuctl")

_GOLDEN = Path(__file__).parent / "golden"
_FOREIGN = ("KUBECONFIG", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "TERM", "XDG_CONFIG_HOME")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden files anew")


@pytest.fixture(scope="session")
def built() -> None:
    """The library for both architectures, as a wheel carries it; built where it is not."""
    if not shutil.which("make"):
        pytest.skip("needs make")
    done = subprocess.run(
        ["make", "-C", Path(__file__).parents[1] / "shim", "release", f"PYTHON={sys.executable}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compares a text with tests/golden/NAME, or writes it there under --update-golden."""

    def compare(name: str, text: str) -> None:
        path = _GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        wanted = path.read_text(encoding="utf-8") if path.exists() else ""
        if text != wanted:
            lines = difflib.unified_diff(wanted.splitlines(), text.splitlines(), f"golden/{name}", "now", lineterm="")
            pytest.fail("\n".join(["differs; `make golden` writes it anew", *lines]), pytrace=False)

    return compare


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Hides the developer's terminal, kubeconfig and config file from the tests."""
    for name in [name for name in os.environ if name in _FOREIGN or name.startswith("VGPUCTL_")]:
        monkeypatch.delenv(name)
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    yield
