"""The tool's own version, as an Output."""

from __future__ import annotations

from vgpuctl.model.output import Output


class Version(Output, frozen=True, kw_only=True):
    """What `vgpuctl version` prints."""

    version: str
