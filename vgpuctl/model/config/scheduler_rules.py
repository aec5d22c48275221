"""The rules of the scheduler configuration, as a table."""

from __future__ import annotations

import re
from collections.abc import Iterator

from vgpuctl.model import configmaps
from vgpuctl.model.config.scheduler import (
    ACTIONS,
    ARGUMENTS,
    DEVICESHARE,
    PLUGINS,
    REJECTED,
    Plugin,
    SchedulerConfig,
    value_of,
)
from vgpuctl.model.config.shape import MOST_GUESSES, nearest
from vgpuctl.model.context import Context
from vgpuctl.model.document import Entry, Mapping, Position, Scalar, Sequence
from vgpuctl.model.finding import Severity
from vgpuctl.model.rule import Hit, Rule
from vgpuctl.model.yaml_scalar import is_octal

POLICIES = ("binpack", "spread")
_TRUE = {"1", "t", "T", "TRUE", "true", "True"}
_FALSE = {"0", "f", "F", "FALSE", "false", "False"}
_OLD = ("predicate.VGPUEnable", "predicate.GPUSharingEnable", "predicate.GPUNumberEnable")


def reported(rule: str, severity: Severity, why: str) -> Rule[SchedulerConfig]:
    """A rule that the loader itself finds broken; the same mistake in several items of a list counts once."""
    return Rule(rule, severity, why, lambda config, context: _once(config.loader.hits.get(rule, ()), rule))


def _once(hits: list[Hit] | tuple[Hit, ...], rule: str) -> Iterator[Hit]:
    seen: set[str] = set()
    for hit in hits:
        level = re.sub(r"\[\d+\]", "[]", hit.path.rpartition(".")[0]) if rule == "wrong-nesting" else hit.path
        if level not in seen:
            seen.add(level)
            yield hit


def truth(entry: Entry | None) -> bool | None:
    """The boolean that deviceshare makes of an argument; None when it makes none of it."""
    value = value_of(entry.value) if entry else None
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return True if value in _TRUE else False if value in _FALSE else None
    return None


def on(config: SchedulerConfig, name: str) -> Entry | None:
    """The argument when it is switched on in some deviceshare entry; the last one that says anything counts."""
    said = [entry for plugin in config.deviceshare if (entry := plugin.argument(name)) and truth(entry) is not None]
    return said[-1] if said and truth(said[-1]) else None


def _bools(config: SchedulerConfig, context: Context) -> Iterator[Hit]:
    for plugin, entry in config.arguments("bool"):
        if truth(entry) is None:
            text = entry.value.text if isinstance(entry.value, Scalar) else "this"
            message = f"{text or 'an empty value'!r} is no boolean here: a warning in the log, and the switch stays off"
            yield Hit(entry.value.position, plugin.path_of(entry.name), message, f"{entry.name}: true")


def _strings(config: SchedulerConfig, context: Context) -> Iterator[Hit]:
    yield from config.loader.hits.get("string-for-number", ())
    for plugin, entry in config.arguments("int"):
        value = value_of(entry.value)
        if isinstance(value, str):
            message = f"{value!r} is a string, which is not converted: {entry.name} stays 0"
            yield Hit(entry.value.position, plugin.path_of(entry.name), message, f"{entry.name}: {value.strip() or 10}")


def _ranges(config: SchedulerConfig, context: Context) -> Iterator[Hit]:
    yield from config.loader.hits.get("number-range", ())
    for plugin, entry in config.arguments("int"):
        value = value_of(entry.value)
        if isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool) and value < 0):
            message = f"{value} is no whole number from 0 on: {entry.name} stays 0 or ranks the wrong way"
            yield Hit(entry.value.position, plugin.path_of(entry.name), message, f"{entry.name}: 10")


def _octals(config: SchedulerConfig, context: Context) -> Iterator[Hit]:
    yield from config.loader.hits.get("yaml-octal", ())
    for plugin, entry in config.arguments("int"):
        if isinstance(entry.value, Scalar) and not entry.value.quoted and is_octal(entry.value.text):
            message = f"{entry.value.text} has a leading zero: it is read as octal, {entry.value.value}"
            yield Hit(entry.value.position, plugin.path_of(entry.name), message, f"write {int(entry.value.text)}")


