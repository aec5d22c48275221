"""Fixtures of the test bench, for `pytest_plugins` in the top-level conftest.

One bench serves the whole run; namespaces keep tests apart. Where there can be no bench the tests that
want it skip with the reason; under CI=true that is a failure.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from . import oldest as oldest_api
from .access import Access
from .bench import Bench
from .binaries import BenchMissingError, find, say
from .oldest import Schemas
from .pool import Object, loaded

LoadPool = Callable[["str | Path"], "list[Object]"]
Kubectl = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    """The control plane of this run, with our CRDs and nothing else in it."""
    capture = request.config.pluginmanager.get_plugin("capturemanager")

    def progress(line: str) -> None:
        with capture.global_and_fixture_disabled() if capture else contextlib.nullcontext():
            say(line)

    with _wanted():
        find(progress)
    with Bench() as running:
        yield running


@pytest.fixture(scope="session")
def oldest() -> Schemas:
    """The API of the oldest Kubernetes that vgpuctl supports."""
    with _wanted():
        return oldest_api.find()


@contextlib.contextmanager
def _wanted() -> Iterator[None]:
    """Skips where a part of the bench cannot be had, but in CI."""
    try:
        yield
    except BenchMissingError as reason:
        if os.environ.get("CI", "").lower() in ("true", "1"):
            pytest.fail(f"CI runs no test bench: {reason}", pytrace=False)
        pytest.skip(f"no test bench: {reason}")


@pytest.fixture
def namespace(bench: Bench) -> Iterator[str]:
    """The name of a fresh namespace; it is deleted after the test, without waiting for its end."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    bench.client.post("/api/v1/namespaces", {"metadata": {"name": name}})
    yield name
    bench.client.delete(f"/api/v1/namespaces/{name}")
    # No kubelet ends the pods that are bound to a node.
    bench.client.delete(f"/api/v1/namespaces/{name}/pods", grace=0)


@pytest.fixture
def kubectl(bench: Bench) -> Kubectl:
    """kubectl(*arguments, stdin=None, config=None, check=True), see Bench.kubectl."""
    return bench.kubectl


@pytest.fixture
def pool(bench: Bench) -> Iterator[LoadPool]:
    """pool(file) loads a file of tests/pools; it is removed after the test."""
    with contextlib.ExitStack() as stack:
        yield lambda file: stack.enter_context(loaded(bench, file))


@pytest.fixture
def access(bench: Bench) -> Access:
    """Makes kubeconfigs of users with fewer rights and of clusters that do not answer."""
    return Access(bench)
