"""What a start of the tool does not import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {"kubernetes", "pynvml", "jsonschema", "rich", "prometheus_client"}
NETWORK = {"urllib3", "requests"}
CONFIG = "nvidia:\n  gpuMemoryFactor: 10\n"
RUN = """
import sys
from vgpuctl.cli.main import main
try:
    main()
except SystemExit:
    pass
print(*sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("arguments", "without"),
    [
        ((), HEAVY | NETWORK),
        (("--help",), HEAVY | NETWORK),
        (("version",), HEAVY | NETWORK),
        (("config", "validate", "FILE"), HEAVY | NETWORK),
        (("pod", "lint", "FILE"), HEAVY | NETWORK),
        (("config", "generate", "--profile", "training", "--gpus", "8xH100-80GB"), HEAVY | NETWORK),
        (("top", "--help"), HEAVY),
        (("doctor", "--list"), HEAVY),
        (("quota", "list", "--demo"), HEAVY),
        (("history", "--demo"), HEAVY),
        (("status", "--demo"), HEAVY),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_start_imports_nothing_heavy(arguments: tuple[str, ...], without: set[str], tmp_path: Path) -> None:
    file = tmp_path / "device-config.yaml"
    file.write_text(CONFIG)
    words = [str(file) if word == "FILE" else word for word in arguments]
    done = subprocess.run([sys.executable, "-c", RUN, *words], capture_output=True, text=True, check=True)
    loaded = set(done.stderr.splitlines()[-1].split())
    assert "vgpuctl" in loaded
    assert loaded & without == set()
