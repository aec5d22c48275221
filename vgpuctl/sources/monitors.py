"""The monitors on a cluster's nodes, asked through the API server's proxy, as one more part of the cluster's facts.

At most 50 are asked at a time, each for at most 3 seconds; one that is late keeps the figures of its last answer.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import msgspec

from vgpuctl.model import kube
from vgpuctl.model.facts import Part
from vgpuctl.model.problem import Problem
from vgpuctl.model.reading import Reading, known, missing
from vgpuctl.model.usage.sample import Scrape
from vgpuctl.sources.cluster import Cluster
from vgpuctl.sources.metrics import PATH, PORT, scrape

AT_ONCE = 50
SECONDS = 3.0
_LARGEST = 16 << 20
_LABELS = ("name=volcano-device-plugin", "app.kubernetes.io/component=hami-device-plugin")
"""How to find the pods that hold a monitor: Volcano's device plugin, HAMi's."""


class Monitored:
    """A cluster whose metrics are what its nodes' monitors say; all else is the cluster's."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._last: dict[str, Scrape] = {}

    @property
    def name(self) -> str:
        return self._cluster.name

    @property
    def scope(self) -> str:
        return self._cluster.scope

    @property
    def parts(self) -> frozenset[Part]:
        return self._cluster.parts | {Part.METRICS}

    def now(self) -> float:
        return self._cluster.now()

    def read(self, part: Part) -> Reading[Any]:
        return self._metrics() if part is Part.METRICS else self._cluster.read(part)

    def _metrics(self) -> Reading[tuple[Scrape, ...]]:
        where = "monitors"
        try:
            pods = [pod for label in _LABELS for pod in self._pods(label)]
        except Problem as problem:
            return missing(f"no monitor can be found: {problem.what}", where)
        running = [pod for pod in pods if pod.spec.node_name and pod.status.phase == "Running"]
        if not running:
            return missing(f"no monitor runs (no running pod with label {' or '.join(_LABELS)})", where)
        with ThreadPoolExecutor(min(AT_ONCE, len(running))) as pool:
            answers = list(pool.map(self._ask, running))
        if all(answer.reason and not answer.vgpus for answer in answers):
            reason = answers[0].reason
            return missing(f"none of {len(answers)} monitors answers: {reason}", where)
        return known(tuple(answers), where, self.now())

    def _pods(self, label: str) -> Sequence[kube.Pod]:
        raw = self._cluster.objects("Pod", query={"labelSelector": label})
        return [msgspec.convert(item, kube.Pod) for item in raw]

    def _ask(self, pod: kube.Pod) -> Scrape:
        node, meta = pod.spec.node_name, pod.metadata
        path = f"/api/v1/namespaces/{meta.namespace}/pods/{meta.name}:{PORT}/proxy{PATH}"
        try:
            answer = scrape(self._get(path), node, self.now())
        except (Problem, OSError) as error:
            reason = "; ".join(filter(None, (error.what, error.why))) if isinstance(error, Problem) else str(error)
            last = self._last.get(node)
            return replace(last, late=True) if last else Scrape(node, self.now(), reason=reason)
        self._last[node] = answer
        return answer

    def _get(self, path: str) -> str:
        """The text at a path, within the time and size that a monitor has. Raises Problem or OSError."""
        deadline = time.monotonic() + SECONDS
        response = self._cluster.connection.open("GET", path, deadline=deadline)
        try:
            chunks, size = [], 0
            while chunk := response.read1(1 << 16):
                chunks.append(chunk)
                size += len(chunk)
                if size > _LARGEST:
                    raise OSError(f"the monitor's answer is larger than {_LARGEST >> 20} MiB")
                if time.monotonic() > deadline:
                    raise OSError(f"the monitor did not answer within {SECONDS:g} s")
        finally:
            response.close()
        return b"".join(chunks).decode("utf-8", "replace")
