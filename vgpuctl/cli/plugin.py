"""The options of what is installed, as records in one table, for the commands that choose or change them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
import typer

from vgpuctl.model.install.options import Options, Toleration
from vgpuctl.model.problem import Exit, Problem

NONE = "-"
"""What takes a value away that was given formerly."""
AUTO = "auto"
_EVERY = "*"
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_GIVEN = "given"
_PANEL = "What is installed"


@dataclass(frozen=True)
class Option:
    """name: of the field of Options. read: what its text becomes; raises Problem."""

    name: str
    flag: str
    help: str
    metavar: str = ""
    type: Any = str
    read: Callable[[Any], Any] = lambda value: value


def _optional(text: str) -> str:
    return "" if text == NONE else text


def _pairs(flag: str) -> Callable[[list[str]], dict[str, str]]:
    def read(texts: list[str]) -> dict[str, str]:
        parts = [part for text in texts if text != NONE for part in text.split(",")]
        for part in parts:
            if "=" not in part:
                raise Problem(f"{flag} {part} is not understood", remedy="write KEY=VALUE", exit_code=Exit.USAGE)
        return {key: value for key, _, value in (part.partition("=") for part in parts)}

    return read


def _tolerations(texts: list[str]) -> list[Toleration]:
    return [_toleration(text) for text in texts if text != NONE]


def _toleration(text: str) -> Toleration:
    if text == _EVERY:
        return Toleration(operator="Exists")
    rest, _, effect = text.partition(":")
    key, sign, value = rest.partition("=")
    if not key or effect not in ("", *_EFFECTS):
        raise Problem(
            f"--toleration {text} is not understood",
            remedy=f"write KEY, KEY=VALUE or KEY=VALUE:EFFECT; effects are {', '.join(_EFFECTS)}",
            exit_code=Exit.USAGE,
        )
    found = {"key": key, "operator": "Equal" if sign else "Exists", "value": value, "effect": effect}
    return msgspec.convert(found, Toleration)


OPTIONS = (
    Option("shim", "--shim", "Whose library keeps the limits: ours, or the one in the image [vgpuctl]",
           type=Literal["vgpuctl", "upstream"]),
    Option("profile", "--profile", "The work that the configuration is for, where there is none yet [inference]",
           type=Literal["training", "inference", "development"]),
    Option("node_selector", "--node-selector", "Label of the nodes that it runs on (repeatable)", "KEY=VALUE",
           list[str], _pairs("--node-selector")),
    Option("tolerations", "--toleration", "Taint that it bears, * for every one (repeatable) [nvidia.com/gpu]",
           "KEY[=VALUE][:EFFECT]", list[str], _tolerations),
    Option("runtime_class", "--runtime-class", "RuntimeClass, where NVIDIA's runtime is not the nodes' default", "NAME",
           read=_optional),
    Option("hook_path", "--hook-path", "Directory on the nodes; another where /usr is read-only [/usr/local/vgpu]",
           "DIR"),
    Option("image", "--image", "Image of the plugin, with a tag or a digest", "IMAGE"),
    Option("registry", "--registry", "Takes the place of each image's registry; may have a path", "HOST[/PATH]",
           read=lambda text: _optional(text).rstrip("/")),
    Option("image_pull_secrets", "--image-pull-secret", "Secret to pull with (repeatable)", "NAME", list[str],
           lambda texts: [text for text in texts if text != NONE]),
    Option("monitoring", "--monitoring", "How Prometheus finds the monitors; auto: what the cluster serves [none]",
           type=Literal["auto", "PodMonitor", "ServiceMonitor", "none"],
           read=lambda kind: "" if kind == "none" else kind),
    Option("monitoring_labels", "--monitoring-label", "Label by which Prometheus selects (repeatable)", "KEY=VALUE",
           list[str], _pairs("--monitoring-label")),
    Option("max_unavailable", "--max-unavailable", "Nodes without the plugin at a time while it rolls out [1]", "N|P%"),
    Option("kubelet_root", "--kubelet-root", "The kubelet's directory on the nodes [/var/lib/kubelet]", "DIR"),
    Option("priority_class", "--priority-class", "PriorityClass of the plugin's pods [system-node-critical]", "NAME"),
)  # fmt: skip


def plugin_options(function: Callable[..., Exit | None]) -> Callable[..., Exit | None]:
    """Gives a command these options; it receives the values as its parameter `given`, by field of Options, without
    those that were not given."""

    @functools.wraps(function)
    def call(**values: Any) -> Exit | None:
        texts = {option.name: values.pop(option.name) for option in OPTIONS}
        given = {option.name: option.read(texts[option.name]) for option in OPTIONS if texts[option.name] is not None}
        return function(given=given, **values)

    signature = inspect.signature(function, eval_str=True)
    own = [parameter for name, parameter in signature.parameters.items() if name != _GIVEN]
    added = [
        inspect.Parameter(
            option.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[option.type | None, info]
        )
        for option in OPTIONS
        for info in [
            typer.Option(option.flag, help=option.help, metavar=option.metavar or None, rich_help_panel=_PANEL)
        ]
    ]
    keywords = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]
    first, rest = keywords[:1], keywords[1:]
    call.__signature__ = signature.replace(parameters=[*first, *added, *rest])  # type: ignore[attr-defined]
    call.__annotations__ = {p.name: p.annotation for p in [*first, *added, *rest]}
    return call


def chosen(base: Options, given: Mapping[str, Any]) -> Options:
    """Options with what was given. Raises Problem (wrong use) for a value that cannot be used."""
    return msgspec.structs.replace(base, **given)
