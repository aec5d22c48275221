"""The rights that vgpuctl uses, as data: for the check of them and for the roles that grant them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Right:
    """A verb on a resource. use: `read` or `write`. resource: may have a subresource, as in `pods/log`."""

    verb: str
    resource: str
    group: str = ""
    namespaced: bool = True
    use: str = "read"

    @property
    def id(self) -> str:
        """Such as `list nodes` or `create resourcequotas`."""
        return f"{self.verb} {self.resource}" + (f".{self.group}" if self.group else "")


_VOLCANO = "scheduling.volcano.sh"

RIGHTS = (
    Right("list", "nodes", namespaced=False),
    Right("list", "pods"),
    Right("get", "pods/log"),
    Right("list", "events"),
    Right("list", "configmaps"),
    Right("list", "resourcequotas"),
    Right("list", "namespaces", namespaced=False),
    Right("list", "daemonsets", "apps"),
    Right("list", "deployments", "apps"),
    Right("list", "queues", _VOLCANO, namespaced=False),
    Right("list", "podgroups", _VOLCANO),
    Right("list", "priorityclasses", "scheduling.k8s.io", namespaced=False),
    Right("create", "namespaces", namespaced=False, use="write"),
    Right("patch", "resourcequotas", use="write"),
    Right("delete", "resourcequotas", use="write"),
    Right("patch", "nodes", namespaced=False, use="write"),
    Right("patch", "queues", _VOLCANO, namespaced=False, use="write"),
    Right("patch", "configmaps", use="write"),
    Right("create", "events", use="write"),
)
