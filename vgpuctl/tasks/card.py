"""Takes a card out of service and brings it back: by `filterdevices` of the node config, and a restart of the plugin's
pod on that node alone. Nothing is evicted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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


@dataclass(frozen=True)
class Node:
    """A node with its cards. cards: those that it registers. out: what its filter names."""

    name: str
    cards: tuple[annotation.RegisteredCard, ...]
    out: Filter

    @property
    def hidden(self) -> bool:
        """Some card is out of service and not registered, so that places in the register are no indexes."""
        registered = {card.uuid for card in self.cards}
        return any(uuid not in registered for uuid in self.out.uuids)

    def told(self) -> str:
        """Its cards in words, those out of service too."""
        cards = [f"{card.uuid} ({card.model})" for card in self.cards if card.uuid not in self.out.uuids]
        cards += [f"{uuid} (out of service)" for uuid in self.out.uuids]
        cards += [f"index {index} (out of service)" for index in self.out.indexes]
        return "; ".join(cards) or "none"


def cordon(cluster: Cluster, facts: Facts, name: str, gpu: str, conduct: Conduct) -> Outcome:
    """Takes a card out of service. gpu: its index, its UUID, or how that begins.

    Raises Problem for a node or card that is not there, for the last card, and where the node config cannot be edited;
    Missing when a needed part is not known.
    """
    text, node = _read(facts, name)
    uuid = _registered(node, gpu)
    if uuid is None:
        already = _out(node, gpu)
        if already is None:
            raise _unknown(node, gpu)
        return _apply(cluster, facts, text, text, name, already, conduct, out=True)
    left = [card for card in node.cards if card.uuid != uuid and card.uuid not in node.out.uuids]
    if not left:
        raise Problem(
            f"{uuid} is the last card in service on {name}",
            "a plugin without a card registers nothing anew, so the card would stay in use",
            f"take the node out of service: kubectl cordon {name}",
            Exit.FINDINGS,
        )
    new = text if uuid in node.out.uuids else filters.without(text, name, uuid)
    return _apply(cluster, facts, text, new, name, uuid, conduct, out=True)


def uncordon(cluster: Cluster, facts: Facts, name: str, gpu: str, conduct: Conduct) -> Outcome:
    """Brings a card back. gpu: as for `cordon`; an index where the filter names it by that. Raises as `cordon`."""
    text, node = _read(facts, name)
    out = _out(node, gpu)
    if out is None:
        uuid = _registered(node, gpu)
        if uuid is None:
            raise _unknown(node, gpu)
        return _apply(cluster, facts, text, text, name, uuid, conduct, out=False)
    index = int(out) if out.isdigit() else None
    new = filters.again(text, name, "" if index is not None else out, index)
    return _apply(cluster, facts, text, new, name, out, conduct, out=False)


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


def _registered(node: Node, gpu: str) -> str | None:
    """The UUID of a card that the node registers; None when it is none of them. Raises Problem when it is not clear."""
    if gpu.isdigit():
        if node.hidden:
            raise Problem(
                f"which card of {node.name} has index {gpu} cannot be told while others are out of service",
                f"its cards: {node.told()}",
                "name it by its UUID, or by how that begins",
                Exit.FINDINGS,
            )
        left = [index for index in range(len(node.cards) + len(node.out.indexes)) if index not in node.out.indexes]
        places = dict(zip(left, node.cards, strict=False))
        return places[int(gpu)].uuid if int(gpu) in places else None
    return _one(gpu, [card.uuid for card in node.cards], node)


def _out(node: Node, gpu: str) -> str | None:
    """The UUID or index by which the filter names a card; None when it does not."""
    if gpu.isdigit():
        return gpu if int(gpu) in node.out.indexes else None
    return _one(gpu, node.out.uuids, node)


def _one(gpu: str, uuids: Sequence[str], node: Node) -> str | None:
    found = [uuid for uuid in uuids if uuid == gpu] or [
        uuid for uuid in uuids if uuid.startswith(gpu) or uuid.removeprefix("GPU-").startswith(gpu)
    ]
    if len(found) > 1:
        raise Problem(f"{gpu} begins several UUIDs of {node.name}", ", ".join(found), "write more of it", Exit.FINDINGS)
    return found[0] if found else None


def _unknown(node: Node, gpu: str) -> Problem:
    return Problem(f"{node.name} has no card {gpu}", f"its cards: {node.told()}", exit_code=Exit.FINDINGS)


def _apply(
    cluster: Cluster, facts: Facts, old: str, new: str, name: str, card: str, conduct: Conduct, *, out: bool
) -> Outcome:
    """Brings the new text in, as `config apply` does, and waits until the register shows it."""
    holders = list(_holders(facts, name, card)) if out else []
    if old == new and (not old.strip() or _shown(facts, name, card, out=out)):
        state = "is out of service" if out else "is in service"
        outcome = config.carry_out(cluster, config.Plan(notes=[f"{card} of {name} {state} already"]), conduct)
        outcome.changes.notes.extend(holders)
        return outcome
    plan = config.plan(cluster, facts, [Found("the new node config", NODE, new)], conduct, [], migrate=False)
    steps = [_with_undo(step, name, card, out=out) for group in plan.groups for step in group.steps]
    if facts.pods.value is None or any(pod.spec.node_name == name for pod in pool.plugin_pods(facts)):
        steps.append(_register(cluster, name, card, out=out))
    else:
        plan.notes.append(f"no pod of the plugin runs on {name}: it reads this when it starts")
    plan.groups = [replace(group, steps=steps) for group in plan.groups]
    plan.notes += holders
    return config.carry_out(cluster, plan, conduct)


def _with_undo(step: Step, name: str, card: str, *, out: bool) -> Step:
    if not isinstance(step, Change) or step.target.kind != "ConfigMap":
        return step
    before, after = ("in service", "out of service") if out else ("out of service", "in service")
    verb = "uncordon" if out else "cordon"
    return replace(step, lines=(Line(f"{name} {card}", before, after),), undo=f"vgpuctl card {verb} {name}/{card}")


def _shown(facts: Facts, name: str, card: str, *, out: bool) -> bool:
    """The node registers its cards as it should."""
    node = next((gpu for gpu in pool.gpu_nodes(facts) if gpu.name == name), None)
    registered = {one.uuid for one in node.cards} if node else set()
    return card.isdigit() or (card in registered) != out


def _register(cluster: Cluster, name: str, card: str, *, out: bool) -> Wait:
    """Until the node's register annotation shows it."""

    def cards() -> tuple[annotation.RegisteredCard, ...]:
        node = cluster.get(Target("Node", name)) or {"metadata": {}}
        text = (node["metadata"].get("annotations") or {}).get(annotation.REGISTER, "")
        return annotation.decode_register(text).cards

    before = len(cards())
    done: Callable[[], bool]
    if card.isdigit():
        done = lambda: len(cards()) != before  # noqa: E731
    else:
        done = lambda: any(one.uuid == card for one in cards()) != out  # noqa: E731
    what = f"{name} registers {card}" + (" no more" if out else "")
    return Wait(what, done, lambda: f"{name} registers {len(cards())} cards as before")


def _holders(facts: Facts, name: str, card: str) -> Iterator[str]:
    """Who goes on using a card that is out of service."""
    if facts.pods.value is None:
        yield f"which pods still use it is not known: {facts.pods.reason}"
        return
    found = sorted(
        pool.full_name(pod.metadata)
        for pod in facts.pods.value
        if pod.spec.node_name == name
        and pool.alive(pod)
        and (held := pool.allocations(pod))
        and any(one.card == card for one in held.all)
    )
    if found:
        more = f" and {len(found) - 5} more" if len(found) > 5 else ""
        who = "1 pod still uses it and keeps it" if len(found) == 1 else f"{len(found)} pods still use it and keep it"
        yield f"{who}: {', '.join(found[:5])}{more}"
