"""Which part of the facts is one list of a cluster, and the decoders of its pages."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from vgpuctl.model import api
from vgpuctl.model.api import Resource
from vgpuctl.model.facts import Part

LISTS: dict[Part, Resource] = {
    part: kinds[0] for part, kinds in api.PARTS.items() if part not in (Part.CONFIGMAPS, Part.WEBHOOKS)
}
"""The parts that are one list; ConfigMaps, webhooks and logs need more than one request."""


class ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    continue_: str = msgspec.field(name="continue", default="")
    resource_version: str = ""


@cache
def page_type(item: Any) -> Any:
    """The type of a page of a list of `item`."""
    return msgspec.defstruct(
        f"{item.__name__}Page",
        [("items", list[item] | None, None), ("metadata", ListMeta, ListMeta())],
        frozen=True,
        gc=False,
    )


@cache
def decoder(item: Any) -> msgspec.json.Decoder[Any]:
    """A reusable decoder; building one costs more than using it."""
    return msgspec.json.Decoder(item)
