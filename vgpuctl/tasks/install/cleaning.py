"""Takes off nodes what the plugin left there: the library's files, and what it registered."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from vgpuctl.model import annotation, kube, pool
from vgpuctl.model.change import Change, How, Target
from vgpuctl.model.facts import Facts
from vgpuctl.model.install.manifests import CLEANUP, cleanup, target
from vgpuctl.model.install.options import Options
from vgpuctl.model.install.reasons import is_ready, reason
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.tasks.apply import Conduct, Step, Wait
from vgpuctl.tasks.install import rollout
from vgpuctl.tasks.install.live import Live, Object

_REGISTERED = (annotation.REGISTER, annotation.HANDSHAKE)


def is_for(options: Options, node: kube.Node) -> bool:
    """The plugin of these options runs on a node."""
    return options.node_selector.items() <= (node.metadata.labels or {}).items()


def is_registered(node: kube.Node) -> bool:
    """A plugin has registered it."""
    return any(node.metadata.annotation(key) is not None for key in _REGISTERED)


def registered(nodes: Iterable[str]) -> list[Change]:
    """Removes the plugin's annotations of nodes."""
    body = {"metadata": {"annotations": dict.fromkeys(_REGISTERED)}}
    return [Change(Target("Node", name), How.MERGE, body, {}, routine=True) for name in nodes]


def steps(
    cluster: Live, options: Options, facts: Facts, conduct: Conduct, *, force: bool = False, nodes: Collection[str] = ()
) -> list[Step]:
    """Takes the files off the nodes of these options, or off these nodes, by pods that reach each of them once.
    force: those that cannot be cleaned are left."""
    (cleaner,) = cleanup(options, nodes)
    look = _Cleaned(cluster, facts, target(cleaner), force, conduct)
    return [
        Change(target(cleaner), How.APPLY, cleaner, None, routine=True),
        Wait("the nodes are clean", look.done, look.why),
        Change(target(cleaner), How.DELETE, None, cleaner, routine=True),
        rollout.no_pods(cluster, options.namespace, CLEANUP),
    ]


@dataclass
class _Cleaned:
    """Looks at the pods that clean the nodes. force: nodes that are down, or where the pod has no hope, are left as
    they are, and named."""

    cluster: Live
    facts: Facts
    where: Target
    force: bool
    conduct: Conduct
    hopeless: dict[str, float] = field(default_factory=dict)

    def done(self) -> bool:
        found = self.cluster.get(self.where)
        if found is None:
            raise Problem(f"{self.where} was deleted meanwhile", "", "run the command again", Exit.FINDINGS)
        status = found.get("status") or {}
        wanted = status.get("desiredNumberScheduled", 0)
        pods = rollout.pods_of(self.cluster, self.where.namespace, self.where.name)
        left = {rollout.node_of(pod) for pod in pods if not is_ready(pod)}
        current = status.get("observedGeneration", 0) >= found["metadata"].get("generation", 1)
        if not current or len(pods) < wanted or (left and not (self.force and left <= self._given_up(pods))):
            return False
        if left:
            keep = "keep" if len(left) > 1 else "keeps"
            self.conduct.say(f"{rollout.some(left, len(left))} {keep} the library's files: {self._reasons()}")
        return True

    def why(self) -> str:
        return f"{self._reasons()}; --force leaves such nodes as they are"

    def _given_up(self, pods: Iterable[Object]) -> set[str]:
        """The nodes that are down, and those where a pod has had no hope for a while."""
        now = self.conduct.now()
        bad = [found.node for pod in pods if (found := reason(pod)) and found.hopeless]
        self.hopeless = {node: self.hopeless.get(node, now) for node in bad}
        down = {node.metadata.name for node in self.facts.nodes.value or () if not pool.is_up(node)}
        return down | {node for node, since in self.hopeless.items() if now - since >= rollout.PATIENCE}

    def _reasons(self) -> str:
        return rollout.why_not_ready(self.cluster, self.where)
