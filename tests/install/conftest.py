"""One rig serves the tests of installs; each gets it as it was at its start."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.cluster.bench import Bench
from tests.cluster.quota.conftest import Ran, Vgpuctl, vgpuctl
from tests.install.rig import Rig

__all__ = ["Ran", "Vgpuctl", "vgpuctl"]


@pytest.fixture(scope="session")
def shared_rig(bench: Bench, built: None) -> Iterator[Rig]:
    """Asks for `bench` to skip where it does, and for the library that is installed."""
    with Rig() as rig:
        yield rig


@pytest.fixture
def rig(shared_rig: Rig) -> Iterator[Rig]:
    """The rig of this run; what a test leaves in it is removed after it."""
    yield shared_rig
    shared_rig.reset()


@pytest.fixture
def run(rig: Rig, vgpuctl: Vgpuctl) -> Callable[..., Ran]:
    """run(*arguments, code=0) runs a command against the rig that must end with this code."""

    def go(*arguments: str, code: int = 0) -> Ran:
        ran = vgpuctl(*arguments, config=rig.kubeconfig)
        assert ran.code == code, (arguments, ran.out, ran.err)
        return ran

    return go
