"""What every source of facts can do, and what one that is written to can do besides."""

from __future__ import annotations

from typing import Any, Protocol

from vgpuctl.model.change import Change, Target
from vgpuctl.model.facts import Part
from vgpuctl.model.reading import Reading


class Source(Protocol):
    """A live cluster, this machine, a bundle or the demo."""

    @property
    def name(self) -> str:
        """What the output calls it, such as `context prod` or `bundle pool.tar.gz`."""
        ...

    @property
    def parts(self) -> frozenset[Part]:
        """The parts that it can answer."""
        ...

    @property
    def scope(self) -> str:
        """What its pods, quotas and PodGroups are narrowed to, in words; "" for everything."""
        ...

    def now(self) -> float:
        """The source's clock, Unix seconds: of a bundle, when it was made."""
        ...

    def read(self, part: Part) -> Reading[Any]:
        """One part of the facts; never raises for what the outside does."""
        ...


class Objects(Source, Protocol):
    """A source of whole objects, as the API gives them: a cluster, a bundle, the demo."""

    def get(self, target: Target) -> dict[str, Any] | None:
        """An object, None when it does not exist. Raises Problem when that cannot be told."""
        ...

    def objects(self, kind: str, *, namespace: str = "", query: dict[str, str] | None = None) -> list[dict[str, Any]]:
        """All objects of a kind, narrowed by a namespace and the API's query (`labelSelector`,
        `fieldSelector`). Raises Problem."""
        ...


class Writer(Protocol):
    """What Changes are carried out on: a cluster, this machine. Failures are Problems."""

    def get(self, target: Target) -> dict[str, Any] | None:
        """An object as raw JSON, None when it does not exist."""
        ...

    def write(self, change: Change, *, dry_run: bool = False, force: bool = False) -> dict[str, Any]:
        """Carries out one change; the object afterwards, {} when there is none. dry_run: only checks."""
        ...

    def create(self, target: Target, body: dict[str, Any], *, dry_run: bool = False) -> dict[str, Any]:
        """Creates an object; the object afterwards."""
        ...
