"""Options that exist can be used; all others are refused by name, wherever they come from."""

from __future__ import annotations

from typing import Any

import pytest

from vgpuctl.model.install.manifests import images
from vgpuctl.model.install.options import PLUGIN_IMAGE, Options, Toleration
from vgpuctl.model.problem import Exit, Problem

DIGEST = "@sha256:" + "0a" * 32


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("namespace", "gpu-pool"),
        ("image", "plugin:v1"),
        ("image", "localhost/plugin:v1"),
        ("image", "registry.example.com:5000/a/b__c/plugin:v1.2-rc.1"),
        ("image", f"{PLUGIN_IMAGE}{DIGEST}"),
        ("image", f"ghcr.io/org/plugin{DIGEST}"),
        ("registry", "registry.example.com"),
        ("registry", "10.0.0.1:5000/mirror/docker.io"),
        ("hook_path", "/var/lib/vgpu"),
        ("max_unavailable", "100%"),
        ("max_unavailable", "12"),
        ("node_selector", {"nvidia.com/gpu.present": "true", "pool": ""}),
        ("monitoring_labels", {"release": "prometheus"}),
        ("image_pull_secrets", ("registry.example.com",)),
        ("runtime_class", "nvidia-legacy"),
    ],
)
def test_what_can_be_used_is_taken(option: str, value: Any) -> None:
    assert getattr(Options(**{option: value}), option) == value


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("namespace", "GPU", "'GPU' cannot be a namespace"),
        ("namespace", "", "'' cannot be a namespace"),
        ("namespace", "a.b", "cannot be a namespace"),
        ("namespace", "a" * 64, "cannot be a namespace"),
        ("namespace", "pool\n", "cannot be a namespace"),
        ("image", "docker.io/org/plugin", "it names no version"),
        ("image", "docker.io/org/plugin:latest", "it names no version"),
        ("image", "Org/Plugin:v1", "no image reference"),
        ("image", "plugin:v1@sha256:12", "no image reference"),
        ("image", "", "no image reference"),
        ("registry", "https://registry.example.com", "cannot be a registry"),
        ("registry", "registry.example.com/", "cannot be a registry"),
        ("hook_path", "usr/local/vgpu", "cannot be a hook path"),
        ("hook_path", "/usr", "cannot be a hook path: an absolute path of two levels or more"),
        ("hook_path", "/usr/local", "would hide that directory of the plugin's image"),
        ("hook_path", "/usr/local/../vgpu", "cannot be a hook path"),
        ("hook_path", "/usr/local/vgpu/", "cannot be a hook path"),
        ("hook_path", "/usr/local/my vgpu", "cannot be a hook path"),
        ("kubelet_root", "", "cannot be the kubelet's root"),
        ("max_unavailable", "0", "cannot be a maximum"),
        ("max_unavailable", "0%", "cannot be a maximum"),
        ("max_unavailable", "101%", "cannot be a maximum"),
        ("max_unavailable", "-1", "cannot be a maximum"),
        ("node_selector", {"a b": "c"}, "'a b' cannot be a label: "),
        ("node_selector", {"a": "b c"}, "'b c' cannot be a label's value: "),
        ("monitoring_labels", {"": "x"}, "'' cannot be a label: "),
        ("image_pull_secrets", ("A",), "'A' cannot be a pull secret"),
        ("runtime_class", "Nvidia", "cannot be a runtime class"),
    ],
)
def test_what_cannot_be_used_is_refused(option: str, value: Any, said: str) -> None:
    with pytest.raises(Problem) as refused:
        Options(**{option: value})
    assert said in refused.value.what
    assert refused.value.exit_code == Exit.USAGE


@pytest.mark.parametrize(
    ("toleration", "said"),
    [
        ({"operator": "Equal"}, "without a key needs the operator Exists"),
        ({"key": "team", "operator": "Exists", "value": "ai"}, "cannot have the operator Exists and a value"),
    ],
)
def test_a_toleration_that_kubernetes_refuses_is_refused(toleration: dict[str, Any], said: str) -> None:
    with pytest.raises(Problem, match=said):
        Toleration(**toleration)


@pytest.mark.parametrize(
    ("image", "registry", "pulled"),
    [
        (PLUGIN_IMAGE, "", PLUGIN_IMAGE),
        (PLUGIN_IMAGE, "r.example.com/m", "r.example.com/m/projecthami/volcano-vgpu-device-plugin:v1.12.0"),
        ("projecthami/plugin:v1", "r.example.com", "r.example.com/projecthami/plugin:v1"),
        ("plugin:v1", "r.example.com", "r.example.com/plugin:v1"),
        ("localhost:5000/a/plugin:v1", "r", "r/a/plugin:v1"),
        (f"a.b/c:v1{DIGEST}", "r.example.com:5000", f"r.example.com:5000/c:v1{DIGEST}"),
    ],
)
def test_another_registry_takes_the_place_of_the_images_own(image: str, registry: str, pulled: str) -> None:
    assert images(Options(image=image, registry=registry)) == [pulled]
