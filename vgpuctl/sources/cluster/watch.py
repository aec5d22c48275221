"""Changes as they happen: a list first where there is no version to go on from, then a watch."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec
from urllib3.exceptions import HTTPError

from vgpuctl.model.decode import decode_item
from vgpuctl.model.delta import Delta, Kind
from vgpuctl.model.facts import Part
from vgpuctl.model.problem import Problem
from vgpuctl.sources.cluster.errors import Refused
from vgpuctl.sources.cluster.resources import LISTS

if TYPE_CHECKING:
    from vgpuctl.sources.cluster.cluster import Cluster

_WATCH = 300
"""Seconds after which the API server ends a watch; the next one goes on from the last version."""
_SILENCE = 90.0
"""The API server sends a bookmark about every minute, so a longer silence is a dead connection."""
_PAUSE, _LONGEST_PAUSE = 1.0, 30.0
_CHUNK = 1 << 18


class _Event(msgspec.Struct, frozen=True):
    type: str
    object: msgspec.Raw


class _Versioned(msgspec.Struct, frozen=True):
    metadata: dict[str, Any] | None = None


class _Expired(Exception):
    """The version to go on from is too old: list anew."""


def follow(cluster: Cluster, part: Part, version: str, stop: Callable[[], bool]) -> Iterator[list[Delta]]:
    """Bunches of changes of a part until `stop()`. Trouble is waited out; what is known meanwhile grows old."""
    pause = _PAUSE
    while not stop():
        if not version:
            reading = cluster.read(part)
            version = cluster.version_of(part) if reading.known else ""
            yield [Delta(part, Kind.LIST, reading)]
        try:
            if version:
                for reached, deltas in _watch(cluster, part, version, stop):
                    version, pause = reached, _PAUSE
                    if deltas:
                        yield deltas
                continue
        except _Expired:
            version = ""
            continue
        except (Problem, HTTPError, OSError, ValueError):
            pass
        time.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE)


def _watch(cluster: Cluster, part: Part, version: str, stop: Callable[[], bool]) -> Iterator[tuple[str, list[Delta]]]:
    query = {
        **cluster.query(part),
        "watch": "true",
        "resourceVersion": version,
        "allowWatchBookmarks": "true",
        "timeoutSeconds": str(_WATCH),
    }
    try:
        response = cluster.connection.open("GET", cluster.path(part), query, silence=_SILENCE)
    except Refused as refused:
        if refused.status == 410:
            raise _Expired from None
        raise
    rest = b""
    reached = version
    with contextlib.closing(response):
        while not stop() and (chunk := response.read1(_CHUNK)):
            *lines, rest = (rest + chunk).split(b"\n")
            deltas = []
            for line in filter(None, lines):
                reached, delta = _event(part, line, reached)
                deltas += [delta] if delta else []
            yield reached, deltas


def _event(part: Part, line: bytes, version: str) -> tuple[str, Delta | None]:
    event = msgspec.json.decode(line, type=_Event)
    if event.type == "ERROR":
        raise _Expired
    metadata = msgspec.json.decode(event.object, type=_Versioned).metadata or {}
    version = metadata.get("resourceVersion", version)
    if event.type == "BOOKMARK":
        return version, None
    item, _ = decode_item(event.object, LISTS[part].type)
    return version, Delta(part, Kind.GONE if event.type == "DELETED" else Kind.SET, item)
