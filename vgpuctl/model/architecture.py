"""Generations of NVIDIA GPUs, as data: by compute capability, by PCI device id, by model name.

Sources: NVIDIA's CUDA GPU list (compute capabilities), the pci.ids database (device ids), NVIDIA's driver support
announcements (last branches: 470 for Kepler, 580 for Maxwell, Pascal and Volta).
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Architecture:
    """One generation. capabilities: compute capabilities (major, minor). last_branch: the last driver branch that
    drives it, None while it is current. names: what its models are called."""

    name: str
    capabilities: tuple[tuple[int, int], ...]
    last_branch: int | None
    ids: tuple[tuple[int, int], ...]
    names: str


_KEPLER_IDS = ((0x0FC0, 0x0FFF), (0x1001, 0x103F), (0x1180, 0x12BF))
_MAXWELL_IDS = ((0x1340, 0x143F), (0x1617, 0x161A), (0x1667, 0x1667), (0x174D, 0x179C), (0x17C0, 0x17FF))
_PASCAL_IDS = ((0x15F0, 0x15FF), (0x1725, 0x172F), (0x1B00, 0x1D7F))
_TURING_IDS = ((0x1E00, 0x1FFF), (0x2180, 0x21FF))
_AMPERE_IDS = ((0x2080, 0x20FF), (0x2200, 0x22FF), (0x2400, 0x25FF))
_BLACKWELL_IDS = ((0x2900, 0x29FF), (0x2B80, 0x2FFF), (0x3180, 0x31FF))

ARCHITECTURES = (
    Architecture("Kepler", ((3, 0), (3, 2), (3, 5), (3, 7)), 470, _KEPLER_IDS, r"K10|K20X?m?|K40m?|K80|K520|GT 7\d\d"),
    Architecture("Maxwell", ((5, 0), (5, 2), (5, 3)), 580, _MAXWELL_IDS, r"M4|M6|M10|M40|M60|GTX 9\d\d"),
    Architecture("Pascal", ((6, 0), (6, 1), (6, 2)), 580, _PASCAL_IDS, r"P4|P6|P40|P100|GTX 10\d\d|TITAN Xp?"),
    Architecture("Volta", ((7, 0), (7, 2)), 580, ((0x1D80, 0x1DFF),), r"V100S?|TITAN V|GV100"),
    Architecture(
        "Turing", ((7, 5),), None, _TURING_IDS, r"T4G?|T10|T40|RTX 20\d\d|GTX 16\d\d|TITAN RTX|Quadro RTX \d+"
    ),
    Architecture(
        "Ampere", ((8, 0), (8, 6), (8, 7)), None, _AMPERE_IDS, r"A2|A10G?|A16|A30|A40|A100|A800|RTX 30\d\d|RTX A\d+"
    ),
    Architecture("Ada", ((8, 9),), None, ((0x2600, 0x28FF),), r"L2|L4|L20|L40S?|RTX 40\d\d|RTX \d+ Ada"),
    Architecture("Hopper", ((9, 0),), None, ((0x2300, 0x23FF),), r"H20|H100|H200|H800|GH200"),
    Architecture(
        "Blackwell",
        ((10, 0), (10, 1), (10, 3), (11, 0), (12, 0), (12, 1)),
        None,
        _BLACKWELL_IDS,
        r"B100|B200|B300|GB10|GB200|GB300|RTX 50\d\d|RTX PRO \d+",
    ),
)
"""Oldest first."""


def by_capability(major: int, minor: int) -> Architecture | None:
    """The architecture of a compute capability, None when it is newer than this table."""
    return next((a for a in ARCHITECTURES if (major, minor) in a.capabilities), None)


def by_device_id(device: int) -> Architecture | None:
    """The architecture of a PCI device id (vendor 10de), None when unknown."""
    return next((a for a in ARCHITECTURES if any(low <= device <= high for low, high in a.ids)), None)


def by_model(model: str) -> Architecture | None:
    """The architecture of a model name, such as `NVIDIA A100-SXM4-80GB` or `Tesla T4`, None when unknown."""
    words = re.sub(r"[-_/]", " ", model)
    hits = [a for a in ARCHITECTURES if re.search(rf"(?<!\w)(?:{a.names})(?!\w)", words)]
    return hits[-1] if hits else None
