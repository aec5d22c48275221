"""The options of an installation. One that exists is valid: it is checked when it is made."""

from __future__ import annotations

import re
from typing import Final, Literal

from vgpuctl.model import configmaps
from vgpuctl.model.install import image
from vgpuctl.model.output import Item
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.model.shim import HOOK_PATH

PLUGIN_IMAGE: Final = "docker.io/projecthami/volcano-vgpu-device-plugin:v1.12.0"
SYSTEM_NAMESPACES: Final = configmaps.PLUGIN_NAMESPACES
"""Namespaces that are there anyway; any other is made, if it is not there, and then is ours."""

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_PATH = re.compile(r"(/[A-Za-z0-9_-][A-Za-z0-9._-]*){2,}")
_SHARED = frozenset(
    ("/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib64", "/usr/local", "/var/lib", "/var/run", "/var/tmp")
)
_UNAVAILABLE = re.compile(r"[1-9]\d{0,4}|(100|[1-9]\d?)%")
_QUALIFIED = re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")


class Toleration(Item, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A taint that the plugin's pods bear, in Kubernetes' own words; without a key every taint."""

    key: str = ""
    operator: Literal["Exists", "Equal"] = "Equal"
    value: str = ""
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = ""

    def __post_init__(self) -> None:
        if not self.key and self.operator != "Exists":
            raise Problem("a toleration without a key needs the operator Exists", exit_code=Exit.USAGE)
        if self.value and self.operator == "Exists":
            raise Problem(
                f"a toleration of {self.key} cannot have the operator Exists and a value", exit_code=Exit.USAGE
            )


class Options(Item, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an administrator may choose. Making one raises Problem for a value that cannot be used.

    image: with a tag or a digest. registry: takes the place of each image's registry, such as
    `registry.example.com:5000/mirror`. hook_path: the directory on each node for the library and the region files;
    another one where /usr is read-only. shim: our own library, or the one in the plugin's image. runtime_class: made
    if it is not there; "" when NVIDIA's runtime is the default one. monitoring: the kind by which Prometheus finds the
    monitors, with monitoring_labels where it selects by label. profile: the kind of work that the configuration is
    made for where there is none. max_unavailable: how many nodes may be without the plugin during a rollout.
    kubelet_root: where the kubelet of the nodes has its sockets.
    """

    namespace: str = configmaps.PLUGIN_NAMESPACES[0]
    image: str = PLUGIN_IMAGE
    registry: str = ""
    image_pull_secrets: tuple[str, ...] = ()
    hook_path: str = HOOK_PATH
    node_selector: dict[str, str] = {}
    tolerations: tuple[Toleration, ...] = (Toleration(key="nvidia.com/gpu", operator="Exists"),)
    shim: Literal["vgpuctl", "upstream"] = "vgpuctl"
    runtime_class: str = ""
    monitoring: Literal["", "PodMonitor", "ServiceMonitor"] = ""
    monitoring_labels: dict[str, str] = {}
    profile: Literal["training", "inference", "development"] = "inference"
    max_unavailable: str = "1"
    kubelet_root: str = "/var/lib/kubelet"
    priority_class: str = "system-node-critical"

    def __post_init__(self) -> None:
        for what, values, pattern, rule in (
            ("a namespace", (self.namespace,), _LABEL, "lower-case letters, digits and dashes, at most 63"),
            ("a hook path", (self.hook_path,), _PATH, "an absolute path of two levels or more, such as /var/lib/vgpu"),
            ("the kubelet's root", (self.kubelet_root,), _PATH, "an absolute path such as /var/lib/kubelet"),
            ("a maximum", (self.max_unavailable,), _UNAVAILABLE, "a number from 1 on, or a percentage such as 10%"),
            ("a priority class", (self.priority_class,), _SUBDOMAIN, "lower-case letters, digits, dashes and dots"),
            ("a runtime class", _given(self.runtime_class), _SUBDOMAIN, "lower-case letters, digits, dashes and dots"),
            ("a registry", _given(self.registry), image.REGISTRY, "a name such as registry.example.com:5000/mirror"),
            ("a pull secret", self.image_pull_secrets, _SUBDOMAIN, "lower-case letters, digits, dashes and dots"),
            ("a label", self._labels.keys(), _QUALIFIED, "a key such as example.com/gpu"),
            ("a label's value", self._labels.values(), _VALUE, "letters, digits, dashes, dots, at most 63"),
        ):
            for value in values:
                if not pattern.fullmatch(value):
                    raise Problem(f"{value!r} cannot be {what}: {rule}", exit_code=Exit.USAGE)
        if self.hook_path in _SHARED:
            raise Problem(
                f"{self.hook_path!r} cannot be a hook path: it would hide that directory of the plugin's image",
                remedy=f"give it a directory of its own, such as {self.hook_path}/vgpu",
                exit_code=Exit.USAGE,
            )
        if wrong := image.wrong(self.image):
            raise Problem(f"{self.image!r} cannot be the plugin's image: {wrong}", exit_code=Exit.USAGE)

    @property
    def _labels(self) -> dict[str, str]:
        return {**self.node_selector, **self.monitoring_labels}


def _given(value: str) -> tuple[str, ...]:
    return (value,) if value else ()
