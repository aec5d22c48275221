"""The preloaded library that travels with this vgpuctl."""

from __future__ import annotations

from vgpuctl import resources
from vgpuctl.model.install.options import Options
from vgpuctl.model.problem import Exit, Problem

_ARCHITECTURES = ("x86_64", "aarch64")


def libraries(options: Options) -> dict[str, bytes]:
    """architecture as `uname -m` says it → the library. Raises Problem when this vgpuctl carries none."""
    if options.shim == "upstream":
        return {}
    found = {}
    for architecture in _ARCHITECTURES:
        try:
            found[architecture] = resources.path(f"shim/build/{architecture}/libvgpu.so").read_bytes()
        except FileNotFoundError:
            continue
    if not found:
        raise Problem(
            "this vgpuctl carries no library",
            "it was built with VGPUCTL_NO_SHIM, or the library of this checkout is not built",
            "make shim, another wheel, or --shim upstream for the one in the plugin's image",
            Exit.UNKNOWN,
        )
    return found
