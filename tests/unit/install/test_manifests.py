"""The objects of an installation: what they grant, how they hang together, what never changes in them."""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from tests.unit.pools import pool
from vgpuctl import resources
from vgpuctl.checks.check import Options as CheckOptions
from vgpuctl.checks.check import Status
from vgpuctl.checks.placing import monitor_path, socket_directory
from vgpuctl.model.config.validate import validate
from vgpuctl.model.context import Context, PoolNode
from vgpuctl.model.install import export, libraries
from vgpuctl.model.install.manifests import (
    PLUGIN,
    cleanup,
    kept,
    manifests,
    target,
    wanted_hashes,
)
from vgpuctl.model.install.options import Options, Toleration

BUILT = {"x86_64": b"\x7fELF x86_64 " * 10, "aarch64": b"\x7fELF aarch64 " * 10}


def of_kind(kind: str, objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [item for item in objects if item["kind"] == kind]


def pod_spec(objects: list[dict[str, Any]]) -> dict[str, Any]:
    (item,) = of_kind("DaemonSet", objects)
    spec: dict[str, Any] = item["spec"]["template"]["spec"]
    return spec


def environment(container: dict[str, Any]) -> dict[str, str]:
    return {entry["name"]: entry.get("value", "") for entry in container["env"]}


def containers(spec: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {item["name"]: item for item in [*spec["initContainers"], *spec["containers"]]}


def test_the_default_objects(golden: Callable[[str, str], None]) -> None:
    for name, text in export.files([*manifests(Options(), BUILT), *cleanup(Options())]).items():
        golden(f"install/{name}", re.sub(r"(libvgpu.so.gz: )H4sI\S+", r"\1…", text))


def test_they_are_the_same_each_time() -> None:
    assert export.text(manifests(Options(), BUILT)) == export.text(manifests(Options(), BUILT))


@pytest.mark.parametrize("name", [path.name for path in sorted(resources.path("templates/install").glob("*.yaml"))])
def test_a_template_is_valid_yaml_as_it_stands(name: str) -> None:
    for item in resources.documents(f"templates/install/{name}"):
        assert {"apiVersion", "kind", "metadata"} <= item.keys()


def test_all_objects_say_whose_they_are() -> None:
    for item in [*manifests(Options(monitoring="ServiceMonitor", runtime_class="nvidia"), BUILT), *cleanup(Options())]:
        labels = item["metadata"]["labels"]
        assert labels["app.kubernetes.io/managed-by"] == labels["app.kubernetes.io/part-of"] == "vgpuctl"
        assert ("app.kubernetes.io/version" in labels) != kept(item)


def test_what_belongs_to_the_administrator_or_to_others_is_made_once() -> None:
    everything = Options(namespace="gpu", runtime_class="nvidia", monitoring="ServiceMonitor")
    made_once = [str(target(item)) for item in manifests(everything, BUILT) if kept(item)]
    assert made_once == [
        "Namespace gpu",
        "ConfigMap kube-system/volcano-vgpu-device-config",
        "ConfigMap gpu/volcano-vgpu-node-config",
        "RuntimeClass nvidia",
        *(f"ConfigMap gpu/{libraries.name(name, libraries.sha256(BUILT[name]))}" for name in sorted(BUILT)),
    ]


def test_the_plugins_rights_are_the_verbs_that_it_calls() -> None:
    (role,) = of_kind("ClusterRole", manifests(Options(), BUILT))
    granted = {(resource, verb) for rule in role["rules"] for resource in rule["resources"] for verb in rule["verbs"]}
    assert granted == {
        *(("nodes", verb) for verb in ("get", "patch", "update")),
        *(("pods", verb) for verb in ("get", "list", "watch", "patch")),
        ("configmaps", "get"),
    }
    (configmaps,) = [rule for rule in role["rules"] if rule["resources"] == ["configmaps"]]
    assert configmaps["resourceNames"] == ["volcano-vgpu-device-config"]
    assert all(rule["apiGroups"] == [""] for rule in role["rules"])


@pytest.mark.parametrize("namespace", ["kube-system", "volcano-system", "gpu-pool"])
def test_all_is_in_the_namespace_but_what_the_scheduler_reads(namespace: str) -> None:
    objects = manifests(Options(namespace=namespace, monitoring="PodMonitor"), BUILT)
    elsewhere = {str(target(item)) for item in objects if item["metadata"].get("namespace", namespace) != namespace}
    assert elsewhere <= {"ConfigMap kube-system/volcano-vgpu-device-config"}
    assert bool(elsewhere) == (namespace != "kube-system")
    (binding,) = of_kind("ClusterRoleBinding", objects)
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": PLUGIN, "namespace": namespace}]
    assert len(of_kind("Namespace", objects)) == (namespace == "gpu-pool")


def test_a_namespace_of_ours_lets_privileged_pods_in() -> None:
    (item,) = of_kind("Namespace", manifests(Options(namespace="gpu"), BUILT))
    assert item["metadata"]["name"] == "gpu"
    assert item["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "privileged"


def test_the_library_comes_back_from_its_configmap() -> None:
    objects = manifests(Options(), BUILT)
    shims = [item for item in of_kind("ConfigMap", objects) if "immutable" in item]
    for item, (name, library) in zip(shims, sorted(BUILT.items()), strict=True):
        assert gzip.decompress(base64.b64decode(item["binaryData"]["libvgpu.so.gz"])) == library
        assert item["metadata"]["annotations"] == {
            "vgpuctl.dev/architecture": name,
            "vgpuctl.dev/sha256": hashlib.sha256(library).hexdigest(),
        }
        assert item["metadata"]["name"] == f"vgpuctl-shim-{name.replace('_', '-')}-{libraries.sha256(library)[:10]}"


def test_the_pods_mount_each_library_and_know_its_hash() -> None:
    objects = manifests(Options(), BUILT)
    spec = pod_spec(objects)
    names = [item["metadata"]["name"] for item in of_kind("ConfigMap", objects) if "immutable" in item]
    (volume,) = [item for item in spec["volumes"] if item["name"] == "libraries"]
    sources = [source["configMap"] for source in volume["projected"]["sources"]]
    assert [source["name"] for source in sources] == names
    assert [source["items"][0]["path"] for source in sources] == [f"{name}/libvgpu.so.gz" for name in sorted(BUILT)]
    assert wanted_hashes(objects[-1]) == {name: libraries.sha256(library) for name, library in BUILT.items()}


def test_another_library_is_another_pod_template_and_other_options_are_not() -> None:
    def template(options: Options, built: dict[str, bytes]) -> Any:
        return manifests(options, built)[-1]["spec"]["template"]

    assert template(Options(), BUILT) != template(Options(), {**BUILT, "x86_64": b"another"})
    assert template(Options(), BUILT) == template(Options(max_unavailable="30%", monitoring="PodMonitor"), BUILT)


def test_the_images_own_library_needs_no_configmap() -> None:
    objects = manifests(Options(shim="upstream"), BUILT)
    spec = pod_spec(objects)
    assert environment(containers(spec)["place"])["SOURCE"] == "/k8s-vgpu/lib/nvidia/libvgpu.so"
    assert [item for item in of_kind("ConfigMap", objects) if "immutable" in item] == []
    assert "libraries" not in [volume["name"] for volume in spec["volumes"]]
    assert wanted_hashes(objects[-1]) == {}
    assert export.text(objects) == export.text(manifests(Options(shim="upstream"), {}))


def test_the_images_library_is_not_placed_where_ours_is_wanted() -> None:
    with pytest.raises(ValueError, match="none is given"):
        manifests(Options(), {})


@pytest.mark.parametrize("hook_path", ["/usr/local/vgpu", "/var/lib/vgpu"])
def test_doctor_finds_that_the_monitor_reads_where_the_plugin_writes(hook_path: str) -> None:
    item = manifests(Options(hook_path=hook_path), BUILT)[-1]

    def results(item: dict[str, Any]) -> list[Status]:
        facts = pool(lambda found: found.update(daemonsets=[item]))
        return [result.status for check in (monitor_path, socket_directory) for result in check(facts, CheckOptions())]

    assert set(results(item)) <= {Status.PASS}
    monitor = containers(item["spec"]["template"]["spec"])["monitor"]
    monitor["env"] = [{"name": "HOOK_PATH", "value": "/tmp/vgpu"}]
    assert Status.WARN in results(item)


def test_the_hook_path_is_the_same_inside_and_outside() -> None:
    spec = pod_spec(manifests(Options(hook_path="/var/lib/vgpu"), BUILT))
    (volume,) = [item for item in spec["volumes"] if item["name"] == "lib"]
    assert volume["hostPath"]["path"] == "/var/lib/vgpu"
    paths = {name: environment(item)["HOOK_PATH"] for name, item in containers(spec).items()}
    assert paths == {"place": "/var/lib/vgpu", PLUGIN: "/var/lib/vgpu", "monitor": "/var/lib/vgpu/vgpu"}
    mounts = [mount for item in containers(spec).values() for mount in item["volumeMounts"] if mount["name"] == "lib"]
    assert {mount["mountPath"] for mount in mounts} == {"/var/lib/vgpu"}
    assert "/usr/local/vgpu" not in yaml.safe_dump({**spec, "initContainers": []})


def test_another_kubelet_root_changes_the_host_path_alone() -> None:
    spec = pod_spec(manifests(Options(kubelet_root="/data/kubelet"), BUILT))
    (volume,) = [item for item in spec["volumes"] if item["name"] == "device-plugins"]
    assert volume["hostPath"]["path"] == "/data/kubelet/device-plugins"
    mounts = {mount["name"]: mount["mountPath"] for mount in containers(spec)[PLUGIN]["volumeMounts"]}
    assert mounts["device-plugins"] == "/var/lib/kubelet/device-plugins"


@pytest.mark.parametrize(("text", "value"), [("3", 3), ("10%", "10%")])
def test_a_maximum_is_a_number_or_a_percentage(text: str, value: object) -> None:
    strategy = manifests(Options(max_unavailable=text), BUILT)[-1]["spec"]["updateStrategy"]
    assert strategy["rollingUpdate"]["maxUnavailable"] == value


def test_pods_go_where_they_are_told_to() -> None:
    options = Options(node_selector={"gpu": "on"}, tolerations=(Toleration(key="team", operator="Exists"),))
    spec = pod_spec(manifests(options, BUILT))
    assert (spec["nodeSelector"], spec["tolerations"]) == ({"gpu": "on"}, [{"key": "team", "operator": "Exists"}])
    assert pod_spec(cleanup(options))["nodeSelector"] == {"gpu": "on"}
    assert pod_spec(cleanup(options))["tolerations"] == [{"operator": "Exists"}]


def test_a_service_monitor_finds_the_service_and_the_service_the_monitors_port() -> None:
    objects = manifests(Options(monitoring="ServiceMonitor", monitoring_labels={"release": "x"}), BUILT)
    (service,), (monitor,) = of_kind("Service", objects), of_kind("ServiceMonitor", objects)
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert monitor["metadata"]["labels"]["release"] == "x"
    assert "release" not in service["metadata"]["labels"]
    labels = objects[-1]["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
    (port,) = containers(pod_spec(objects))["monitor"]["ports"]
    assert service["spec"]["ports"][0]["targetPort"] == port["name"] == monitor["spec"]["endpoints"][0]["port"]


def test_a_pod_monitor_finds_the_monitors_port() -> None:
    objects = manifests(Options(monitoring="PodMonitor"), BUILT)
    (monitor,) = of_kind("PodMonitor", objects)
    labels = objects[-1]["spec"]["template"]["metadata"]["labels"]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= labels.items()
    (port,) = containers(pod_spec(objects))["monitor"]["ports"]
    assert monitor["spec"]["podMetricsEndpoints"] == [{"port": port["name"]}]


@pytest.mark.parametrize("profile", ["training", "inference", "development"])
def test_the_configuration_that_is_made_has_no_finding_and_keeps_the_pools_factor(profile: Any) -> None:
    context = Context(nodes=(PoolNode("gpu-1", 8, "H100", 81559),), factor=50)
    configs = manifests(Options(profile=profile), BUILT, context, named=True)[:2]
    for item in configs:
        assert validate(export.text([item]), "x", context).findings == []
    assert "gpuMemoryFactor: 50" in configs[0]["data"]["device-config.yaml"]
    assert '"name": "gpu-1"' in configs[1]["data"]["config.json"]


@pytest.mark.parametrize(("hook_path", "parent", "inside"), [("/var/lib/vgpu", "/var/lib", "/parent/vgpu")])
def test_the_cleanup_reaches_the_directory_through_its_parent(hook_path: str, parent: str, inside: str) -> None:
    spec = pod_spec(cleanup(Options(hook_path=hook_path)))
    assert environment(containers(spec)["remove"])["HOOK_PATH"] == inside
    (volume,) = [item for item in spec["volumes"] if item["name"] == "parent"]
    assert volume["hostPath"]["path"] == parent


def test_kubernetes_leaves_the_script_in_the_arguments_as_it_is() -> None:
    """It replaces $(NAME) by a variable of the container, and $$ by $."""
    for objects in (manifests(Options(), BUILT), manifests(Options(shim="upstream"), {}), cleanup(Options())):
        (container,) = pod_spec(objects)["initContainers"]
        script = container["args"][0]
        assert script == resources.text("templates/install/place.sh")
        assert "$$" not in script
        assert set(re.findall(r"\$\(([^)]*)\)", script)).isdisjoint(environment(container))


def test_the_script_gets_every_variable_that_it_reads() -> None:
    script = resources.text("templates/install/place.sh")
    own = set(re.findall(r"^\s*([A-Z_]+)=", script, re.MULTILINE)) | {"TERMINATION_LOG", "LC_ALL"}
    read = set(re.findall(r"\$\{?([A-Z_]{2,})", script)) - own
    placing = environment(pod_spec(manifests(Options(), BUILT))["initContainers"][0])
    removing = environment(pod_spec(cleanup(Options()))["initContainers"][0])
    assert read == (placing.keys() | removing.keys()) - {"NVIDIA_VISIBLE_DEVICES"}
