"""JSON, indented, keys as the schema has them."""

from __future__ import annotations

import msgspec

from vgpuctl.model.output import Output
from vgpuctl.render.terminal import Terminal


def render(output: Output, terminal: Terminal) -> str:
    return msgspec.json.format(msgspec.json.encode(output), indent=2).decode()
