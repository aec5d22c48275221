"""The rules of the device config, as a table."""

from __future__ import annotations

from collections.abc import Iterator

from vgpuctl.model.config import mig_rules
from vgpuctl.model.config.device import DeviceConfig
from vgpuctl.model.config.factor import SAFE_ENTRIES, entries, smallest_factor
from vgpuctl.model.config.shape import reported
from vgpuctl.model.context import Context
from vgpuctl.model.finding import Severity
from vgpuctl.model.rule import Hit, Rule
from vgpuctl.model.volcano import fixed_names

PREFIX = "volcano.sh/"


def _range(config: DeviceConfig, context: Context) -> Iterator[Hit]:
    for hit in config.loader.hits.get("number-range", ()):
        if not hit.path.endswith("].memory"):
            yield hit
    for name in ("deviceCoreScaling", "deviceMemoryScaling"):
        scaling = config.field(name)
        if scaling and scaling.value is not None and scaling.value < 0:
            yield Hit(scaling.node.position, scaling.path, "a negative scaling has no meaning", f"{name}: 1")
    for instance, _ in mig_rules.instances(config):
        for name in ("memory", "count"):
            found = instance.value.fields.get(name)
            if (
                found
                and not found.bad
                and (found.value is None or found.value < 1)
                and (name == "count" or not found.value)
            ):
                yield Hit(
                    found.node.position, found.path, f"a slice with {name} {found.value} cannot be used", "at least 1"
                )


def _zero(name: str, message: str, remedy: str, config: DeviceConfig) -> Iterator[Hit]:
    if config.nvidia is None:
        return
    if config.nvidia.absent(name):
        yield Hit(config.place, f"nvidia.{name}", f"{name} is missing and has no default: {message}", f"add {remedy}")
    elif config.nvidia.zero(name):
        found = config.nvidia.fields[name]
        yield Hit(found.place, found.path, f"{name} is 0: {message}", remedy)


def _factor_zero(config: DeviceConfig, context: Context) -> Iterator[Hit]:
    message = "the plugin divides by it and crashes"
    remedy = f"gpuMemoryFactor: {smallest_factor(context) or 1}"
    yield from _zero("gpuMemoryFactor", message, remedy, config)


def _split_zero(config: DeviceConfig, context: Context) -> Iterator[Hit]:
    yield from _zero("deviceSplitCount", "no node offers a vGPU", "deviceSplitCount: 10", config)


def _core_zero(config: DeviceConfig, context: Context) -> Iterator[Hit]:
    message = "nodes offer no vgpu-cores, and the scheduler then ignores them"
    yield from _zero("deviceCoreScaling", message, "deviceCoreScaling: 1", config)


def _core_over(config: DeviceConfig, context: Context) -> Iterator[Hit]:
    found = config.field("deviceCoreScaling")
    if found and found.value is not None and found.value > 1:
        message = f"nodes offer {found.value * 100:g} cores a card, but the scheduler never goes above 100"
        yield Hit(found.node.position, found.path, message, "deviceCoreScaling: 1")


def _factor_small(config: DeviceConfig, context: Context) -> Iterator[Hit]:
    found = config.field("gpuMemoryFactor")
    needed = smallest_factor(context)
    if not found or not found.value or needed is None or found.value >= needed:
        return
    sums: dict[str, int] = {}
    for node in context.nodes or ():
        sums[node.name] = sums.get(node.name, 0) + entries(node.memory, found.value, node.cards)
    worst = max(sums, key=lambda name: sums[name])
    message = (
        f"{worst} would announce {sums[worst]} device entries, the kubelet takes about {SAFE_ENTRIES}: "
        "vgpu-memory stays 0 and the scheduler ignores the node"
    )
    yield Hit(found.place, found.path, message, f"gpuMemoryFactor: {needed}")


def _factor_large(config: DeviceConfig, context: Context) -> Iterator[Hit]:
    found = config.field("gpuMemoryFactor")
    small = min(((node.memory, node.name) for node in context.nodes or () if node.memory), default=None)
    if found and found.value and small and found.value > small[0]:
        message = f"a card of {small[1]} has {small[0]} MiB, less than one unit: the node offers no vgpu-memory"
        yield Hit(found.place, found.path, message, f"gpuMemoryFactor: {smallest_factor(context)}")


_NAMES = ("resourceCountName", "resourceMemoryName", "resourceCoreName")
_RIGHT = {
    "resourceCountName": "volcano.sh/vgpu-number",
    "resourceMemoryName": "volcano.sh/vgpu-memory",
    "resourceMemoryPercentageName": "volcano.sh/vgpu-memory-percentage",
    "resourceCoreName": "volcano.sh/vgpu-cores",
}


def _name_missing(config: DeviceConfig, context: Context) -> Iterator[Hit]:
    for name in _NAMES:
        message = "the plugin cannot register it, and no pod is recognised as a vGPU request"
        yield from _zero(name, message, f"{name}: {_RIGHT[name]}", config)


def _name_foreign(config: DeviceConfig, context: Context) -> Iterator[Hit]:
    for name in _NAMES:
        found = config.field(name)
        if found and found.value and not found.value.startswith(PREFIX):
            registered = PREFIX + found.value
            message = f"the plugin registers {registered}, whatever the domain; the scheduler looks for {found.value}"
            yield Hit(found.node.position, found.path, message, f"{name}: {_RIGHT[name]}")
    found = config.field("resourceMemoryPercentageName")
    if found and found.value and not found.value.startswith(PREFIX):
        message = f"the percentage is then asked for as {found.value}"
        yield Hit(found.node.position, found.path, message, _RIGHT["resourceMemoryPercentageName"], Severity.INFO)


