"""Which Volcano Queue a pod belongs to: its PodGroup's, else its own annotation's, else its namespace's.

The rule is Volcano's (pkg/scheduler/api, 1.9 to 1.15).
"""

from __future__ import annotations

from dataclasses import dataclass

from vgpuctl.model import kube
from vgpuctl.model.facts import Facts
from vgpuctl.model.pod.names import GROUP, QUEUE

DEFAULT = "default"


@dataclass(frozen=True)
class Queues:
    """groups: the queue of each PodGroup by (namespace, name), None when PodGroups are unknown. namespaces: the queue
    that each namespace's annotation names, None when namespaces are unknown."""

    groups: dict[tuple[str, str], str] | None
    namespaces: dict[str, str] | None

    def of(self, pod: kube.Pod) -> str | None:
        """The pod's queue; None when what decides it is unknown."""
        annotations = pod.metadata.annotations or {}
        group = next(filter(None, map(annotations.get, GROUP)), None)
        if group:
            if self.groups is None:
                return None
            queue = self.groups.get((pod.metadata.namespace, group))
            if queue:
                return queue
        own = annotations.get(QUEUE)
        if own:
            return own
        if self.namespaces is None:
            return None
        return self.namespaces.get(pod.metadata.namespace, DEFAULT)


def queues(facts: Facts) -> Queues:
    """The rule, with what the facts know."""
    groups, namespaces = facts.podgroups.value, facts.namespaces.value
    return Queues(
        groups=None
        if groups is None
        else {(group.metadata.namespace, group.metadata.name): group.spec.queue or DEFAULT for group in groups},
        namespaces=None
        if namespaces is None
        else {
            namespace.metadata.name: queue
            for namespace in namespaces
            if (queue := namespace.metadata.annotation(QUEUE))
        },
    )
