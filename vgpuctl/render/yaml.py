"""YAML: the same document as the JSON form."""

from __future__ import annotations

from typing import Any

import msgspec
import yaml

from vgpuctl.model.output import Output
from vgpuctl.model.yaml_scalar import needs_quotes
from vgpuctl.render.terminal import Terminal
from vgpuctl.render.text import escaped, valid


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Quotes texts that hold characters to be escaped, since only quoted ones can be, and those that other readers take
    for numbers."""


def _text(dumper: Any, text: str) -> Any:
    style = '"' if not text.isprintable() else "'" if needs_quotes(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def render(output: Output, terminal: Terminal) -> str:
    content = valid(msgspec.to_builtins(output))
    return escaped(str(yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1000)))
