"""What differs between the versions of Volcano (docs/contract.md §1, §4)."""

from __future__ import annotations

from vgpuctl.model.version_number import VersionNumber


def fixed_names(version: VersionNumber) -> bool:
    """It reads a node's vGPUs under their fixed names: a pool with renamed resources has none for it."""
    later = version >= VersionNumber("1.15.0-alpha.0")
    return version >= VersionNumber("1.15.1" if later else "1.14.3")


def wants_handshake(version: VersionNumber) -> bool:
    """It sees no vGPU on a node whose plugin writes no handshake."""
    return version <= VersionNumber("1.14.2") or version == VersionNumber("1.15.0")
