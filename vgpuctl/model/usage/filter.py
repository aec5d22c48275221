"""Which vGPUs, cards and nodes a table shows."""

from __future__ import annotations

from dataclasses import dataclass

from vgpuctl.model.usage.row import PendingPod, Row


@dataclass(frozen=True)
class Filter:
    """What to show. namespaces, nodes, queues: any of them, empty for all. pods: (namespace, name) of the chosen ones,
    None for all. text: in any name of the row, without regard to case; a leading `!` inverts it."""

    namespaces: frozenset[str] = frozenset()
    nodes: frozenset[str] = frozenset()
    queues: frozenset[str] = frozenset()
    pods: frozenset[tuple[str, str]] | None = None
    text: str = ""

    def takes(self, row: Row) -> bool:
        """Whether a vGPU, or an empty card or node, is shown."""
        if self.nodes and row.node not in self.nodes:
            return False
        if row.level in ("vgpu", "process"):
            if self.namespaces and row.namespace not in self.namespaces:
                return False
            if self.queues and row.queue not in self.queues:
                return False
            if self.pods is not None and (row.namespace, row.pod) not in self.pods:
                return False
        elif self.namespaces or self.queues or self.pods is not None:
            return False
        if not self.text:
            return True
        wanted = self.text.removeprefix("!").casefold()
        return (wanted in _words(row)) != self.text.startswith("!")

    def takes_pending(self, pod: PendingPod) -> bool:
        if self.pods is not None and (pod.namespace, pod.pod) not in self.pods:
            return False
        in_namespace = not self.namespaces or pod.namespace in self.namespaces
        return in_namespace and (not self.queues or pod.queue in self.queues)


def _words(row: Row) -> str:
    names = (
        row.node,
        row.model,
        f"{row.namespace or ''}/{row.pod or ''}",
        row.container,
        row.process,
        row.queue,
        row.state,
    )
    return "\n".join(name for name in names if name).casefold()
