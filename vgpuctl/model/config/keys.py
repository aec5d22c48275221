"""The keys of the pool's configuration, as a table: where each may be stated, who reads it, what its value means.

Which statement wins (volcano-vgpu-device-plugin v1.12.0 to 4fb76ba, LoadNvidiaConfig): the node config's, if above 0 or
not empty; a flag or variable that is set in the DaemonSet; the device config's; else the zero value of its type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from vgpuctl.model.config.device_rules import DEAD

PLUGIN, SCHEDULER = "plugin", "scheduler"
BOTH: Final = (PLUGIN, SCHEDULER)


class Key(msgspec.Struct, frozen=True):
    """name: in the device config, else in an entry of the node config. readers: who acts by it; none for a dead key.
    zero: what counts where nothing is stated. means: a value in words. node: the key in an entry of the node config.
    flag, variable: of the plugin, by which it can be set too. stated: the device config's value counts. reloads: its
    reader takes a new value without a restart."""

    name: str
    readers: tuple[str, ...] = ()
    zero: Any = None
    means: Callable[[Any], str] = lambda value: ""
    node: str = ""
    flag: str = ""
    variable: str = ""
    stated: bool = True
    reloads: bool = False

    @property
    def dead(self) -> bool:
        return not self.readers


def _name(what: str) -> Callable[[Any], str]:
    return lambda value: (
        f"pods ask for {what} by this name"
        if value
        else f"{what} has no name: no pod is recognised, nothing is registered"
    )


def _percentage(value: Any) -> str:
    return "pods may ask for memory in percent by this name" if value else "percentages are not looked at"


def _split(value: Any) -> str:
    return f"each card is divided into {value} vGPUs" if value else "no node offers a vGPU"


def _factor(value: Any) -> str:
    return f"a unit of vgpu-memory is {value} MiB" if value else "the plugin divides by it and crashes"


def _cores(value: Any) -> str:
    if not value:
        return "nodes offer no vgpu-cores, and the scheduler ignores them"
    more = ", but the scheduler never goes above 100" if value > 1 else ""
    return f"each card offers {value * 100:g} percent of its cores{more}"


def _geometries(value: Any) -> str:
    models = [str(model) for entry in value or () for model in entry.get("models") or ()]
    return f"MIG layouts of {named(models)}" if models else "no card can be cut by MIG"


def _mode(value: Any) -> str:
    if value == "mig":
        return "cards are cut by MIG"
    return "the library keeps the limits" + ("" if value == "hami-core" else f": {value} counts as hami-core")


def _filtered(value: Any) -> str:
    return f"out of service: {named(value)}" if value else "every card is in service"


def _specs(value: Any) -> str:
    return "device nodes are handed out" if value else "containers get their cards by the NVIDIA runtime"


def named(names: Iterable[Any], most: int = 3) -> str:
    """Some names on one line: `A30, A100 and 4 more`."""
    texts = [str(name) for name in names]
    return ", ".join(texts[:most]) + (f" and {len(texts) - most} more" if len(texts) > most else "")


def _dead(name: str) -> Key:
    neutral, effect, _ = DEAD[name]
    return Key(name, zero=neutral[0], means=lambda value: effect)


DEVICE_KEYS: Final = (
    Key("resourceCountName", BOTH, "", _name("vGPUs")),
    Key("resourceMemoryName", BOTH, "", _name("memory")),
    Key("resourceMemoryPercentageName", BOTH, "", _percentage),
    Key("resourceCoreName", BOTH, "", _name("cores")),
    Key("deviceSplitCount", (PLUGIN,), 0, _split, "devicesplitcount", "device-split-count"),
    Key("gpuMemoryFactor", BOTH, 0, _factor, flag="gpu-memory-factor"),
    Key("deviceCoreScaling", (PLUGIN,), 0, _cores, "devicecorescaling", "device-cores-scaling"),
    Key("knownMigGeometries", BOTH, [], _geometries),
    Key(
        "passDeviceSpecs",
        (PLUGIN,),
        False,
        _specs,
        flag="pass-device-specs",
        variable="PASS_DEVICE_SPECS",
        stated=False,
    ),
    msgspec.structs.replace(_dead("deviceMemoryScaling"), node="devicememoryscaling"),
    *(_dead(name) for name in DEAD if name not in ("deviceMemoryScaling", "passDeviceSpecs")),
)
NODE_KEYS: Final = (
    Key("operatingmode", (PLUGIN,), "hami-core", _mode, "operatingmode", stated=False),
    Key("filterdevices.uuid", (PLUGIN,), [], _filtered, "filterdevices.uuid", stated=False),
    Key("filterdevices.index", (PLUGIN,), [], _filtered, "filterdevices.index", stated=False),
    Key("migstrategy", (), "none", lambda value: "operatingmode decides", "migstrategy", stated=False),
)


def _turned(on: str, off: str) -> Callable[[Any], str]:
    return lambda value: on if value else off


def _policy(value: Any) -> str:
    words = {"binpack": "cards that are in use are filled first", "spread": "cards that are free are used first"}
    return words.get(value, "cards are taken as they come")


def _weight(value: Any) -> str:
    return f"the policy ranks nodes with weight {value}" if value else "the policy chooses cards, but ranks no nodes"


SCHEDULER_KEYS: Final = (
    Key(
        "deviceshare.VGPUEnable",
        (SCHEDULER,),
        False,
        _turned("vGPU pods are given cards", "vGPU pods are given no cards"),
    ),
    Key("deviceshare.GPUSharingEnable", (SCHEDULER,), False, _turned("the old sharing is on", "off")),
    Key("deviceshare.GPUNumberEnable", (SCHEDULER,), False, _turned("the old counting is on", "off")),
    Key(
        "deviceshare.NodeLockEnable",
        (SCHEDULER,),
        False,
        _turned("one vGPU pod is bound to a node at a time", "pods are bound side by side"),
        reloads=True,
    ),
    Key("deviceshare.SchedulePolicy", (SCHEDULER,), "", _policy, reloads=True),
    Key("deviceshare.ScheduleWeight", (SCHEDULER,), 0, _weight, reloads=True),
    Key(
        "deviceshare.KnownGeometriesCMName",
        (SCHEDULER,),
        "volcano-vgpu-device-config",
        lambda value: f"the device config is read from ConfigMap {value}",
    ),
    Key(
        "deviceshare.KnownGeometriesCMNamespace",
        (SCHEDULER,),
        "kube-system",
        lambda value: f"the device config is read from namespace {value}",
    ),
)
"""Arguments of deviceshare. What is not here the scheduler reloads by itself."""

OTHER: Final = Key("", (SCHEDULER,), reloads=True)
"""The rest of the scheduler's configuration."""
KEYS: Final = {key.name: key for key in (*DEVICE_KEYS, *NODE_KEYS, *SCHEDULER_KEYS)}
