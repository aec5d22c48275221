"""What happens when a standard stream is closed or takes nothing: a line and the right exit code, never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

VGPUCTL = Path(sys.executable).with_name("vgpuctl")
FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is Linux's own")
INVALID = "nvidia: 1\n"
RESULTS = (
    "--help",
    "version",
    "completion bash",
    "config schema device-config",
    "config validate invalid.yaml",
    "quota list --demo -o json",
    "top --demo --once -o json",
    "top --demo -w -o json",
)


def shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "invalid.yaml").write_text(INVALID)
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "V": str(VGPUCTL)}
    return subprocess.run(
        ["sh", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, timeout=60
    )


def crashes(folder: Path) -> list[Path]:
    return list(folder.rglob("crash-*"))


@FULL
@pytest.mark.parametrize("command", RESULTS)
def test_a_result_that_stdout_does_not_take_is_told_and_not_called_fine(command: str, tmp_path: Path) -> None:
    done = shell(f'"$V" {command} > /dev/full', tmp_path)
    lines = ["error: the result could not be written to the standard output", "No space left on device"]
    assert (done.returncode, done.stderr.splitlines()) == (3, lines)
    assert not crashes(tmp_path)


@FULL
@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("version", 0),
        ("config generate --profile training --gpus 8xH100-80GB", 0),
        ("config validate invalid.yaml", 1),
        ("config validate nosuch.yaml", 2),
    ],
)
def test_a_stderr_that_takes_nothing_changes_neither_result_nor_exit_code(
    command: str, code: int, tmp_path: Path
) -> None:
    full, plain = shell(f'"$V" {command} 2> /dev/full', tmp_path), shell(f'"$V" {command}', tmp_path)
    assert (full.returncode, full.stdout) == (code, plain.stdout)


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("--help >&-", 0),
        ("version <&- >&- 2>&-", 0),
        ("config validate invalid.yaml >&-", 1),
        ("config validate nosuch.yaml >&-", 2),
        ("config validate - <&-", 1),
        ("quota list --demo <&- 2>&-", 0),
    ],
)
def test_closed_streams_change_no_exit_code(command: str, code: int, tmp_path: Path) -> None:
    done = shell(f'"$V" {command}', tmp_path)
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert not crashes(tmp_path)


def test_with_stderr_closed_nothing_but_the_result_goes_to_stdout(tmp_path: Path) -> None:
    assert shell('"$V" nosuch 2>&-', tmp_path).stdout == ""
    assert shell('"$V" config validate nosuch.yaml 2>&-', tmp_path).stdout == ""


def test_the_reader_of_a_pipe_may_go_away(tmp_path: Path) -> None:
    done = shell('"$V" completion bash | head -n 1', tmp_path)
    assert (done.returncode, done.stderr, len(done.stdout.splitlines())) == (0, "", 1)


def test_a_reader_that_goes_away_at_once_ends_it_as_it_ends_every_filter(tmp_path: Path) -> None:
    done = shell('{ "$V" top --demo --once -o json; echo $? >&2; } | { exec <&-; sleep 2; }', tmp_path)
    assert done.stderr.split() == ["141"]
    assert not crashes(tmp_path)


def test_a_server_that_hangs_up_ends_nothing() -> None:
    text = "import signal, sys; from vgpuctl.cli.main import main\ntry: main()\nexcept SystemExit: pass\n"
    text += "assert signal.getsignal(signal.SIGPIPE) is signal.SIG_IGN"
    subprocess.run([sys.executable, "-c", text, "version"], check=True, capture_output=True)


def test_a_program_that_is_run_ends_by_the_signal_as_without(tmp_path: Path) -> None:
    if not any(Path(__file__).parents[2].glob("shim/build/*/libvgpu.so")):
        pytest.skip("needs the library: make shim")
    done = shell('"$V" run -- yes | head -n 1', tmp_path)
    assert (done.stdout, done.stderr) == ("y\n", "")
