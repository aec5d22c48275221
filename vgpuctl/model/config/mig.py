"""MIG geometries by card model, from templates/mig-geometries.yaml: facts that validate, generate and lint share."""

from __future__ import annotations

import functools
import re

import msgspec

from vgpuctl import resources

_MIB_PER_GB = 1024


class Profile(msgspec.Struct, frozen=True):
    """A GPU instance profile. memory: MiB of one instance. count: how many a card holds. shipped: upstream's value."""

    name: str
    memory: int
    count: int
    shipped: int | None = None
    measured: bool = True

    @property
    def slices(self) -> int:
        """Compute slices that one instance takes."""
        return int(self.name.partition("g.")[0])

    @property
    def nominal(self) -> int:
        """MiB that its name promises."""
        return int(re.sub(r"\D", "", self.name.partition("g.")[2])) * _MIB_PER_GB

    @property
    def counted(self) -> int:
        """MiB that the scheduler counts an instance with: by upstream's table where that has it."""
        return self.shipped or self.memory

    @property
    def most(self) -> int:
        """The largest memory (MiB) that may be written for it without promising what is not there."""
        return max(self.memory if self.measured else self.nominal, self.shipped or 0)


class Family(msgspec.Struct, frozen=True):
    """Cards with the same profiles. layouts: profile → count, each a way to cut a whole card."""

    card: str
    match: str
    models: list[str]
    slices: int
    profiles: list[Profile]
    layouts: list[dict[str, int]]

    def profile(self, name: str) -> Profile | None:
        """The profile of a name; the media variants (`1g.10gb+me`) are the plain one with one instance fewer."""
        return next((profile for profile in self.profiles if profile.name == name.partition("+")[0]), None)


class _Table(msgspec.Struct, frozen=True):
    families: list[Family]
    without: str


@functools.cache
def _table() -> _Table:
    (table,) = resources.documents("templates/mig-geometries.yaml")
    return msgspec.convert(table, _Table)


def all_families() -> list[Family]:
    """Every family of the table, in its order."""
    return _table().families


def families(model: str) -> list[Family]:
    """The families that a model's name, or a part of one, may belong to: several for `A100` alone, none if unknown."""
    words = _words(model)
    exact = [family for family in _table().families if re.search(family.match, words)]
    if exact:
        return exact[:1]
    if re.fullmatch(r"[A-Z]+\d+", words):
        return [family for family in _table().families if family.card.split()[0] == words]
    return []


def usual_profiles(model: str) -> tuple[Profile, ...]:
    """The profiles in the layouts of a card, by its model name; none for a card without MIG or not known."""
    found = families(model)
    if len(found) != 1:
        return ()
    used = {name for layout in found[0].layouts for name in layout}
    return tuple(profile for profile in found[0].profiles if profile.name in used)


def has_no_mig(model: str) -> bool:
    """The model is known to have no MIG."""
    words = _words(model)
    return bool(re.search(_table().without, words)) and not families(model)


def _words(model: str) -> str:
    """A model's name in capitals, its parts separated by blanks: `A100-SXM4-80GB` → `A100 SXM4 80GB`."""
    return re.sub(r"[-_\s]+", " ", model.upper().removeprefix("NVIDIA")).strip()
