"""The preloaded library in the cluster: one immutable ConfigMap for each architecture, named by what is in it.

Rule: whoever starts with a DaemonSet's pod template finds by it exactly one text of the library; a new library is a
new ConfigMap, and the old one stays as long as pods may need it.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Mapping
from typing import Final

from vgpuctl import resources
from vgpuctl.model.problem import Problem

ARCHITECTURES: Final = ("x86_64", "aarch64")
KEY: Final = "libvgpu.so.gz"
ARCHITECTURE: Final = "vgpuctl.dev/architecture"
SHA256: Final = "vgpuctl.dev/sha256"
"""Annotations that say what is in it."""


def built() -> dict[str, bytes]:
    """architecture → the library of this installation. Raises Problem when it has none."""
    try:
        return {name: resources.path(f"shim/build/{name}/libvgpu.so").read_bytes() for name in ARCHITECTURES}
    except FileNotFoundError as error:
        remedy = (
            "run `make shim`, install a wheel that has it, or take the library of the plugin's image: --shim upstream"
        )
        raise Problem(str(error), remedy=remedy) from None


def sha256(library: bytes) -> str:
    """What the node checks, after unpacking."""
    return hashlib.sha256(library).hexdigest()


def name(architecture: str, digest: str) -> str:
    """The ConfigMap's name. architecture: as `uname -m` says it. digest: the library's sha256."""
    return f"vgpuctl-shim-{architecture.replace('_', '-')}-{digest[:10]}"


def packed(library: bytes) -> str:
    """The library as `binaryData`: gzip without a time, base64."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    return base64.b64encode(packer.compress(library) + packer.flush()).decode()


def hashes(libraries: Mapping[str, bytes]) -> dict[str, str]:
    """architecture → sha256."""
    return {architecture: sha256(libraries[architecture]) for architecture in sorted(libraries)}


def text(digests: Mapping[str, str]) -> str:
    """The hashes as the placement script reads them: `aarch64:<sha256> x86_64:<sha256>`."""
    return " ".join(f"{architecture}:{digest}" for architecture, digest in digests.items())


def read(value: str) -> dict[str, str]:
    """The inverse of `text`; what is no pair is left out."""
    return dict(pair.split(":", 1) for pair in value.split() if ":" in pair)
