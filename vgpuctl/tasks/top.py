"""Who uses what: reads the parts that a table of use needs, once or again and again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from vgpuctl.model import kube
from vgpuctl.model.facts import Part
from vgpuctl.model.problem import Problem
from vgpuctl.model.reading import Missing
from vgpuctl.model.selector import Selector
from vgpuctl.model.usage.filter import Filter
from vgpuctl.model.usage.holdings import Holdings, merge
from vgpuctl.model.usage.pool import pool
from vgpuctl.sources.source import Source
from vgpuctl.tasks.load import load

POOL = (Part.NODES, Part.PODS, Part.PODGROUPS, Part.NAMESPACES, Part.CONFIGMAPS, Part.METRICS)
MACHINE = (Part.HOST, Part.DRIVER, Part.CARDS, Part.REGIONS)


@dataclass(frozen=True)
class Wanted:
    """What the user asked to see. selector: of pod labels."""

    namespace: str = ""
    selector: Selector = Selector()
    nodes: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()

    def filter(self, pods: Sequence[kube.Pod] | None) -> Filter:
        """The same as a filter of rows; labels are looked up in the pods."""
        chosen = None
        if self.selector and pods is not None:
            chosen = frozenset(
                (pod.metadata.namespace, pod.metadata.name)
                for pod in pods
                if self.selector.matches(pod.metadata.labels or {})
            )
        return Filter(
            namespaces=frozenset(filter(None, [self.namespace])),
            nodes=frozenset(self.nodes),
            queues=frozenset(self.queues),
            pods=chosen,
        )


@dataclass(frozen=True)
class Picture:
    """What one reading gave: the holdings, and which of them the user wants."""

    holdings: Holdings
    wanted: Filter


def read(sources: Sequence[Source], wanted: Wanted) -> Picture:
    """Reads once. Raises Missing or Problem when there is nothing to show: no pods, no cards, no permission."""
    if any(Part.PODS in source.parts for source in sources):
        facts = load(sources, POOL)
        return Picture(pool(facts), wanted.filter(facts.pods.value))
    return Picture(_machines(sources), replace(wanted, namespace="").filter(None))


def _machines(sources: Sequence[Source]) -> Holdings:
    """This machine and those that `vgpuctl run --simulate` made on it; one that cannot be read is left out beside one
    that can."""
    # Imported here: the view of a cluster is quicker without them.
    from vgpuctl.model.usage.machine import machine
    from vgpuctl.sources.machine import Machine

    here = [source for source in sources if isinstance(source, Machine)]
    for source in here:
        source.refresh()
    found, reason = [], ""
    for one in (*sources, *(simulated for source in here for simulated in source.simulated())):
        try:
            found.append(machine(load([one], MACHINE)))
        except Missing as missing:
            reason = reason or missing.reason
    if not found:
        remedy = "name a cluster with --kubeconfig, or look at a made-up pool with --demo"
        raise Problem("there is no cluster, and no card here answers", reason, remedy)
    return merge(found)


class Collector:
    """Reads in a thread of its own, so that a screen never waits.

    `latest` is the newest picture; `failure` says why the last attempt gave none, "" when it did. tell: called after
    each attempt. interval: seconds from the start of one reading to the start of the next.
    """

    def __init__(self, take: Callable[[], Picture], interval: float, tell: Callable[[], None], first: Picture) -> None:
        self.latest = first
        self.failure = ""
        self._take, self._interval, self._tell = take, interval, tell
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="collector", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ends after the reading that is under way, without waiting for it."""
        self._stop.set()

    def _run(self) -> None:
        pause = self._interval
        while not self._stop.wait(pause):
            began = time.monotonic()
            try:
                self.latest, self.failure = self._take(), ""
            except Missing as missing:
                self.failure = missing.reason
            except Problem as problem:
                self.failure = problem.what
            self._tell()
            pause = max(self._interval - (time.monotonic() - began), 0.05)
