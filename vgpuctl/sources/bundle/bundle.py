"""The facts that a bundle holds."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from vgpuctl.model.api import KINDS, PARTS
from vgpuctl.model.change import Target
from vgpuctl.model.decode import decode_items
from vgpuctl.model.facts import Part
from vgpuctl.model.host import Host
from vgpuctl.model.problem import Problem
from vgpuctl.model.reading import Reading, known, missing
from vgpuctl.sources.bundle.members import read_members
from vgpuctl.sources.chosen import chosen
from vgpuctl.sources.host import read_host
from vgpuctl.sources.recorded import RecordedFiles, stats_from_tsv


class _Meta(msgspec.Struct, frozen=True):
    """meta.json. made: RFC 3339. source: what was recorded. missing: the reasons of parts that could not be read."""

    made: str = ""
    source: str = ""
    missing: dict[str, str] = {}


class Bundle:
    """A bundle as a source; its clock is when it was made. members: by name, see `members.read_members`."""

    def __init__(self, name: str, members: Mapping[str, bytes]) -> None:
        self._name = name
        self._members = members
        try:
            self._meta = msgspec.json.decode(members.get("meta.json", b"{}"), type=_Meta)
        except (msgspec.MsgspecError, RecursionError):
            self._meta = _Meta()

    @property
    def name(self) -> str:
        return f"bundle {self._name}" + (f" of {self._meta.source}" if self._meta.source else "")

    @property
    def scope(self) -> str:
        return ""

    @property
    def parts(self) -> frozenset[Part]:
        """A bundle of nodes alone holds nothing of a cluster; one of a cluster is asked for all of it."""
        cluster = self._meta.missing or any(name.startswith(("cluster/", "logs/")) for name in self._members)
        pool = (*PARTS, Part.VERSION, Part.LOGS) if cluster else ()
        return frozenset((*pool, Part.HOST))

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes whose files it holds."""
        return tuple(sorted({name.split("/")[1] for name in self._members if name.startswith("nodes/")}))

    def now(self) -> float:
        try:
            return datetime.fromisoformat(self._meta.made.replace("Z", "+00:00")).timestamp()
        except ValueError:
            return time.time()

    def read(self, part: Part) -> Reading[Any]:
        if part is Part.LOGS:
            return self._logs()
        if part is Part.VERSION:
            return self._version()
        if part is Part.HOST:
            return self._host()
        return self._objects(part) if part in PARTS else self._lacks(part.value)

    def get(self, target: Target) -> dict[str, Any] | None:
        """An object as it was recorded, None when it did not exist. Raises Problem."""
        found = self.objects(target.kind, namespace=target.namespace)
        return next((item for item in found if item["metadata"].get("name") == target.name), None)

    def objects(self, kind: str, *, namespace: str = "", query: dict[str, str] | None = None) -> list[dict[str, Any]]:
        """All recorded objects of a kind, see `sources.source.Objects`. Raises Problem."""
        path = f"cluster/{KINDS[kind].plural if kind in KINDS else f'{kind.lower()}s'}.json"
        try:
            items = [msgspec.json.decode(raw) for raw in _raw_items(self._members[path])]
        except KeyError:
            raise Problem(f"{self.name} does not hold {path}") from None
        except (msgspec.MsgspecError, RecursionError) as error:
            raise Problem(f"{path} of {self.name} is not a Kubernetes list", str(error)) from None
        return list(chosen(items, namespace, query))

    def files(self, node: str) -> RecordedFiles:
        """The files of one of its nodes."""
        base = f"nodes/{node}/host/"
        tree = {f"/{name[len(base) :]}": data for name, data in self._members.items() if name.startswith(base)}
        stats = self._members.get(f"nodes/{node}/stat.tsv", b"").decode(errors="replace")
        return RecordedFiles(tree, stats_from_tsv(stats), node)

    def _host(self) -> Reading[Host]:
        nodes = self.nodes
        if len(nodes) == 1:
            return known(read_host(self.files(nodes[0])), f"nodes/{nodes[0]}/host", self.now())
        return missing(f"{self.name} holds the files of {len(nodes) or 'no'} nodes", "nodes/")

    def _objects(self, part: Part) -> Reading[tuple[Any, ...]]:
        kinds = PARTS[part]
        paths = [path for kind in kinds if (path := f"cluster/{kind.plural}.json") in self._members]
        if not paths:
            return self._lacks(part.value, f"cluster/{kinds[0].plural}.json")
        items: list[Any] = []
        notes = []
        for path in paths:
            try:
                decoded, note = decode_items(_raw_items(self._members[path]), kinds[0].type)
            except (msgspec.MsgspecError, RecursionError) as error:
                return missing(f"{path} is not a Kubernetes list: {error}", path)
            items += decoded
            notes += [note] if note else []
        return Reading(tuple(items), ", ".join(paths), self.now(), note="; ".join(notes))

    def _version(self) -> Reading[str]:
        path = "cluster/version.json"
        try:
            found = msgspec.json.decode(self._members[path], type=dict[str, Any])
        except KeyError:
            return self._lacks(Part.VERSION.value, path)
        except (msgspec.MsgspecError, RecursionError) as error:
            return missing(f"{path} is not JSON: {error}", path)
        version = found.get("gitVersion")
        return known(str(version), path, self.now()) if version else self._lacks(Part.VERSION.value, path)

    def _logs(self) -> Reading[dict[str, str]]:
        texts = {
            PurePosixPath(name).stem: data.decode(errors="replace")
            for name, data in self._members.items()
            if name.startswith("logs/")
        }
        return known(texts, "logs/", self.now()) if texts else self._lacks(Part.LOGS.value, "logs/")

    def _lacks(self, what: str, path: str = "") -> Reading[Any]:
        reason = self._meta.missing.get(what)
        return missing(f"not recorded: {reason}" if reason else f"{self.name} does not hold {what}", path)


def open_bundle(path: str) -> Bundle:
    """The bundle at a path. Raises Problem when there is none, or one that is not to be trusted."""
    return Bundle(path, read_members(Path(path)))


class _List(msgspec.Struct, frozen=True):
    items: list[msgspec.Raw] | None = None


def _raw_items(data: bytes) -> list[msgspec.Raw]:
    """The items of a list; a single object is a list of one."""
    found = msgspec.json.decode(data, type=_List)
    if found.items is None and b'"items"' not in data[:4096]:
        return [msgspec.Raw(data)]
    return found.items or []
