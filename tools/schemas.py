"""JSON Schemas (draft 2020-12): of every Output, from its msgspec type, and of the configuration files, from the shapes
that upstream's loaders decode into."""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import msgspec

import vgpuctl.model
from vgpuctl.model.config import device, mig, node, scheduler
from vgpuctl.model.config.node_rules import MODES
from vgpuctl.model.config.scheduler_rules import POLICIES
from vgpuctl.model.config.shape import Anything, Bool, ListOf, MapOf, Number, Shape, Text
from vgpuctl.model.output import Output

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_NAME = {"pattern": "^volcano\\.sh/.+"}
_DEAD = {"deprecated": True}

_TITLES = {
    "device-config": (
        "nvidia",
        "Device configuration of the volcano-vgpu-device-plugin and of Volcano (device-config.yaml)",
    ),
    "node-config": ("nodeconfig", "Node configuration of the volcano-vgpu-device-plugin (config.json)"),
    "scheduler": ("actions tiers", "Scheduler configuration of Volcano (volcano-scheduler.conf)"),
}
_ROOTS: dict[str, MapOf] = {
    "device-config": MapOf({"nvidia": device.NVIDIA, "vnpus": Anything()}, strict=False),
    "node-config": node.ROOT,
    "scheduler": scheduler.ROOT,
}
_MORE: dict[str, dict[str, Any]] = {
    "nvidia": {
        "required": [
            *("resourceCountName", "resourceMemoryName", "resourceCoreName"),
            *("deviceSplitCount", "deviceCoreScaling", "gpuMemoryFactor"),
        ]
    },
    "nvidia.resourceCountName": {**_NAME, "description": "Name of the resource that counts vGPUs"},
    "nvidia.resourceMemoryName": {
        **_NAME,
        "description": "Name of the resource for memory per vGPU, in units of gpuMemoryFactor",
    },
    "nvidia.resourceMemoryPercentageName": {
        **_NAME,
        "description": "Name of the resource for memory in percent; fits nowhere since Volcano 1.13",
    },
    "nvidia.resourceCoreName": {
        **_NAME,
        "description": "Name of the resource for percent of a card's compute per vGPU",
    },
    "nvidia.deviceSplitCount": {"minimum": 1, "description": "vGPUs a card"},
    "nvidia.deviceCoreScaling": {
        "exclusiveMinimum": 0,
        "description": "Times 100 cores a card; the scheduler stops at 100",
    },
    "nvidia.gpuMemoryFactor": {"minimum": 1, "description": "MiB per memory unit; at most 60000 units a node"},
    "nvidia.knownMigGeometries": {
        "description": "MIG layouts by card; the first entry whose model a card's name contains"
    },
    "nvidia.knownMigGeometries[]": {"required": ["models", "allowedGeometries"]},
    "nvidia.knownMigGeometries[].allowedGeometries[]": {"required": ["group", "geometries"]},
    "nvidia.knownMigGeometries[].allowedGeometries[].group": {"pattern": "^[A-Za-z0-9_.]+$"},
    "nvidia.knownMigGeometries[].allowedGeometries[].geometries[]": {"required": ["name", "memory", "count"]},
    "nvidia.knownMigGeometries[].allowedGeometries[].geometries[].name": {
        "examples": sorted({profile.name for family in mig.all_families() for profile in family.profiles})
    },
    "nvidia.knownMigGeometries[].allowedGeometries[].geometries[].memory": {
        "minimum": 1,
        "description": "MiB of one slice",
    },
    "nvidia.knownMigGeometries[].allowedGeometries[].geometries[].count": {"minimum": 1},
    **{
        f"nvidia.{name}": _DEAD
        for name in ("deviceMemoryScaling", "disableCoreLimit", "overwriteEnv", "resourcePriorityName")
    },
    **{f"nvidia.{name}": _DEAD for name in ("defaultMemory", "defaultCores", "defaultGPUNum", "passDeviceSpecs")},
    "nodeconfig[]": {"required": ["name"]},
    "nodeconfig[].operatingmode": {"enum": [*MODES, ""]},
    "nodeconfig[].devicecorescaling": {"minimum": 0},
    "nodeconfig[].devicememoryscaling": _DEAD,
    "nodeconfig[].migstrategy": _DEAD,
    "tiers[].plugins[]": {"required": ["name"]},
    "tiers[].plugins[].name": {"examples": list(scheduler.PLUGINS)},
    "tiers[].plugins[].arguments": {
        "properties": {
            argument.name: {
                "bool": {"enum": [True, False, "true", "false", "1", "0"]},
                "int": {"type": "integer", "minimum": 0},
                "text": {"type": "string"},
                "rules": {"type": "array", "items": {"type": "object", "additionalProperties": {"type": "string"}}},
            }[argument.kind]
            | ({"enum": [*POLICIES, ""]} if argument.name.endswith("SchedulePolicy") else {})
            for argument in scheduler.ARGUMENTS.values()
        }
    },
}
"""What the rules say beyond the loaders' types, by path."""


def files() -> dict[str, str]:
    """path → text of every schema."""
    found = {f"schemas/{kind.__name__}.schema.json": _of_output(kind) for kind in outputs()}
    for name, root in _ROOTS.items():
        required, title = _TITLES[name]
        schema = {
            "$schema": _DRAFT,
            "$id": f"https://vgpuctl.dev/schemas/{name}.schema.json",
            "title": title,
            **_of_shape(root, ""),
            "required": required.split(),
        }
        found[f"schemas/{name}.schema.json"] = _text(schema)
    return found


def outputs() -> Iterator[type[Output]]:
    """Every kind of Output that the model defines, by name."""
    for module in pkgutil.walk_packages(vgpuctl.model.__path__, "vgpuctl.model."):
        import_module(module.name)
    yield from sorted(_below(Output), key=lambda kind: kind.__name__)


def _below(kind: type[Output]) -> Iterator[type[Output]]:
    for below in kind.__subclasses__():
        yield below
        yield from _below(below)


def _of_output(kind: type[Output]) -> str:
    schema = msgspec.json.schema(kind)
    return _text({"$schema": _DRAFT, "$id": f"https://vgpuctl.dev/schemas/{kind.__name__}.schema.json", **schema})


def _of_shape(shape: Shape, path: str) -> dict[str, Any]:
    """A shape as a schema; null is what an absent key is, for every loader."""
    more = _MORE.get(path, {})
    if isinstance(shape, MapOf):
        fields = {name: _of_shape(field, f"{path}.{name}" if path else name) for name, field in shape.fields.items()}
        closed = {"additionalProperties": False} if shape.strict else {}
        nothing = [] if "required" in more or not path else ["null"]
        schema: dict[str, Any] = {"type": ["object", *nothing], "properties": fields, **closed}
    elif isinstance(shape, ListOf):
        schema = {"type": ["array", "null"], "items": _of_shape(shape.item, f"{path}[]")}
    elif isinstance(shape, Number):
        low, high = shape.both
        whole = {} if shape.fraction else {"minimum": int(low), "maximum": int(high)}
        schema = {"type": "number" if shape.fraction else "integer", **whole}
    elif isinstance(shape, Bool):
        schema = {"type": "boolean"}
    elif isinstance(shape, Text):
        schema = {"type": "string"}
    else:
        schema = {}
    return {
        **schema,
        **more,
        **({"properties": {**schema["properties"], **more["properties"]}} if "properties" in more else {}),
    }


def _text(schema: dict[str, Any]) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
