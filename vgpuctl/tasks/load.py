"""Loads the parts of the facts that a task needs, each from the first source that can answer it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from vgpuctl.model.facts import Facts, Part
from vgpuctl.model.reading import Reading, missing
from vgpuctl.sources.source import Source

_AT_ONCE = 8


def watched(sources: Sequence[Source]) -> tuple[Source, ...]:
    """The same sources, the clusters among them together with their monitors."""
    from vgpuctl.sources.cluster import Cluster
    from vgpuctl.sources.monitors import Monitored

    return tuple(Monitored(source) if isinstance(source, Cluster) else source for source in sources)


def load(sources: Sequence[Source], parts: Iterable[Part]) -> Facts:
    """The facts from several sources; parts that none of them answers are missing with that reason."""
    wanted = list(dict.fromkeys(parts))
    name = ", ".join(source.name for source in sources)
    scope = ", ".join(filter(None, (source.scope for source in sources)))
    facts = Facts(source=name, now=sources[0].now() if sources else 0.0, scope=scope)

    def read(part: Part) -> Reading[object]:
        source = next((source for source in sources if part in source.parts), None)
        return source.read(part) if source else missing(f"{name or 'no source'} does not hold {part.value}")

    pool = ThreadPoolExecutor(_AT_ONCE)
    try:
        for part, reading in zip(wanted, pool.map(read, wanted), strict=True):
            facts = facts.with_part(part, reading)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # Ctrl-C does not wait for a silent source
    return facts
