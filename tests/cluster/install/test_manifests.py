"""The objects of an installation are ones that API servers take: today's, both ways of applying, and the oldest's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.bench import Bench
from tests.cluster.oldest import Schemas
from tests.cluster.plugin import Kubectl
from vgpuctl.model.install import export, libraries
from vgpuctl.model.install.manifests import cleanup, manifests
from vgpuctl.model.install.options import Options, Toleration

pytestmark = pytest.mark.cluster

LIBRARIES = {"x86_64": b"\x7fELF for one machine" * 9000, "aarch64": b"\x7fELF for another" * 9000}
DIGEST = "registry.example.com/gpu/plugin@sha256:" + "0a" * 32
TABLE: dict[str, dict[str, Any]] = {
    "default": {},
    "the image's library": {"shim": "upstream"},
    "a namespace of ours": {"namespace": "test-gpu-pool"},
    "beside the scheduler": {"namespace": "volcano-system"},
    "read-only /usr": {"hook_path": "/var/lib/vgpu", "kubelet_root": "/var/lib/k0s/kubelet"},
    "found by pods": {"monitoring": "PodMonitor", "monitoring_labels": {"release": "prometheus"}},
    "found by a service": {"monitoring": "ServiceMonitor", "profile": "training"},
    "from elsewhere": {
        "image": DIGEST,
        "registry": "mirror.example.com:5000/all",
        "image_pull_secrets": ("one", "two"),
    },
    "on chosen nodes": {
        "runtime_class": "nvidia",
        "node_selector": {"example.com/gpu": "on"},
        "max_unavailable": "25%",
        "priority_class": "system-cluster-critical",
        "tolerations": (
            Toleration(operator="Exists", effect="NoExecute"),
            Toleration(key="team", value="ai", effect="NoSchedule"),
        ),
    },
}


@pytest.fixture(params=TABLE)
def objects(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    """All that an installation and its removal may apply."""
    options = Options(**TABLE[request.param])
    return [*manifests(options, LIBRARIES), *cleanup(options)]


@pytest.fixture(scope="module")
def prepared(bench: Bench) -> Iterator[None]:
    """A bench with the namespaces of the table, which a dry run does not make, and the operator's kinds."""
    definitions = str(Path(__file__).with_name("monitoring.yaml"))
    namespaces = [options["namespace"] for options in TABLE.values() if "namespace" in options]
    bench.kubectl("apply", "-f", definitions)
    bench.kubectl("wait", "--for=condition=Established", "--timeout=30s", "-f", definitions)
    for name in namespaces:
        bench.kubectl("create", "namespace", name, "--save-config", check=False)
    yield
    bench.kubectl("delete", "namespace", "--wait=false", *namespaces)
    bench.kubectl("delete", "-f", definitions)


WAYS = {"client-side": [], "server-side": ["--server-side", "--field-manager=vgpuctl"]}


@pytest.mark.parametrize("way", WAYS)
def test_the_api_server_takes_them(prepared: None, kubectl: Kubectl, objects: list[dict[str, Any]], way: str) -> None:
    done = kubectl(
        "apply", "--dry-run=server", "--validate=strict", "-f", "-", *WAYS[way], stdin=export.text(objects), check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == len(objects)


@pytest.mark.parametrize("way", WAYS)
def test_a_field_that_the_api_server_does_not_know_is_refused(prepared: None, kubectl: Kubectl, way: str) -> None:
    item = manifests(Options(), LIBRARIES)[-1]
    item["spec"]["template"]["spec"]["containers"][0]["hookPath"] = "/"
    command = ("apply", "--dry-run=server", "--validate=strict", "-f", "-", *WAYS[way])
    done = kubectl(*command, stdin=export.text([item]), check=False)
    assert done.returncode == 1
    assert "hookPath" in done.stderr


def test_they_are_a_kustomization(
    prepared: None, kubectl: Kubectl, objects: list[dict[str, Any]], tmp_path: Path
) -> None:
    for name, text in export.files(objects).items():
        (tmp_path / name).write_text(text)
    done = kubectl("apply", "--dry-run=server", "--validate=strict", "-k", str(tmp_path), check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == len(objects)


def test_the_real_libraries_fit_into_what_kubectl_keeps_of_an_object(prepared: None, kubectl: Kubectl) -> None:
    try:
        built = libraries.built()
    except Exception as error:
        pytest.skip(str(error))
    text = export.text(manifests(Options(), built))
    done = kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", stdin=text, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_oldest_kubernetes_knows_every_field(oldest: Schemas, objects: list[dict[str, Any]]) -> None:
    own = [item for item in objects if not item["apiVersion"].startswith("monitoring.coreos.com/")]
    assert [error for item in own for error in oldest.errors(item)] == []
    assert len(own) >= len(objects) - 1


@pytest.mark.parametrize(
    ("field", "value"),
    [("hostUsers", True), ("terminationGracePeriodSeconds", "1"), ("volumes", [{"hostPath": {"path": "/"}}])],
)
def test_what_the_oldest_kubernetes_does_not_know_is_an_error(oldest: Schemas, field: str, value: object) -> None:
    item = manifests(Options(), LIBRARIES)[-1]
    item["spec"]["template"]["spec"][field] = value
    assert len(oldest.errors(item)) == 1
