"""Narrows objects that lie in memory as the API server narrows a list."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from vgpuctl.model.selector import selector


def chosen(items: Iterable[Any], namespace: str = "", query: dict[str, str] | None = None) -> Iterator[dict[str, Any]]:
    """The objects of a namespace ("" for all) that the query's labelSelector matches; what is no object is left out."""
    wanted = selector((query or {}).get("labelSelector", ""))
    for item in items:
        metadata = item.get("metadata") if isinstance(item, dict) else None
        if not isinstance(metadata, dict) or namespace not in ("", metadata.get("namespace")):
            continue
        labels = metadata.get("labels")
        if wanted.matches(labels if isinstance(labels, dict) else {}):
            yield item
