"""The command line, called in this process."""

from __future__ import annotations

import io
import sys

import pytest

from vgpuctl.cli.main import main


def called(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], *arguments: str, stdin: bytes | None = None
) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of `vgpuctl ARGUMENTS`. stdin: what it can read, None for the test's own."""
    monkeypatch.setattr(sys, "argv", ["vgpuctl", *arguments])
    if stdin is not None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
    capfd.readouterr()
    with pytest.raises(SystemExit) as done:
        main()
    out, err = capfd.readouterr()
    return int(done.value.code or 0), out, err
