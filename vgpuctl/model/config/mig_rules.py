"""Rules for knownMigGeometries in the device config."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from vgpuctl.model.config import mig
from vgpuctl.model.config.device import INSTANCE, DeviceConfig
from vgpuctl.model.config.shape import Loaded, Section, nearest
from vgpuctl.model.context import Context
from vgpuctl.model.rule import Hit


def shape(config: DeviceConfig, context: Context) -> Iterator[Hit]:
    seen: set[str] = set()
    for hit in config.loader.hits.get("mig-shape", ()):
        level, _, key = hit.path.rpartition(".")
        parent = hit.path.partition(".allowedGeometries")[0]
        if parent in seen:
            continue
        seen.add(parent)
        if key in INSTANCE.fields and level.endswith("]"):
            message = f"{key} stands in the group itself: the loaders read a group without slices"
            yield replace(hit, message=message, remedy="- group: group1, below it geometries: with name, memory, count")
        else:
            yield hit
    for entry in config.nvidia.sections("knownMigGeometries") if config.nvidia else ():
        if not any(hit.path.startswith(entry.path) for hit in config.loader.hits.get("mig-shape", ())):
            yield from _empty_shapes(entry)


def _empty_shapes(entry: Loaded) -> Iterator[Hit]:
    model: Section = entry.value
    if model.absent("models") or model.zero("models"):
        yield Hit(entry.place, entry.path, "no models: the entry never applies to a card", "add models: [...]")
    if model.absent("allowedGeometries") or model.zero("allowedGeometries"):
        yield Hit(entry.place, entry.path, "no allowedGeometries: the card has no slices", "add allowedGeometries")
    for group in model.sections("allowedGeometries"):
        fields: Section = group.value
        for name in ("group", "geometries"):
            if fields.absent(name) or fields.zero(name):
                message = f"a geometry without {name} " + ("cannot be named" if name == "group" else "has no slices")
                yield Hit(group.place, group.path, message, f"add {name}")
        for instance in fields.sections("geometries"):
            missing = [name for name in INSTANCE.fields if instance.value.absent(name)]
            if missing:
                message = f"a slice without {' and '.join(missing)} cannot be used"
                yield Hit(instance.place, instance.path, message, "give name, memory (MiB) and count")


def group_name(config: DeviceConfig, context: Context) -> Iterator[Hit]:
    for entry in config.nvidia.sections("knownMigGeometries") if config.nvidia else ():
        seen: set[str] = set()
        for group in entry.value.sections("allowedGeometries"):
            name = group.value.get("group")
            if not name:
                continue
            place = group.value.fields["group"].place
            path = group.value.fields["group"].path
            if any(char in "-[],:; \t" for char in name):
                better = "".join(char for char in name if char.isalnum() or char == "_")
                message = f"{name!r} becomes part of device ids, which are split at dashes and brackets"
                yield Hit(place, path, message, f"use letters, digits and underscore only: {better}")
            elif name in seen:
                yield Hit(place, path, f"group {name} is there twice: only the first can be found again", "rename it")
            seen.add(name)


def memory_unit(config: DeviceConfig, context: Context) -> Iterator[Hit]:
    yield from config.loader.hits.get("mig-unit", ())
    for hit in list(config.loader.hits.get("number-range", ())):
        if hit.path.endswith("].memory"):
            yield Hit(hit.position, hit.path, "memory is in MiB; so large a number drops the whole file", "write MiB")
    for instance, profiles in instances(config):
        memory = instance.value.get("memory")
        if memory and profiles and memory * 64 < min(profile.memory for profile in profiles):
            position = instance.value.fields["memory"].node.position
            right = profiles[0].memory
            message = f"{memory} is taken as MiB: the slice would have {memory} MiB"
            yield Hit(position, instance.value.fields["memory"].path, message, f"memory: {right}")


def instances(config: DeviceConfig) -> Iterator[tuple[Loaded, list[mig.Profile]]]:
    """Each slice of the table, with the profiles that its name may mean on the entry's models."""
    for entry in config.nvidia.sections("knownMigGeometries") if config.nvidia else ():
        families = _families(entry)
        for group in entry.value.sections("allowedGeometries"):
            for instance in group.value.sections("geometries"):
                name = instance.value.get("name") or ""
                found = [profile for family in families if (profile := family.profile(name))]
                yield instance, found


def _families(entry: Loaded) -> list[mig.Family]:
    models = [item.value for item in entry.value.get("models") or () if not item.bad and item.value]
    return list({family.card: family for model in models for family in mig.families(model)}.values())


def template(config: DeviceConfig, context: Context) -> Iterator[Hit]:
    for entry in config.nvidia.sections("knownMigGeometries") if config.nvidia else ():
        for model in entry.value.get("models") or ():
            if model.value and mig.has_no_mig(model.value):
                message = f"{model.value} has no MIG: the entry can never be used"
                yield Hit(model.node.position, model.path, message, "remove it, or write a card with MIG")
        families = _families(entry)
        if not families:
            continue
        for group in entry.value.sections("allowedGeometries"):
            yield from _group(group, families)


def _group(group: Loaded, families: list[mig.Family]) -> Iterator[Hit]:
    taken = 0
    for instance in group.value.sections("geometries"):
        fields: Section = instance.value
        name = fields.get("name")
        if not name:
            continue
        found = [profile for family in families if (profile := family.profile(name))]
        position = fields.fields["name"].node.position
        if not found:
            right = nearest(name, [profile.name for family in families for profile in family.profiles])
            remedy = f"name: {right}" if right else f"one of {', '.join(p.name for f in families for p in f.profiles)}"
            message = f"{families[0].card} has no profile {name}: nvidia-mig-parted fails on it and the plugin exits"
            yield Hit(position, fields.fields["name"].path, message, f"{remedy} (compare with nvidia-smi mig -lgip)")
            continue
        memory, count = fields.get("memory"), fields.get("count")
        most = max(profile.most for profile in found)
        if memory and memory > most:
            real = max(profile.memory for profile in found)
            message = f"the real slice has {real} MiB: requests above that are accepted and then run out of memory"
            yield Hit(fields.fields["memory"].node.position, fields.fields["memory"].path, message, f"memory: {real}")
        fits = max(profile.count for profile in found)
        if count and count > fits:
            message = f"a card holds {fits} of {name}, not {count}"
            yield Hit(fields.fields["count"].node.position, fields.fields["count"].path, message, f"count: {fits}")
        elif count and count > 0:
            taken += count * found[0].slices
            if taken > max(family.slices for family in families):
                message = f"the group takes {taken} compute slices, a card has {max(f.slices for f in families)}"
                where = fields.fields["count"]
                yield Hit(where.node.position, where.path, message, "fewer slices, or another group")


def unmatched(config: DeviceConfig, context: Context) -> Iterator[Hit]:
    if config.nvidia is None or config.loader.hits:
        return
    known = [
        model.value
        for entry in config.nvidia.sections("knownMigGeometries")
        for model in entry.value.get("models") or ()
        if model.value
    ]
    table = config.nvidia.fields.get("knownMigGeometries")
    for node in context.nodes or ():
        if node.mode == "mig" and not any(model in node.card_type for model in known):
            place = table.place if table else config.place
            message = (
                f"{node.name} is in MIG mode, but {node.model} contains none of the models: it falls back to hami-core"
            )
            part = node.model.removeprefix("NVIDIA").strip(" -")
            yield Hit(place, "nvidia.knownMigGeometries", message, f'add "{part}" to the models')
