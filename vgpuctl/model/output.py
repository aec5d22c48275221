"""The base of everything that a command puts on stdout.

A result is an `Output`: a msgspec struct whose JSON has `apiVersion`, a `kind` (the class name) and plain numbers in
base units (bytes, ratios, Unix seconds), null for what is unknown. `schemas/` is generated from these types.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

API_VERSION: Final = "vgpuctl.dev/v1"


class Item(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A part of an Output; its JSON keys are camelCase."""


class Output(msgspec.Struct, frozen=True, kw_only=True, rename="camel", tag_field="kind", tag=True):
    """A whole result. `source` names where the facts came from (a context, a node, a bundle, the demo)."""

    api_version: Literal["vgpuctl.dev/v1"] = API_VERSION
    source: str = ""
