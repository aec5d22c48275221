"""Decodes Kubernetes objects that may be odd: what one object breaks stays with that object."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from vgpuctl.model import kube

T = TypeVar("T")


def decode_item(raw: bytes | msgspec.Raw, kind: type[T]) -> tuple[T, str]:
    """An object as far as it can be decoded, and what could not be ("" when all could).

    Nulls count as absent and numbers in quotes as numbers, as Kubernetes' own decoder has it. An object that is broken
    beyond that keeps its metadata only. Raises msgspec.MsgspecError when there is not even a name.
    """
    try:
        return msgspec.json.decode(raw, type=kind), ""
    except msgspec.ValidationError:
        value = without_nulls(msgspec.json.decode(raw))
    try:
        return msgspec.convert(value, kind, strict=False), ""
    except msgspec.ValidationError as error:
        metadata = msgspec.convert(value["metadata"] if isinstance(value, dict) else value, kube.Metadata, strict=False)
        if not metadata.name:
            raise
        item: Any = kind(metadata=metadata)  # type: ignore[call-arg]
        return item, f"{metadata.namespace}/{metadata.name}".lstrip("/") + f": {error}"


def decode_items(raws: list[msgspec.Raw], kind: type[T]) -> tuple[list[T], str]:
    """Objects one by one, and a note on those that could not be decoded in full."""
    items: list[T] = []
    notes = []
    for number, raw in enumerate(raws):
        try:
            item, note = decode_item(raw, kind)
            items.append(item)
        except (msgspec.MsgspecError, KeyError, TypeError) as error:
            note = f"item {number}: {error}"
        if note:
            notes.append(note)
    return items, f"{len(notes)} could not be decoded, such as {notes[0]}" if notes else ""


def without_nulls(value: Any) -> Any:
    """JSON data in which a null is as absent as Kubernetes' own decoder takes it."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value if item is not None]
    return value
