"""The demo as a Source."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cached_property
from typing import Any

import msgspec

from vgpuctl import resources
from vgpuctl.model.api import PARTS
from vgpuctl.model.change import Target
from vgpuctl.model.facts import Part
from vgpuctl.model.reading import Reading, known
from vgpuctl.sources.chosen import chosen
from vgpuctl.sources.demo import installed
from vgpuctl.sources.demo.metrics import scrapes
from vgpuctl.sources.demo.objects import GENERATED
from vgpuctl.sources.demo.plan import Object, Plan


class Demo:
    """A made-up pool. clock: Unix seconds now; everything that it answers follows from that."""

    name = "demo pool"
    scope = ""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        plan, *objects = resources.documents("templates/demo.yaml")
        self._plan = msgspec.convert(plan, Plan)
        self._objects: list[Object] = objects

    @property
    def parts(self) -> frozenset[Part]:
        return frozenset((*PARTS, Part.VERSION, Part.LOGS, Part.METRICS))

    def now(self) -> float:
        return self._clock()

    def read(self, part: Part) -> Reading[Any]:
        """A part of the demo at this moment."""
        now = self.now()
        if part is Part.VERSION:
            return known(self._plan.kubernetes, self.name, now)
        if part is Part.LOGS:
            return known({}, self.name, now)
        if part is Part.METRICS:
            return known(scrapes(self._plan, now), self.name, now)
        items = (msgspec.convert(item, kind.type) for kind in PARTS[part] for item in self.objects(kind.kind))
        return known(tuple(items), self.name, now)

    def get(self, target: Target) -> Object | None:
        """An object of the demo, None when it has none such."""
        found = self.objects(target.kind, namespace=target.namespace)
        return next((item for item in found if item["metadata"]["name"] == target.name), None)

    def objects(self, kind: str, *, namespace: str = "", query: dict[str, str] | None = None) -> list[Object]:
        """All objects of a kind, see `sources.source.Objects`."""
        generate = GENERATED.get(kind)
        generated = generate(self._plan, self.now()) if generate else []
        return list(chosen([*generated, *self._fixed.get(kind, ())], namespace, query))

    @cached_property
    def _fixed(self) -> dict[str, list[Object]]:
        """kind → the objects of the file, and those of the installation that it has none for."""
        found: dict[str, dict[object, Object]] = {}
        for item in (*self._objects, *installed.objects(self._plan)):
            metadata = item["metadata"]
            found.setdefault(item["kind"], {}).setdefault((metadata.get("namespace"), metadata["name"]), item)
        return {kind: list(items.values()) for kind, items in found.items()}
