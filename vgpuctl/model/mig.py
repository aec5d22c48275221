"""The slices that a pod may get on a card in MIG mode, from the one table of geometries."""

from __future__ import annotations

import re
from dataclasses import dataclass

from vgpuctl.model.config.mig import families


@dataclass(frozen=True)
class Slice:
    """One kind of slice. name: as NVIDIA's, such as `1g.10gb`. memory: MiB that the scheduler knows it to have."""

    name: str
    memory: int

    @property
    def nominal(self) -> int:
        """MiB that its name promises."""
        return int(re.sub(r"\D", "", self.name.partition(".")[2]) or 0) * 1024


def slices_of(model: str) -> tuple[Slice, ...]:
    """The slices of the usual layouts of a card, by its model name; none for a card without MIG or not known."""
    found = families(model)
    if len(found) != 1:
        return ()
    used = {name for layout in found[0].layouts for name in layout}
    return tuple(
        Slice(profile.name, profile.shipped or profile.memory) for profile in found[0].profiles if profile.name in used
    )
