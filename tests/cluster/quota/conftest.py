"""What the tests of quotas share: vgpuctl run in this process, the quota and pods of the test's namespace."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.bench import Bench
from tests.cluster.client import ApiError
from vgpuctl.cli.main import main

NUMBER, MEMORY, CORES = (f"requests.volcano.sh/vgpu-{what}" for what in ("number", "memory", "cores"))


@dataclass(frozen=True)
class Ran:
    """What a run of vgpuctl gave."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def actions(self) -> dict[str, str]:
        """Kind/name → what became of it, of `-o json`."""
        return {f"{row['objectKind']}/{row['name']}": row["action"] for row in self.json["changes"]}


Vgpuctl = Callable[..., Ran]


@pytest.fixture
def vgpuctl(bench: Bench, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Vgpuctl:
    """vgpuctl(*arguments, config=None, stdin=""): runs it in this process, without a terminal."""

    def run(*arguments: str, config: Path | None = None, stdin: str = "") -> Ran:
        monkeypatch.setenv("KUBECONFIG", str(config or bench.kubeconfig))
        monkeypatch.setattr(sys, "argv", ["vgpuctl", *arguments])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        capfd.readouterr()
        with pytest.raises(SystemExit) as done:
            main()
        out, err = capfd.readouterr()
        return Ran(int(done.value.code or 0), out, err)

    return run


@pytest.fixture
def quota(bench: Bench, namespace: str) -> Callable[..., dict[str, Any]]:
    """quota(name="vgpu"): a ResourceQuota of the test's namespace as it is; {} when there is none."""

    def read(name: str = "vgpu") -> dict[str, Any]:
        try:
            found: dict[str, Any] = bench.client.get(f"/api/v1/namespaces/{namespace}/resourcequotas/{name}")
        except ApiError as error:
            assert error.status == 404
            return {}
        return found

    return read


def pod(name: str, number: int = 1, memory: int = 100, **spec: Any) -> dict[str, Any]:
    limits = {"volcano.sh/vgpu-number": str(number), "volcano.sh/vgpu-memory": str(memory)}
    container = {"name": "main", "image": "none", "resources": {"limits": limits}}
    return {"metadata": {"name": name}, "spec": {"schedulerName": "volcano", "containers": [container], **spec}}


@pytest.fixture
def make_pod(bench: Bench, namespace: str) -> Callable[..., None]:
    def make(*arguments: Any, **options: Any) -> None:
        bench.client.post(f"/api/v1/namespaces/{namespace}/pods", pod(*arguments, **options))

    return make
