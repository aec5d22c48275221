"""Narrows objects that lie in memory as the API server narrows a list."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from vgpuctl.model.selector import selector


def chosen(items: Iterable[Any], namespace: str = "", query: dict[str, str] | None = None) -> Iterator[dict[str, Any]]:
    """The objects of a namespace ("" for all) that the query's labelSelector and fieldSelector match; what is no object
    is left out."""
    labels = selector((query or {}).get("labelSelector", ""))
    fields = [_field(text) for text in (query or {}).get("fieldSelector", "").split(",") if text]
    for item in items:
        metadata = item.get("metadata") if isinstance(item, dict) else None
        if not isinstance(metadata, dict) or namespace not in ("", metadata.get("namespace")):
            continue
        had = metadata.get("labels")
        if labels.matches(had if isinstance(had, dict) else {}) and all(
            (_at(item, path) == value) is wanted for path, value, wanted in fields
        ):
            yield item


def _field(text: str) -> tuple[str, str, bool]:
    """One requirement: the path, the value, and whether it must have it."""
    path, sign, value = text.partition("!=") if "!=" in text else text.partition("=")
    return path, value.removeprefix("="), sign == "="


def _at(item: Any, path: str) -> str:
    for step in path.split("."):
        item = item.get(step) if isinstance(item, dict) else None
    return str(item or "")
