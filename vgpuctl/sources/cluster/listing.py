"""Lists: page by page, each decoded as it comes, so that the text of one page only is held."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import msgspec

from vgpuctl.model.api import Resource
from vgpuctl.model.decode import decode_items
from vgpuctl.sources.cluster.connection import Connection
from vgpuctl.sources.cluster.errors import Refused, Unreachable
from vgpuctl.sources.cluster.resources import ListMeta, decoder, page_type

PAGE = 500
"""Objects per request, as kubectl asks for."""


class _Head(msgspec.Struct, frozen=True):
    """A page without its items."""

    metadata: ListMeta = ListMeta()


@dataclass(frozen=True)
class Listed:
    """items: decoded. version: the resourceVersion from which to watch. note: what could not be decoded."""

    items: list[Any]
    version: str
    note: str


def list_all(
    connection: Connection,
    resource: Resource,
    namespace: str = "",
    query: dict[str, str] | None = None,
    *,
    item: Any = None,
) -> Listed:
    """Every object of a resource. item: the type to decode to, else the resource's own. Raises Unreachable or Refused.

    A list that expires between two pages (410) is begun anew, at once and whole.
    """
    kind = item or resource.type
    try:
        return _pages(connection, resource, namespace, {**(query or {}), "limit": str(PAGE)}, kind)
    except Refused as refused:
        if refused.status != 410:
            raise
        return _pages(connection, resource, namespace, dict(query or {}), kind)


def _pages(connection: Connection, resource: Resource, namespace: str, query: dict[str, str], kind: Any) -> Listed:
    """Page by page; the next one is fetched while the last one is decoded."""
    path = resource.path(namespace)
    items: list[Any] = []
    notes = []
    with ThreadPoolExecutor(1) as ahead:
        body = connection.request("GET", path, query)
        following = ""
        while True:
            before, following = following, _continue(body)
            if following and following == before:
                raise _garbage(connection.access.server, path, ValueError("its pages go round in a circle"))
            if following:
                coming = ahead.submit(connection.request, "GET", path, {**query, "continue": following})
            page, note = _decode(body, kind, connection.access.server, path)
            items += page.items or ()
            if note:
                notes.append(note)
            if not following:
                return Listed(items, page.metadata.resource_version, "; ".join(notes))
            body = coming.result()


def _continue(body: bytes) -> str:
    """Where the next page begins, "" for the last one (or for what is no list: decoding it says so)."""
    try:
        head: _Head = decoder(_Head).decode(body)
    except (msgspec.MsgspecError, RecursionError):
        return ""
    return head.metadata.continue_


def _decode(body: bytes, kind: Any, server: str, path: str) -> tuple[Any, str]:
    try:
        return decoder(page_type(kind)).decode(body), ""
    except msgspec.ValidationError:
        pass
    except (msgspec.DecodeError, RecursionError) as error:
        raise _garbage(server, path, error) from None
    try:
        page = decoder(page_type(msgspec.Raw)).decode(body)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise _garbage(server, path, error) from None
    items, note = decode_items(page.items or [], kind)
    return page_type(kind)(items, page.metadata), note


def _garbage(server: str, path: str, error: Exception) -> Unreachable:
    return Unreachable(
        f"{server} answered GET {path} with something that is not a Kubernetes list",
        " ".join(str(error).split()),
        "is this the address of a Kubernetes API server?",
    )