def _types(config: SchedulerConfig, context: Context) -> Iterator[Hit]:
    yield from config.loader.hits.get("type-mismatch", ())
    for plugin, entry in config.arguments("int"):
        value = value_of(entry.value)
        if value is None or isinstance(value, (bool, Mapping, Sequence)):
            message = f"{entry.name} wants a whole number: it stays 0"
            yield Hit(entry.value.position, plugin.path_of(entry.name), message, f"{entry.name}: 10")
    for plugin, entry in config.arguments("text"):
        if entry.name != "deviceshare.SchedulePolicy" and not isinstance(value_of(entry.value), str):
            message = f"{entry.name} wants a string: the built-in value is used"
            yield Hit(entry.value.position, plugin.path_of(entry.name), message, "write it in quotes")


def _policy(config: SchedulerConfig, context: Context) -> Iterator[Hit]:
    for plugin, entry in _policies(config):
        value = value_of(entry.value)
        if value not in (*POLICIES, ""):
            right = nearest(str(value), POLICIES) if isinstance(value, str) else ""
            text = entry.value.text if isinstance(entry.value, Scalar) else "this"
            message = f"{text!r} is no policy: the cards are then taken from the highest index down"
            remedy = f"deviceshare.SchedulePolicy: {right or 'binpack'} (binpack or spread)"
            yield Hit(entry.value.position, plugin.path_of(entry.name), message, remedy)


def _policies(config: SchedulerConfig) -> Iterator[tuple[Plugin, Entry]]:
    for plugin, entry in config.arguments("text"):
        if entry.name == "deviceshare.SchedulePolicy":
            yield plugin, entry


def _weightless(config: SchedulerConfig, context: Context) -> Iterator[Hit]:
    name = "deviceshare.ScheduleWeight"
    for plugin, entry in _policies(config):
        weight = plugin.argument(name)
        if (
            value_of(entry.value) in POLICIES
            and name not in plugin.lost
            and (weight is None or value_of(weight.value) == 0)
        ):
            message = "the policy picks the card inside a node only: without a weight it ranks no nodes"
            yield Hit(entry.position, plugin.path_of(entry.name), message, "add deviceshare.ScheduleWeight: 10")


def _exclusive(config: SchedulerConfig, context: Context) -> Iterator[Hit]:
    sharing, number = on(config, "deviceshare.GPUSharingEnable"), on(config, "deviceshare.GPUNumberEnable")
    vgpu = on(config, "deviceshare.VGPUEnable")
    old = [entry for entry in (sharing, number) if entry]
    if old and (vgpu or len(old) == 2):
        entry = old[-1] if not vgpu else old[0]
        other = "deviceshare.VGPUEnable" if vgpu else "deviceshare.GPUSharingEnable"
        message = f"{entry.name} and {other} are both on: the scheduler exits at its first session"
        yield Hit(entry.position, entry.name, message, "keep only deviceshare.VGPUEnable: true")
    for plugin in config.named("drf"):
        hierarchy = plugin.fields.fields.get("enableHierarchy")
        if hierarchy and hierarchy.value is True and any(p.tier == plugin.tier for p in config.named("proportion")):
            message = f"drf with a hierarchy and proportion stand in one tier: {REJECTED}"
            yield Hit(hierarchy.place, hierarchy.path, message, "use capacity, or remove enableHierarchy")


def _rules(config: SchedulerConfig, context: Context) -> Iterator[Hit]:
    for plugin, entry in config.arguments("rules"):
        path = plugin.path_of(entry.name)
        if not isinstance(entry.value, Sequence):
            message = "the rules are a list of label mappings; anything else means no rule"
            yield Hit(entry.value.position, path, message, "- label: value")
            continue
        for index, item in enumerate(entry.value.items):
            if not isinstance(item, Mapping) or not item.entries:
                yield Hit(
                    entry.value.mark(index), path, "a rule is a mapping of labels; this one is dropped", "label: value"
                )
                continue
            for label in item:
                if not isinstance(value_of(label.value), str):
                    text = label.value.text if isinstance(label.value, Scalar) else "value"
                    message = f"{label.name} has no string: it is dropped, and the rule matches more pods than it says"
                    yield Hit(label.value.position, path, message, f'{label.name}: "{text}"')


def _sources(config: SchedulerConfig, context: Context) -> Iterator[Hit]:
    for plugin, entry in config.arguments("text"):
        value = value_of(entry.value)
        if not isinstance(value, str):
            continue
        if entry.name.endswith("CMName") and value != configmaps.DEVICE:
            message = f"the plugin reads {configmaps.DEVICE}: scheduler and plugin work from different files"
            yield Hit(entry.position, plugin.path_of(entry.name), message, f"{entry.name}: {configmaps.DEVICE}")
        elif entry.name.endswith("CMNamespace") and value not in configmaps.PLUGIN_NAMESPACES:
            message = (
                f"the plugin looks in {' and '.join(configmaps.PLUGIN_NAMESPACES)} only: they work from different files"
            )
            yield Hit(entry.position, plugin.path_of(entry.name), message, f"{entry.name}: kube-system")