def _name_renamed(config: DeviceConfig, context: Context) -> Iterator[Hit]:
    for name in _NAMES:
        found = config.field(name)
        if not found or not found.value or not found.value.startswith(PREFIX) or found.value == _RIGHT[name]:
            continue
        if context.volcano is None:
            message = "Volcano 1.14.3, 1.14.4 and from 1.15.1 on see no vGPU on nodes whose resources are renamed"
            yield Hit(found.node.position, found.path, message, f"{name}: {_RIGHT[name]}", Severity.INFO)
        elif fixed_names(context.volcano):
            message = f"Volcano {context.volcano} reads the fixed names: every node is without vGPUs for it"
            yield Hit(found.node.position, found.path, message, f"{name}: {_RIGHT[name]}")


def _percentage_missing(config: DeviceConfig, context: Context) -> Iterator[Hit]:
    name = "resourceMemoryPercentageName"
    yield from _zero(name, "the scheduler never looks at vgpu-memory-percentage", f"{name}: {_RIGHT[name]}", config)


DEAD = {
    "deviceMemoryScaling": ((1, None), "memory is not oversubscribed", "remove it, or set 1"),
    "disableCoreLimit": (
        (False, None),
        "core limits stay on",
        "remove it; GPU_CORE_UTILIZATION_POLICY of the pod does this",
    ),
    "overwriteEnv": ((False, None), "pods without a vGPU still see what their image asks for", "remove it"),
    "defaultMemory": ((0, None), "a request without memory gets the whole card", "remove it, or set 0"),
    "defaultCores": ((0, None), "a request without cores gets no core share", "remove it, or set 0"),
    "defaultGPUNum": ((0, 1, None), "a request without a number gets one vGPU", "remove it, or set 1"),
    "resourcePriorityName": (("", None), "no priority is read from it", "remove it"),
    "passDeviceSpecs": ((False, None), "only the plugin's flag or PASS_DEVICE_SPECS counts", "set PASS_DEVICE_SPECS"),
}
"""Key → values that ask for nothing, what is so whatever it says, what to do about it."""
"""Key → values that state nothing, what is so whatever it says, what to do about it."""


def _dead(config: DeviceConfig, context: Context) -> Iterator[Hit]:
    for name, (neutral, effect, remedy) in DEAD.items():
        found = config.field(name)
        if found and found.value not in neutral:
            yield Hit(found.place, found.path, f"{name} is loaded and used nowhere: {effect}", remedy)


E, W = Severity.ERROR, Severity.WARNING
RULES: tuple[Rule[DeviceConfig], ...] = (
    reported("foreign-format", E, "another product's file leaves every value zero"),
    reported("wrong-nesting", E, "a key at the wrong level is ignored"),
    reported("key-misspelt", E, "an unknown key is dropped without a word"),
    reported("key-case", E, "keys are case-sensitive"),
    reported("type-mismatch", E, "one value of the wrong type drops the whole file"),
    reported("string-for-number", E, "a quoted number drops the whole file"),
    reported("string-for-bool", E, "a quoted boolean drops the whole file"),
    reported("yaml-octal", E, "a leading zero makes a number octal"),
    reported("unrendered-template", E, "a template marker is no value"),
    reported("loaders-disagree", E, "plugin and scheduler must load the same file"),
    Rule("number-range", E, "negative or cut numbers are not what is meant", _range),
    Rule("factor-zero", E, "the plugin divides by the factor", _factor_zero),
    Rule(
        "factor-too-small", E, "the kubelet refuses more than 4 MiB of device entries (needs the nodes)", _factor_small
    ),
    Rule("factor-too-large", E, "a card smaller than one unit has no memory (needs the nodes)", _factor_large),
    Rule("split-zero", E, "without slices there is no vGPU", _split_zero),
    Rule("core-scaling-zero", E, "a node without cores is ignored", _core_zero),
    Rule("core-scaling-over", W, "the scheduler stops at 100 cores a card", _core_over),
    Rule("resource-name-missing", E, "an empty resource name breaks registration", _name_missing),
    Rule("percentage-name-missing", W, "the scheduler then never looks at percentages", _percentage_missing),
    Rule("foreign-resource-names", E, "the plugin registers under volcano.sh/ only", _name_foreign),
    Rule("resource-renamed", E, "newer Volcano reads the fixed names only (needs its version)", _name_renamed),
    Rule("dead-key", W, "some keys are loaded and used nowhere", _dead),
    Rule("mig-shape", E, "a geometry of another shape has no slices, or drops the file", mig_rules.shape),
    Rule("mig-group-name", E, "group names become parts of device ids", mig_rules.group_name),
    Rule("mig-unit", E, "MIG memory is a plain number of MiB", mig_rules.memory_unit),
    Rule("mig-template-wrong", W, "slices must be those that the card has", mig_rules.template),
    Rule(
        "mig-model-unmatched",
        W,
        "a MIG card without a table entry becomes hami-core (needs the nodes)",
        mig_rules.unmatched,
    ),
)
