"""What the tests of the placement script share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.place import node as nodes
from tests.place.node import Node, Shell

_SHELLS = {"dash": nodes.dash, "busybox": nodes.busybox}


@pytest.fixture(scope="session", params=_SHELLS)
def shell(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Shell:
    found = _SHELLS[request.param](tmp_path_factory.mktemp("programs"))
    if found is None:
        pytest.skip(f"{request.param} is not installed")
    return found


@pytest.fixture
def node(tmp_path: Path, shell: Shell) -> Node:
    return Node(tmp_path, shell)