def _deprecated(config: SchedulerConfig, context: Context) -> Iterator[Hit]:
    if context.before("1.9.0-alpha.0"):
        return
    vgpu = on(config, "deviceshare.VGPUEnable")
    for plugin in config.plugins:
        for entry in plugin.arguments or ():
            if entry.name in _OLD and truth(entry):
                message = f"{entry.name} is read by Volcano 1.8 and older only" + ("" if vgpu else ": vGPU is off")
                remedy = (
                    "remove it" if vgpu else "plugin deviceshare with deviceshare.VGPUEnable: true in its arguments"
                )
                severity = Severity.WARNING if vgpu else None
                yield Hit(entry.position, plugin.path_of(entry.name), message, remedy, severity)


def _features(config: SchedulerConfig, context: Context) -> Iterator[Hit]:
    for plugin in config.deviceshare:
        if context.before("1.9.0-alpha.0"):
            yield Hit(
                plugin.place, plugin.path, f"Volcano {context.volcano} has no deviceshare", "use Volcano 1.9 or newer"
            )
        for entry in plugin.arguments or ():
            argument = ARGUMENTS.get(entry.name)
            if argument and argument.since != "1.9.0" and context.before(f"{argument.since}-alpha.0"):
                message = f"Volcano {context.volcano} does not read {entry.name}; {argument.since} and newer do"
                yield Hit(entry.position, plugin.path_of(entry.name), message, "remove it, or upgrade Volcano")
            if entry.name == "deviceshare.SchedulePolicy" and context.before("1.15.0-alpha.0"):
                message = (
                    f"in Volcano {context.volcano} the policy does not pick the card; it ranks nodes by its weight only"
                )
                yield Hit(entry.position, plugin.path_of(entry.name), message, "", Severity.INFO)


def _unknown_action(config: SchedulerConfig, context: Context) -> Iterator[Hit]:
    if config.root is None:
        return
    if config.root.absent("actions") or config.root.zero("actions"):
        yield Hit(config.place, "actions", f"no actions: {REJECTED}", f'actions: "{", ".join(ACTIONS[:3])}"')
        return
    actions = config.root.get("actions")
    words = [word.strip() for word in actions.split(",")] if actions else []
    wrong = [word for word in words if word not in ACTIONS]
    if wrong:
        position = config.root.fields["actions"].node.position
        right = [nearest(word, ACTIONS) or word for word in words if word in ACTIONS or nearest(word, ACTIONS)]
        name = f"{wrong[0]!r} is no action" if wrong[0] else "there is an empty action (a comma too many)"
        yield Hit(position, "actions", f"{name}: {REJECTED}", ", ".join(dict.fromkeys(right)))


def _unknown_plugin(config: SchedulerConfig, context: Context) -> Iterator[Hit]:
    guesses = 0
    for plugin in config.plugins:
        if plugin.name and plugin.name not in PLUGINS:
            guesses += 1
            near = nearest(plugin.name, PLUGINS) if guesses <= MOST_GUESSES else ""
            message = f"{plugin.name} is not built into the scheduler: ignored, with one error line per session"
            remedy = f"did you mean {near}?" if near else "remove it, or load it with --plugins-dir"
            severity = Severity.ERROR if near in (DEVICESHARE, "predicates") else None
            yield Hit(plugin.place, plugin.path, message, remedy, severity)
    for plugin in config.plugins:
        if not plugin.name and plugin.fields.absent("name"):
            yield Hit(plugin.place, plugin.path, "a plugin without a name is ignored", "add name:")


def _twice(config: SchedulerConfig, context: Context) -> Iterator[Hit]:
    seen: dict[str, Position] = {}
    for plugin in config.plugins:
        if plugin.name in seen:
            message = (
                f"{plugin.name} was there on line {seen[plugin.name].line}: this entry replaces it, arguments and all"
            )
            severity = None if plugin.name == DEVICESHARE else Severity.WARNING
            yield Hit(plugin.place, plugin.path, message, "keep one entry", severity)
        elif plugin.name:
            seen[plugin.name] = plugin.place


def _no_predicates(config: SchedulerConfig, context: Context) -> Iterator[Hit]:
    if config.deviceshare and not config.meant("predicates"):
        plugin = config.deviceshare[0]
        message = "devices are given out inside the predicates plugin: without it pods are bound without a device"
        yield Hit(plugin.place, plugin.path, message, "add - name: predicates")


