"""References to container images: `[registry/]repository[:tag][@digest]`."""

from __future__ import annotations

import re

_PART = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_REFERENCE = re.compile(
    r"(?P<registry>(?:localhost|[A-Za-z0-9-]+(?=[.:])[A-Za-z0-9.-]*)(?::\d{1,5})?/)?"
    rf"(?P<repository>{_PART}(?:/{_PART})*)"
    r"(?P<tag>:[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?"
    r"(?P<digest>@sha256:[0-9a-f]{64})?"
)
REGISTRY = re.compile(rf"[A-Za-z0-9][A-Za-z0-9.-]*(?::\d{{1,5}})?(?:/{_PART})*")
"""A registry, which may have a path."""


def wrong(reference: str) -> str:
    """Why an image cannot be used, "" when it can: what it is must be fixed, by a tag or a digest."""
    found = _REFERENCE.fullmatch(reference)
    if not found:
        return "no image reference, such as docker.io/projecthami/volcano-vgpu-device-plugin:v1.12.0"
    if not found["digest"] and found["tag"] in (None, ":latest"):
        return "it names no version: add a tag other than latest, or a digest"
    return ""


def from_registry(reference: str, registry: str) -> str:
    """The same image in another registry; "" leaves it where it is. Raises ValueError for no reference."""
    found = _REFERENCE.fullmatch(reference)
    if not found:
        raise ValueError(reference)
    return f"{registry}/{reference[found.start('repository') :]}" if registry else reference
