"""The demo as a Source."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgspec

from vgpuctl import resources
from vgpuctl.model.api import PARTS
from vgpuctl.model.facts import Part
from vgpuctl.model.reading import Reading, known
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
        kinds = {resource.kind for resource in PARTS[part]}
        generate = GENERATED.get(part.value)
        raw = [
            *(generate(self._plan, now) if generate else ()),
            *(item for item in self._objects if item["kind"] in kinds),
        ]
        return known(tuple(msgspec.convert(item, PARTS[part][0].type) for item in raw), self.name, now)
