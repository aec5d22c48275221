"""Configurations for a profile and the pool's cards, each value with the reason for it.

What is written breaks no rule of `validate`, for every profile and every set of cards.
"""

from __future__ import annotations

import functools
import json
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from vgpuctl import resources
from vgpuctl.model import configmaps
from vgpuctl.model.config import mig
from vgpuctl.model.config.factor import SAFE_ENTRIES, entries, smallest_factor
from vgpuctl.model.config.kind import DEVICE, KINDS, NODE, SCHEDULER, Kind
from vgpuctl.model.context import Context, PoolNode
from vgpuctl.model.output import Output

ASSUMED = PoolNode("any node", 8, "B200", 180 * 1024)
"""What a pool is taken for whose cards are not known: the largest node that is common today."""
_ENOUGH = f"enough for {ASSUMED.cards} cards of {ASSUMED.memory // 1024} GiB a node: check it for larger nodes"
_WIDE = 110


class Profile(msgspec.Struct, frozen=True):
    """A kind of work, from templates/profiles.yaml. split: vGPUs a card."""

    about: str
    split: int
    split_why: str
    policy: str
    policy_why: str
    weight: int
    weight_why: str
    plugins: list[str]


class GeneratedConfig(Output, frozen=True, kw_only=True):
    """What `config generate` writes. factor: MiB per memory unit. notes: what to check. items: ConfigMaps."""

    profile: str
    factor: int
    notes: list[str] = []
    items: list[dict[str, Any]] = []


@dataclass(frozen=True)
class Plan:
    """What the values follow from. nodes: with their cards; empty when unknown. named: the nodes' names are those of
    the cluster. factor: MiB per unit; factor_why: one sentence."""

    name: str
    profile: Profile
    context: Context
    nodes: tuple[PoolNode, ...]
    named: bool
    factor: int
    factor_why: str


@functools.cache
def profiles() -> dict[str, Profile]:
    """The profiles by name."""
    (table,) = resources.documents("templates/profiles.yaml")
    return msgspec.convert(table, dict[str, Profile])


def plan(name: str, context: Context, *, named: bool) -> Plan:
    """The values for a profile. context: what is known of the pool; a factor that works is kept."""
    nodes = context.nodes or ()
    needed = smallest_factor(replace(context, nodes=nodes or (ASSUMED,))) or 1
    factor, why = needed, _factor_why(nodes, needed)
    if context.factor and context.factor >= needed:
        factor = context.factor
        why = f"as the pool has it ({needed} would do): another one changes the meaning of every request, quota and cap"
    return Plan(name, profiles()[name], context, nodes, named, factor, why)


def _factor_why(nodes: tuple[PoolNode, ...], factor: int) -> str:
    limit = f"a node may announce {SAFE_ENTRIES} device entries, one per unit"
    if not nodes:
        return f"{limit}; {_ENOUGH}"
    sums: dict[str, int] = {}
    for node in nodes:
        sums[node.name] = sums.get(node.name, 0) + entries(node.memory, factor, node.cards)
    name = max(sums, key=lambda key: sums[key])
    return f"{limit}; {name} has {sums[name]} of them"


def generated(plan: Plan, kinds: tuple[Kind, ...], source: str = "") -> GeneratedConfig:
    """The ConfigMaps as objects."""
    notes = [] if plan.nodes else [f"no card is known: gpuMemoryFactor {plan.factor} is {_ENOUGH}; or give --gpus"]
    items = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": _metadata(kind, plan),
            "data": {kind.data_key: _text(kind, plan)},
        }
        for kind in kinds
    ]
    return GeneratedConfig(source=source, profile=plan.name, factor=plan.factor, notes=notes, items=items)


def text(plan: Plan, kinds: tuple[Kind, ...]) -> str:
    """The ConfigMaps as YAML for `kubectl apply`, with comments."""
    return "---\n".join(_config_map(kind, plan) for kind in kinds)


def kinds_for(name: str) -> tuple[Kind, ...]:
    """The kinds that `--for` names: one, or `all`."""
    return tuple(KINDS.values()) if name == "all" else (KINDS[name],)


def _metadata(kind: Kind, plan: Plan) -> dict[str, str]:
    name = kind.configmap(plan.context) or configmaps.SCHEDULER
    return {"name": name, "namespace": (kind.namespaces(plan.context) or (configmaps.SCHEDULER_NAMESPACE,))[0]}


def _config_map(kind: Kind, plan: Plan) -> str:
    metadata = _metadata(kind, plan)
    lines = [
        *(row for line in _HEADS[kind.name](plan) for row in _comment(line)),
        "apiVersion: v1",
        "kind: ConfigMap",
        "metadata:",
        *(f"  {key}: {value}" for key, value in metadata.items()),
        "data:",
        f"  {kind.data_key}: |",
        *(f"    {line}" if line else "" for line in _text(kind, plan).splitlines()),
    ]
    return "\n".join(lines) + "\n"


def _text(kind: Kind, plan: Plan) -> str:
    return "\n".join(_TEXTS[kind.name](plan)) + "\n"


def _comment(text: str, indent: str = "") -> list[str]:
    """A reason as comment lines; outside text in it cannot end the comment."""
    plain = "".join(char if char.isprintable() else " " for char in text)
    return textwrap.wrap(plain, _WIDE, initial_indent=f"{indent}# ", subsequent_indent=f"{indent}# ")


