"""The wheel, installed elsewhere, is the whole tool."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel; its dependencies are borrowed from the one that runs the tests."""
    work = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(work), str(ROOT)]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = work.glob("vgpuctl-*-py3-none-any.whl")
    venv.create(work / "env", with_pip=True)
    python = work / "env/bin/python"
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-deps", "--no-index", wheel], check=True)
    site = next((work / "env/lib").glob("python3*/site-packages"))
    borrowed = next(path for path in sys.path if path.endswith("site-packages"))
    (site / "borrowed.pth").write_text(borrowed + "\n")
    for hook in Path(borrowed).glob("_vgpuctl*.pth"):
        assert str(ROOT) in hook.read_text()  # the editable install, which must not be what runs below
    return work / "env/bin/vgpuctl"


def _run(tool: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HOME": str(tool.parent), "PYTHONPATH": ""}
    return subprocess.run(
        [tool, *arguments], cwd=tool.parent, env=environment, capture_output=True, text=True, check=False
    )


def test_the_wheel_runs_outside_the_checkout(installed: Path) -> None:
    where = [installed.with_name("python"), "-c", "import vgpuctl; print(vgpuctl.__file__)"]
    origin = subprocess.run(where, cwd=installed.parent, capture_output=True, text=True, check=True).stdout
    assert str(ROOT) not in origin
    assert json.loads(_run(installed, "version", "-o", "json").stdout)["kind"] == "Version"


@pytest.mark.parametrize(
    "arguments",
    [
        ("completion", "bash"),
        ("config", "schema", "device-config"),
        ("config", "generate", "--profile", "inference", "--gpus", "8xH100-80GB"),
        ("top", "--once", "--demo"),
    ],
)
def test_the_data_travels_with_the_wheel(installed: Path, arguments: tuple[str, ...]) -> None:
    done = _run(installed, *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


def test_the_bench_has_its_load_program(installed: Path) -> None:
    short = ("--seconds", "0.5", "--limits", "50", "--kernels", "1ms")
    done = _run(installed, "bench", "--simulate", "1xT4-16GB", *short, "-o", "json")
    assert done.returncode in (0, 1), done.stderr
    assert json.loads(done.stdout)["simulated"]


def test_an_installation_can_be_made_from_the_wheel(installed: Path) -> None:
    program = """
from vgpuctl.model.install import libraries
from vgpuctl.model.install.manifests import cleanup, manifests
from vgpuctl.model.install.options import Options
print(len(manifests(Options(), libraries.built())), len(cleanup(Options())))"""
    command = [installed.with_name("python"), "-c", program]
    done = subprocess.run(command, cwd=installed.parent, capture_output=True, text=True, check=True)
    assert done.stdout == "8 1\n"
