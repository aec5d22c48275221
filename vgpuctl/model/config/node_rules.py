"""The rules of the node config, as a table."""

from __future__ import annotations

from collections.abc import Iterator

from vgpuctl.model.config import mig
from vgpuctl.model.config.node import NodeConfig
from vgpuctl.model.config.shape import MOST_GUESSES, nearest, reported
from vgpuctl.model.context import Context
from vgpuctl.model.document import Position
from vgpuctl.model.finding import Severity
from vgpuctl.model.rule import Hit, Rule

MODES = ("hami-core", "mig")


def _mode(config: NodeConfig, context: Context) -> Iterator[Hit]:
    for mode in config.fields("operatingmode"):
        if mode.value and mode.value not in MODES:
            right = nearest(mode.value, MODES) or "hami-core"
            message = f"{mode.value!r} is no mode: the scheduler treats the node as hami-core"
            yield Hit(mode.node.position, mode.path, message, f'"operatingmode": "{right}" (hami-core or mig)')


def _mig(config: NodeConfig, context: Context) -> Iterator[Hit]:
    cards = {node.name: node.model for node in context.nodes or ()}
    for entry in config.entries:
        mode, name = entry.value.fields.get("operatingmode"), entry.value.get("name")
        if mode and mode.value == "mig" and name in cards and mig.has_no_mig(cards[name]):
            message = f"{name} has {cards[name]}, a card without MIG"
            yield Hit(mode.node.position, mode.path, message, '"operatingmode": "hami-core"')


def _range(config: NodeConfig, context: Context) -> Iterator[Hit]:
    yield from config.loader.hits.get("number-range", ())
    for name in ("devicecorescaling", "devicememoryscaling"):
        for scaling in config.fields(name):
            if scaling.value is not None and scaling.value < 0:
                yield Hit(scaling.node.position, scaling.path, "only values above 0 apply", f'"{name}": 1')
    for name in ("devicesplitcount", "devicecorescaling"):
        for number in config.fields(name):
            if number.value == 0:
                message = "0 does not apply: the value of the device config stays"
                yield Hit(number.node.position, number.path, message, "remove it", Severity.INFO)


def _core_over(config: NodeConfig, context: Context) -> Iterator[Hit]:
    for scaling in config.fields("devicecorescaling"):
        if scaling.value is not None and scaling.value > 1:
            message = f"the node offers {scaling.value * 100:g} cores a card, but the scheduler never goes above 100"
            yield Hit(scaling.node.position, scaling.path, message, '"devicecorescaling": 1')


def _dead(config: NodeConfig, context: Context) -> Iterator[Hit]:
    for scaling in config.fields("devicememoryscaling"):
        if scaling.value not in (None, 0, 1):
            message = "devicememoryscaling is read and used nowhere: memory is not oversubscribed"
            yield Hit(scaling.place, scaling.path, message, "remove it")
    for strategy in config.fields("migstrategy"):
        if strategy.value not in (None, "", "none"):
            message = "migstrategy is decoded and never read; operatingmode decides"
            yield Hit(strategy.place, strategy.path, message, "remove it")


def _twice(config: NodeConfig, context: Context) -> Iterator[Hit]:
    yield from config.loader.hits.get("duplicate-key", ())
    seen: dict[str, Position] = {}
    for name in config.fields("name"):
        if name.value in seen:
            message = f"{name.value} was there on line {seen[name.value].line}: both entries apply, in this order"
            yield Hit(name.node.position, name.path, message, "keep one entry per node")
        elif name.value:
            seen[name.value] = name.node.position


def _nameless(config: NodeConfig, context: Context) -> Iterator[Hit]:
    for entry in config.entries:
        if entry.value.absent("name") or entry.value.zero("name"):
            yield Hit(entry.place, entry.path, "an entry without name never applies", 'add "name": the node')


def _unknown(config: NodeConfig, context: Context) -> Iterator[Hit]:
    if context.nodes is None or not context.names_known:
        return
    names = dict.fromkeys(node.name for node in context.nodes)
    guesses = 0
    for name in config.fields("name"):
        if name.value and name.value not in names:
            guesses += 1
            near = nearest(name.value, names) if guesses <= MOST_GUESSES else ""
            remedy = f"did you mean {near}?" if near else "use a real node's name, or remove the entry"
            yield Hit(
                name.node.position, name.path, f"the pool has no node {name.value}: the entry never applies", remedy
            )


E, W = Severity.ERROR, Severity.WARNING
RULES: tuple[Rule[NodeConfig], ...] = (
    reported("foreign-format", E, "the file is decoded as JSON of one form only"),
    reported("wrong-nesting", E, "an entry outside nodeconfig is decoded and ignored"),
    reported("key-misspelt", E, "an unknown key is dropped without a word"),
    reported("type-mismatch", E, "one value of the wrong type and the file is ignored on every node"),
    reported("string-for-number", E, "a quoted number and the file is ignored on every node"),
    reported("unrendered-template", E, "a template marker is no value"),
    reported("per-node-factor", E, "the factor is one value for the pool"),
    Rule("number-range", E, "counts are whole numbers above 0", _range),
    Rule("mode-value", E, "only hami-core and mig are known, in small letters", _mode),
    Rule("mig-unsupported", E, "a card without MIG cannot be cut (needs the nodes)", _mig),
    Rule("duplicate-key", E, "a key or a node that is there twice", _twice),
    Rule("name-missing", E, "an entry applies by its name", _nameless),
    Rule("core-scaling-over", W, "the scheduler stops at 100 cores a card", _core_over),
    Rule("dead-key", W, "some keys are read and used nowhere", _dead),
    Rule("node-unknown", W, "an entry for a node that is not there (needs the nodes)", _unknown),
)
