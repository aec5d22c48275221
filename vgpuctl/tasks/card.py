"""Takes a card out of service and brings it back: by `filterdevices` of the node config, and a restart of the plugin's
pod on that node alone. Nothing is evicted."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from vgpuctl.model import annotation, pool
from vgpuctl.model.change import Change, Line, Target
from vgpuctl.model.config import filter as filters
from vgpuctl.model.config.filter import Filter, UnfitError
from vgpuctl.model.config.kind import NODE
from vgpuctl.model.config.values import node_values
from vgpuctl.model.facts import Facts
from vgpuctl.model.manifest import near
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.tasks.apply import Conduct, Outcome, Step, Wait
from vgpuctl.tasks.config import apply as config
from vgpuctl.tasks.config.apply import PARTS, Cluster
from vgpuctl.tasks.config.texts import Found

__all__ = ["PARTS", "cordon", "uncordon"]


Card = str | int
"""A UUID, or the index by which NVML knows the card; the plugin hides a card by either. Which UUID an index is cannot
be told from the register: up to v1.12.0 its order is that of a Go map, another one each time."""


@dataclass(frozen=True)
class Node:
    """A node with its cards. cards: those that it registers. out: what its filter names."""

    name: str
    cards: tuple[annotation.RegisteredCard, ...]
    out: Filter

    def told(self) -> str:
        """Its cards in words, those out of service too."""
        cards = [f"{card.uuid} ({card.model})" for card in self.cards if card.uuid not in self.out.uuids]
        cards += [f"{uuid} (out of service)" for uuid in self.out.uuids]
        cards += [f"index {index} (out of service)" for index in self.out.indexes]
        return "; ".join(cards) or "none"

    def find(self, gpu: str) -> Card:
        """What a user named. Raises Problem for what is not there, or is not clear."""
        most = len(self.cards) + len(self.out.uuids) + len(self.out.indexes)
        if gpu.isdecimal() and int(gpu) < most:
            return int(gpu)
        uuids = list(dict.fromkeys((*(card.uuid for card in self.cards), *self.out.uuids)))
        found = [uuid for uuid in uuids if uuid == gpu] or [
            uuid for uuid in uuids if uuid.startswith(gpu) or uuid.removeprefix("GPU-").startswith(gpu)
        ]
        if len(found) == 1:
            return found[0]
        if found:
            told = ", ".join(found)
            raise Problem(f"{gpu} begins several UUIDs of {self.name}", told, "write more of it", Exit.FINDINGS)
        raise Problem(f"{self.name} has no card {gpu}", f"its cards: {self.told()}", exit_code=Exit.FINDINGS)

    def rest(self, card: Card) -> list[str]:
        """What its filter names besides a card; one of them may be that same card."""
        named: list[Card] = [*self.out.uuids, *self.out.indexes]
        return [_named(other) for other in named if other != card]

    def is_out(self, card: Card) -> bool:
        return card in (self.out.uuids if isinstance(card, str) else self.out.indexes)


def cordon(cluster: Cluster, facts: Facts, name: str, gpu: str, conduct: Conduct) -> Outcome:
    """Takes a card out of service. gpu: its index, its UUID, or how that begins.

    Raises Problem for a node or card that is not there, for the last card, and where the node config cannot be edited;
    Missing when a needed part is not known.
    """
    text, node = _read(facts, name)
    card = node.find(gpu)
    if node.is_out(card):
        return _apply(cluster, facts, text, text, node, card, conduct, out=True)
    if len([one for one in node.cards if one.uuid != card and one.uuid not in node.out.uuids]) < _least(card):
        raise Problem(
            f"{_named(card)} is the last card in service on {name}",
            "a plugin without a card registers nothing anew, so the card would stay in use",
            f"take the node out of service: kubectl cordon {name}",
            Exit.FINDINGS,
        )
    return _apply(cluster, facts, text, filters.without(text, name, card), node, card, conduct, out=True)


def uncordon(cluster: Cluster, facts: Facts, name: str, gpu: str, conduct: Conduct) -> Outcome:
    """Brings a card back. gpu: as for `cordon`, and as it was named there. Raises as `cordon`."""
    text, node = _read(facts, name)
    card = node.find(gpu)
    new = filters.again(text, name, card) if node.is_out(card) else text
    return _apply(cluster, facts, text, new, node, card, conduct, out=False)


def _least(card: Card) -> int:
    """Cards that must be left besides: an index may be any of those that are registered."""
    return 1 if isinstance(card, str) else 2


def _named(card: Card) -> str:
    return card if isinstance(card, str) else f"index {card}"


def _read(facts: Facts, name: str) -> tuple[str, Node]:
    """The node config's text, "" when there is none, and the node."""
    known = [node.metadata.name for node in facts.nodes.need()]
    gpus = {gpu.name: gpu for gpu in pool.gpu_nodes(facts) if gpu.cards}
    if name not in gpus:
        meant = near(name, gpus)
        why = "it registers no card" if name in known else f"nodes with cards: {', '.join(gpus) or 'none'}"
        remedy = f"did you mean {meant}?" if meant else ""
        raise Problem(f"there is no node {name} with cards", why, remedy, Exit.FINDINGS)
    found = pool.node_config(facts)
    text = found.text if found else ""
    dropped = node_values(text).dropped if text.strip() else ""
    if dropped:
        raise Problem(
            f"{found.place if found else 'the node config'} is not read by the plugin",
            dropped,
            "repair it first: vgpuctl config validate --live",
            Exit.FINDINGS,
        )
    if found is None and facts.daemonsets.known and pool.mounted_node_config(facts) is None:
        raise Problem(
            "the plugin reads no node config",
            "its DaemonSet mounts no ConfigMap at /config",
            "mount volcano-vgpu-node-config there, as vgpuctl install does",
            Exit.FINDINGS,
        )
    try:
        return text, Node(name, gpus[name].cards, filters.filtered(text, name) if text.strip() else Filter())
    except UnfitError as error:
        raise Problem(f"the node config cannot be edited: {error}", exit_code=Exit.FINDINGS) from None


