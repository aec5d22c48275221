"""JSON, indented, keys as the schema has them; characters that a terminal could act on are escaped."""

from __future__ import annotations

import msgspec

from vgpuctl.model.output import Output
from vgpuctl.render.terminal import Terminal
from vgpuctl.render.text import escaped, valid


def render(output: Output, terminal: Terminal) -> str:
    return escaped(msgspec.json.format(encode(output), indent=2).decode())


def line(output: Output) -> str:
    """The same on one line, for streams."""
    return escaped(encode(output).decode())


def encode(output: Output) -> bytes:
    """The JSON text; what is no Unicode (unpaired surrogates) is replaced."""
    try:
        return msgspec.json.encode(output)
    except UnicodeEncodeError:
        return msgspec.json.encode(valid(msgspec.to_builtins(output)))