def _predicate_off(config: SchedulerConfig, context: Context) -> Iterator[Hit]:
    for plugin in (*config.deviceshare, *(config.named("predicates") if config.deviceshare else ())):
        option = plugin.fields.fields.get("enablePredicate")
        if option and option.value is False:
            message = f"{plugin.name} no longer filters nodes: pods reach nodes where nothing fits"
            yield Hit(option.place, option.path, message, "remove enablePredicate: false")


def _core(config: SchedulerConfig, context: Context) -> Iterator[Hit]:
    if not config.plugins or config.loader.hits.get("wrong-nesting"):
        return
    missing = [name for name in ("gang",) if not config.meant(name)]
    if not config.meant("proportion") and not config.meant("capacity"):
        missing.append("proportion or capacity")
    if missing:
        missing += [name for name in ("priority", "nodeorder") if not config.meant(name)]
        message = f"{', '.join(missing)} missing: no gang scheduling or no queue limits"
        yield Hit(config.tiers[0].place, "tiers", message, "start from the installed list and add deviceshare")


def _off(config: SchedulerConfig, context: Context) -> Iterator[Hit]:
    """vGPU is not switched on; said only when no other error may be the reason."""
    name = "deviceshare.VGPUEnable"
    if config.root is None or on(config, name) or context.before("1.9.0-alpha.0"):
        return
    if on(config, "deviceshare.GPUSharingEnable") or on(config, "deviceshare.GPUNumberEnable"):
        return
    if not config.deviceshare:
        tiers = config.root.fields.get("tiers")
        place = tiers.place if tiers else config.place
        yield Hit(
            place,
            "tiers",
            "no deviceshare plugin: Volcano handles no vGPU",
            f"add - name: deviceshare with {name}: true",
        )
        return
    plugin = config.deviceshare[-1]
    entry = plugin.argument(name)
    if entry and plugin.arguments and sum(e.name == name for e in plugin.arguments.entries) > 1:
        return  # a duplicate key, which has been said
    if entry:
        yield Hit(entry.position, plugin.path_of(name), "vGPU is switched off", f"{name}: true", Severity.WARNING)
    elif name not in plugin.lost:
        yield Hit(plugin.place, plugin.path, f"deviceshare without {name}: vGPU stays off", f"arguments: {name}: true")


E, W = Severity.ERROR, Severity.WARNING
RULES: tuple[Rule[SchedulerConfig], ...] = (
    reported("foreign-format", E, "another file in its place is no configuration"),
    reported("wrong-nesting", E, "an option at the wrong level is ignored"),
    reported("key-misspelt", E, "an unknown argument is ignored without a word"),
    reported("key-case", E, "arguments are looked up exactly"),
    reported("string-for-bool", E, "a quoted boolean option rejects the whole configuration"),
    reported("unrendered-template", E, "a template marker is no value"),
    Rule("type-mismatch", E, "a value of the wrong type rejects the whole configuration", _types),
    Rule("string-for-number", E, "a quoted weight stays 0", _strings),
    Rule("number-range", E, "a weight is a whole number", _ranges),
    Rule("yaml-octal", E, "a leading zero makes a number octal", _octals),
    Rule("bool-value", E, "only some words are booleans", _bools),
    Rule("policy-value", E, "only binpack and spread are policies", _policy),
    Rule("exclusive-options", E, "some switches cannot be on together", _exclusive),
    Rule("exclusive-rule-value", E, "label values are strings", _rules),
    Rule("config-source-mismatch", E, "scheduler and plugin must read the same device config", _sources),
    Rule("deprecated-key", E, "the switch of Volcano 1.8 is read no more", _deprecated),
    Rule("version-feature", W, "an older Volcano does not read it (needs its version)", _features),
    Rule("unknown-action", E, "an unknown action rejects the whole configuration", _unknown_action),
    Rule("unknown-plugin", W, "a plugin that is not built in is ignored", _unknown_plugin),
    Rule("duplicate-plugin", E, "a second entry replaces the first", _twice),
    Rule("predicates-missing", E, "deviceshare works through the predicates plugin", _no_predicates),
    Rule("predicate-off", E, "without its filter every node looks right", _predicate_off),
    Rule("core-plugins-missing", W, "gang and queue limits come from plugins of their own", _core),
    Rule("policy-without-weight", W, "a policy without weight ranks no nodes", _weightless),
    Rule("vgpu-off", E, "without deviceshare.VGPUEnable there is no vGPU", _off),
)
