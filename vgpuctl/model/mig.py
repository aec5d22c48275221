"""The slices into which MIG cuts a card, as the scheduler knows them when no other table is configured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Slice:
    """One kind of slice. name: as NVIDIA's, such as `1g.10gb`. memory: MiB that it really has."""

    name: str
    memory: int

    @property
    def nominal(self) -> int:
        """MiB that its name promises."""
        return int(self.name.partition(".")[2].removesuffix("gb")) * 1024


_SHIPPED: tuple[tuple[tuple[str, ...], tuple[Slice, ...]], ...] = (
    (("A30",), (Slice("1g.6gb", 6144), Slice("2g.12gb", 12288), Slice("4g.24gb", 24576))),
    (
        ("A100-SXM4-40GB", "A100-40GB-PCIe", "A100-PCIE-40GB"),
        (Slice("1g.5gb", 5120), Slice("2g.10gb", 10240), Slice("3g.20gb", 20480), Slice("7g.40gb", 40960)),
    ),
    (
        ("A100-SXM4-80GB", "A100-80GB-PCIe", "A100-PCIE-80GB"),
        (Slice("1g.10gb", 9728), Slice("2g.20gb", 19968), Slice("3g.40gb", 40192), Slice("7g.80gb", 80896)),
    ),
)


def slices_of(model: str) -> tuple[Slice, ...]:
    """The slices of a card by its model name; none when no table entry is contained in it."""
    return next((slices for models, slices in _SHIPPED if any(one in model for one in models)), ())