def _device_head(plan: Plan) -> Iterator[str]:
    yield f"Profile {plan.name}: {plan.profile.about}."
    yield "The plugin and the scheduler read it once: restart both after a change."


def _device(plan: Plan) -> Iterator[str]:
    yield "nvidia:"
    yield "  # names that Volcano looks for; newer versions know no others"
    yield "  resourceCountName: volcano.sh/vgpu-number"
    yield "  resourceMemoryName: volcano.sh/vgpu-memory"
    yield "  resourceMemoryPercentageName: volcano.sh/vgpu-memory-percentage"
    yield "  resourceCoreName: volcano.sh/vgpu-cores"
    yield from _comment(f"vGPUs a card: {plan.profile.split_why}", "  ")
    yield f"  deviceSplitCount: {plan.profile.split}"
    yield "  # cores cannot be oversold: the scheduler never goes above 100 a card"
    yield "  deviceCoreScaling: 1"
    yield from _comment(f"MiB per unit of vgpu-memory: {plan.factor_why}", "  ")
    yield f"  gpuMemoryFactor: {plan.factor}"
    yield from _geometries(plan)


def _geometries(plan: Plan) -> Iterator[str]:
    models = list(dict.fromkeys(node.model for node in plan.nodes))
    families = {family.card: family for model in models for family in mig.families(model)}
    if plan.nodes and not families:
        yield "  # none of the cards has MIG"
        yield "  knownMigGeometries: []"
        return
    yield "  # MIG layouts, used only on nodes in MIG mode; a card gets the first entry that its name contains"
    yield "  knownMigGeometries:"
    for family in families.values() or mig.all_families():
        own = [model.removeprefix("NVIDIA").strip(" -") for model in models if family in mig.families(model)]
        names = [name for name in dict.fromkeys([*own, *family.models]) if name.isprintable()]
        estimated = any(not profile.measured for profile in family.profiles)
        yield f"  # {family.card}" + (
            ": some sizes are estimates, compare with nvidia-smi mig -lgip" if estimated else ""
        )
        yield f"  - models: {json.dumps(names)}"
        yield "    allowedGeometries:"
        for number, layout in enumerate(family.layouts, 1):
            yield f"    - group: group{number}"
            yield "      geometries:"
            for name, count in layout.items():
                profile = family.profile(name)
                assert profile is not None
                yield f"      - {{name: {name}, memory: {profile.memory}, count: {count}}}"


def _node_head(plan: Plan) -> Iterator[str]:
    yield "What differs on single nodes; strict JSON, so the reasons stand here."
    yield f"devicesplitcount: {plan.profile.split_why}; a MIG node needs one for each slice."
    if not plan.named:
        yield 'No node is known by name. An entry: {"name": "NODE", "operatingmode": "mig", "devicesplitcount": 7}'
    yield "The plugin reads it when it starts: restart its pod on the node after a change."


def _node(plan: Plan) -> Iterator[str]:
    seen: dict[str, dict[str, Any]] = {}
    for node in plan.nodes if plan.named else ():
        is_mig = node.mode == "mig"
        split = max(plan.profile.split, 7) if is_mig else plan.profile.split
        seen[node.name] = {
            "name": node.name,
            "operatingmode": "mig" if is_mig else "hami-core",
            "devicesplitcount": split,
        }
    if not seen:
        yield '{"nodeconfig": []}'
        return
    yield '{"nodeconfig": ['
    rows = [json.dumps(entry) for entry in seen.values()]
    yield from (f"  {row}{',' if number < len(rows) else ''}" for number, row in enumerate(rows, 1))
    yield "]}"


def _scheduler_head(plan: Plan) -> Iterator[str]:
    yield f"Volcano's whole scheduler configuration for profile {plan.name}: it replaces the one that is there."
    yield "If you have plugins of your own, take over only the deviceshare entry. Restart the scheduler after a change:"
    yield "a reload does not register the device."


def _scheduler(plan: Plan) -> Iterator[str]:
    yield 'actions: "enqueue, allocate, backfill"'
    yield "tiers:"
    yield "- plugins:"
    yield "  - name: priority"
    yield "  - name: gang"
    yield "    enablePreemptable: false"
    yield "  - name: conformance"
    yield "- plugins:"
    yield "  - name: overcommit"
    yield "  - name: drf"
    yield "    enablePreemptable: false"
    yield "  - name: predicates # gives the devices out; deviceshare does nothing without it"
    yield "  - name: deviceshare"
    yield "    arguments:"
    yield "      deviceshare.VGPUEnable: true"
    yield from _comment(plan.profile.policy_why, "      ")
    yield f"      deviceshare.SchedulePolicy: {plan.profile.policy}"
    yield from _comment(plan.profile.weight_why, "      ")
    yield f"      deviceshare.ScheduleWeight: {plan.profile.weight}"
    yield from (f"  - name: {name}" for name in plan.profile.plugins)


_HEADS = {DEVICE.name: _device_head, NODE.name: _node_head, SCHEDULER.name: _scheduler_head}
_TEXTS = {DEVICE.name: _device, NODE.name: _node, SCHEDULER.name: _scheduler}
