"""What the checks of the cluster's areas share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from vgpuctl.checks.check import Skip
from vgpuctl.model import kube, pool
from vgpuctl.model.facts import Facts
from vgpuctl.model.pool import GpuNode

_SHOWN = 3


def everything(facts: Facts) -> None:
    """Skips a check that needs the pods of the whole cluster when they were narrowed."""
    if facts.scope:
        raise Skip(f"only {facts.scope} was read")


def gpu_nodes(facts: Facts) -> list[GpuNode]:
    """The pool's nodes; skips when there are none."""
    nodes = pool.gpu_nodes(facts)
    if not nodes:
        raise Skip("no node has, or looks as if it had, an NVIDIA GPU")
    return nodes


def registered(facts: Facts) -> list[GpuNode]:
    """The nodes whose cards the scheduler sees; skips when there are none."""
    nodes = [node for node in pool.gpu_nodes(facts) if node.cards]
    if not nodes:
        raise Skip("no node has registered cards")
    return nodes


def vgpu_pods(facts: Facts) -> list[kube.Pod]:
    """The vGPU pods that have not ended; skips when there are none."""
    pods = list(pool.vgpu_pods(facts))
    if not pods:
        raise Skip("there are no vGPU pods")
    return pods


def some(names: Iterable[str], shown: int = _SHOWN) -> str:
    """A list for people: `a, b, c and 34 more`."""
    listed = list(names)
    rest = len(listed) - shown
    return ", ".join(listed[:shown]) + (f" and {rest} more" if rest > 0 else "")


def count(number: int, noun: str) -> str:
    """`1 card`, `2 cards`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def pod_subject(pod: kube.Pod) -> str:
    return f"Pod {pool.full_name(pod.metadata)}"


def node_subject(node: GpuNode | kube.Node) -> str:
    return f"Node {node.name if isinstance(node, GpuNode) else node.metadata.name}"


def first_message(texts: Sequence[str]) -> str:
    """The first text that says something, on one line."""
    return next((" ".join(text.split()) for text in texts if text.strip()), "")
