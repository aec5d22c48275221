"""The library is replaced again and again while processes have it, start with it and read it."""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.place.node import MACHINE, Node, build
from vgpuctl import resources

SOAK = bool(os.environ.get("VGPUCTL_SOAK"))
TIMES = 1000 if SOAK else 100


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`user`, and the libraries to be placed in turn."""
    folder = tmp_path_factory.mktemp("built")
    build(folder, "user.c", "user", "-ldl")
    for version in (1, 2):
        build(folder, "library.c", f"{version}.so", "-shared", "-fPIC", f"-DVERSION={version}")
    return folder


def libraries(programs: Path) -> list[bytes]:
    """Two that know whether they are whole, and the real one where it is built."""
    found = [path.read_bytes() for path in sorted(programs.glob("*.so"))]
    with contextlib.suppress(FileNotFoundError):
        found.append(resources.path(f"shim/build/{MACHINE}/libvgpu.so").read_bytes())
    return found


class Crowd:
    """Processes and readers of a library; what went wrong with them is in `wrong`."""

    def __init__(self, node: Node, user: Path, known: set[str]) -> None:
        self.wrong: list[str] = []
        self.seen: set[str] = set()
        self.started = 0
        self._node, self._user, self._known = node, user, known
        self._end = threading.Event()

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """While inside: one keeps what it maps first, one maps anew all the time, one starts with it, one reads it."""
        jobs = [threading.Thread(target=job) for job in (self._keep, self._start, self._read)]
        for job in jobs:
            job.start()
        try:
            yield
        finally:
            self._end.set()
            for job in jobs:
                job.join()

    def _user_ends(self, run: subprocess.Popen[str], what: str) -> None:
        _, error = run.communicate("")
        if run.returncode or error:
            self.wrong.append(f"{what}: exit {run.returncode} {error}")

    def _mapping(self) -> subprocess.Popen[str]:
        command = [self._user, self._node.library]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def _keep(self) -> None:
        first = self._mapping()
        while not self._end.wait(0.05):
            self._user_ends(self._mapping(), "who mapped it for a moment")
        self._user_ends(first, "who mapped it for the whole time")

    def _start(self) -> None:
        environment = {"LD_PRELOAD": str(self._node.library)}
        while not self._end.is_set():
            run = subprocess.Popen(
                [self._user], env=environment, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
            self._user_ends(run, "who started with it")
            self.started += 1

    def _read(self) -> None:
        while not self._end.wait(0.002):
            digest = hashlib.sha256(self._node.library.read_bytes()).hexdigest()
            self.seen.add(digest)
            if digest not in self._known:
                self.wrong.append(f"who read it: {digest}")


def storm(node: Node, programs: Path, times: int, replace: Callable[[bytes], None]) -> Crowd:
    texts = libraries(programs)
    node.place(texts[0])
    crowd = Crowd(node, programs / "user", {hashlib.sha256(text).hexdigest() for text in texts})
    with crowd.at_work():
        for number in range(1, times + 1):
            replace(texts[number % len(texts)])
            if crowd.wrong:
                break
    return crowd


@pytest.mark.soak
def test_nobody_crashes_and_nobody_sees_half_a_library(node: Node, programs: Path) -> None:
    def replace(library: bytes) -> None:
        assert node.place(library).code == 0

    crowd = storm(node, programs, TIMES, replace)
    assert crowd.wrong == []
    assert len(crowd.seen) == len(libraries(programs))
    assert crowd.started > TIMES / 4
    assert node.leftovers() == []


def test_the_storm_notices_a_library_that_is_copied_over_the_old_one(node: Node, programs: Path) -> None:
    def copy(library: bytes) -> None:
        subprocess.run(["cp", "/dev/stdin", node.library], input=library, check=True)

    assert storm(node, programs, 1000, copy).wrong
