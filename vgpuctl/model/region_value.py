"""Decoding of values in the shared files, by `model.region_layout`."""

from __future__ import annotations

import struct

from vgpuctl.model.region_layout import Field


def number(data: bytes, field: Field, index: int = 0, base: int = 0) -> int:
    """The index-th value of a number field of the record at `base`."""
    value: int = struct.unpack_from(field.format, data, base + field.offset + index * field.stride)[0]
    return value


class NotReady(ValueError):
    """The file is there, but nobody has filled it yet."""


def name(data: bytes, field: Field, index: int = 0, base: int = 0) -> str:
    """The index-th text of a field: UTF-8 up to the first NUL; what is not UTF-8 is replaced."""
    raw: bytes = struct.unpack_from(field.format, data, base + field.offset + index * field.stride)[0]
    return raw.split(b"\0", 1)[0].decode("utf-8", "replace")
