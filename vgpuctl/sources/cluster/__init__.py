"""The cluster: Kubernetes' API, read as raw JSON page by page and decoded only as far as needed.

The rule of this package: the `kubernetes` client serves for credentials that need it (exec plugins, identity
providers) and is imported only then; its model classes are never used. Each failure of the outside is one line.
"""

from vgpuctl.sources.cluster.cluster import Cluster
from vgpuctl.sources.cluster.kubeconfig import Access, Flags, find_access

__all__ = ["Access", "Cluster", "Flags", "find_access"]