def _apply(
    cluster: Cluster, facts: Facts, old: str, new: str, node: Node, card: Card, conduct: Conduct, *, out: bool
) -> Outcome:
    """Brings the new text in, as `config apply` does, and waits until the register shows it."""
    name, before = node.name, {one.uuid for one in node.cards}
    if old == new and (not old.strip() or isinstance(card, int) or (card in before) != out):
        state = "out of service" if out else "in service"
        plan = config.Plan(notes=[f"{_named(card)} of {name} is {state} already"])
        outcome = config.carry_out(cluster, plan, conduct)
    else:
        plan = config.plan(cluster, facts, [Found("the new node config", NODE, new)], conduct, [], migrate=False)
        steps = [_with_undo(step, name, card, out=out) for group in plan.groups for step in group.steps]
        if not any(pod.spec.node_name == name for pod in pool.plugin_pods(facts)):
            plan.notes.append(f"no pod of the plugin runs on {name}: it reads this when it starts")
        elif isinstance(card, str) or not node.out.uuids:
            steps.append(_register(cluster, name, card, before, out=out))
        plan.groups = [replace(group, steps=steps) for group in plan.groups]
        outcome = config.carry_out(cluster, plan, conduct)
    notes = outcome.changes.notes
    if not out and (left := node.rest(card)):
        notes.append(f"still out of service on {name}: {', '.join(left)}")
    if out:
        gone = {card} if isinstance(card, str) else before - {one.uuid for one in _cards(cluster, name)}
        if isinstance(card, int) and not conduct.dry_run:
            notes.extend(f"index {card} is {uuid}" for uuid in sorted(gone))
        notes.extend(_holders(facts, name, gone))
    return outcome


def _with_undo(step: Step, name: str, card: Card, *, out: bool) -> Step:
    if not isinstance(step, Change) or step.target.kind != "ConfigMap":
        return step
    before, after = ("in service", "out of service") if out else ("out of service", "in service")
    verb = "uncordon" if out else "cordon"
    return replace(
        step, lines=(Line(f"{name} {_named(card)}", before, after),), undo=f"vgpuctl card {verb} {name}/{card}"
    )


def _cards(cluster: Cluster, name: str) -> tuple[annotation.RegisteredCard, ...]:
    """What a node registers now."""
    node = cluster.get(Target("Node", name)) or {"metadata": {}}
    text = (node["metadata"].get("annotations") or {}).get(annotation.REGISTER, "")
    return annotation.decode_register(text).cards


def _register(cluster: Cluster, name: str, card: Card, before: set[str], *, out: bool) -> Wait:
    """Until the node's register annotation shows it."""

    def done() -> bool:
        now = {one.uuid for one in _cards(cluster, name)}
        return (card in now) != out if isinstance(card, str) else (now < before if out else now > before)

    what = f"{name} registers {_named(card)}" + (" no more" if out else "")
    return Wait(what, done, lambda: f"{name} registers {len(_cards(cluster, name))} cards")


def _holders(facts: Facts, name: str, cards: Collection[str]) -> Iterator[str]:
    """Who goes on using cards that are out of service."""
    if facts.pods.value is None:
        yield f"which pods still use it is not known: {facts.pods.reason}"
        return
    found = sorted(
        pool.full_name(pod.metadata)
        for pod in facts.pods.value
        if pod.spec.node_name == name
        and pool.alive(pod)
        and (held := pool.allocations(pod))
        and any(one.card in cards for one in held.all)
    )
    if found:
        more = f" and {len(found) - 5} more" if len(found) > 5 else ""
        who = "1 pod still uses it and keeps it" if len(found) == 1 else f"{len(found)} pods still use it and keep it"
        yield f"{who}: {', '.join(found[:5])}{more}"
