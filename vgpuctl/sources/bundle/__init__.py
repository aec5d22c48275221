"""A bundle: what somebody recorded of a cluster and its nodes, as a directory or a .tar.gz.

The rule of this package: a bundle comes from elsewhere. Nothing is unpacked; links, devices, paths that leave the
bundle and members beyond the limits are refused, and what is not recorded is missing, never empty.
"""

from vgpuctl.sources.bundle.bundle import Bundle, open_bundle

__all__ = ["Bundle", "open_bundle"]
