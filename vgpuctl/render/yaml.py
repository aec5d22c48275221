"""YAML: the same document as the JSON form."""

from __future__ import annotations

import msgspec
import yaml

from vgpuctl.model.output import Output
from vgpuctl.render.terminal import Terminal


def render(output: Output, terminal: Terminal) -> str:
    return str(yaml.safe_dump(msgspec.to_builtins(output), sort_keys=False, allow_unicode=True, width=1000))
