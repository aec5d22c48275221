"""Finding and building the programs of the bench."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from . import binaries
from .binaries import BenchMissingError

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(binaries, "CACHE", tmp_path / "cache")
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    return tmp_path / "cache"


def programs(directory: Path, *names: str) -> Path:
    for name in names:
        (directory / name).touch(mode=0o755)
    return directory


def test_assets_are_taken_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs(tmp_path, "etcd", "kube-apiserver", "kube-controller-manager", "kubectl")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    assert binaries.find() == tmp_path


def test_incomplete_assets_name_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs(tmp_path, "etcd", "kube-apiserver", "kubectl")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    with pytest.raises(BenchMissingError, match=r"lacks kube-controller-manager"):
        binaries.find()


def test_without_go_the_reason_says_what_to_do(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(BenchMissingError, match=r"needs Go .*KUBEBUILDER_ASSETS"):
        binaries.find()


def test_two_builders_build_once(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[Path] = []

    def compile_slowly(go: str, scratch: Path, progress: object) -> None:
        built.append(scratch)
        time.sleep(0.3)
        (scratch / "bin").mkdir()

    monkeypatch.setattr(binaries, "_compile", compile_slowly)
    found: list[Path] = []
    threads = [threading.Thread(target=lambda: found.append(binaries.find(lambda _: None))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(built) == 1
    assert found == [empty_cache / binaries.key()] * 2


def test_a_failed_build_leaves_nothing_that_looks_built(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(go: str, scratch: Path, progress: object) -> None:
        (scratch / "bin").mkdir()
        raise BenchMissingError("no space left")

    monkeypatch.setattr(binaries, "_compile", fail)
    with pytest.raises(BenchMissingError):
        binaries.find(lambda _: None)
    assert [path.name for path in empty_cache.iterdir()] == ["lock"]


def test_the_key_changes_with_the_modules_and_the_flags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {binaries.key()}
    monkeypatch.setattr(binaries, "LDFLAGS", "-s")
    keys.add(binaries.key())
    monkeypatch.setattr(binaries, "TOOLS", tmp_path)
    for name in ("go.mod", "go.sum"):
        (tmp_path / name).write_text("x")
    keys.add(binaries.key())
    (tmp_path / "go.sum").write_text("y")
    keys.add(binaries.key())
    assert len(keys) == 4


@pytest.mark.parametrize(
    ("ci", "outcome"), [("", "1 skipped"), ("true", "1 error")], ids=["a developer skips", "CI fails"]
)
def test_no_bench(ci: str, outcome: str, tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text("def test_one(bench): pass\n")
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-rs", "-p", "tests.cluster.plugin", "-p", "no:cacheprovider",
         "-c", os.devnull, str(tmp_path)],
        env={"PATH": "/nowhere", "XDG_CACHE_HOME": str(tmp_path), "CI": ci, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert outcome in result.stdout, result.stdout + result.stderr
    assert "needs Go" in result.stdout
