"""Versions of Volcano and Kubernetes, compared as released: pre-releases come before their release."""

from __future__ import annotations

import re
from functools import total_ordering

_VERSION = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?(?:-?(alpha|beta|rc)\.?(\d+)?)?(?:[-+].*)?")
_STAGES = {"alpha": 0, "beta": 1, "rc": 2, None: 3}


@total_ordering
class VersionNumber:
    """A version such as `1.15.1`, `v1.16.0-alpha.0` or `v1.36.1+k3s1`. Raises ValueError for anything else."""

    def __init__(self, text: str) -> None:
        match = _VERSION.fullmatch(text.strip())
        if not match:
            raise ValueError(f"{text!r} is not a version such as 1.15.1")
        major, minor, patch, stage, number = match.groups()
        self.text = text.strip().removeprefix("v")
        self._key = (int(major), int(minor), int(patch or 0), _STAGES[stage], int(number or 0))

    @property
    def minor(self) -> int:
        """The second number."""
        return self._key[1]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VersionNumber) and self._key == other._key

    def __lt__(self, other: VersionNumber) -> bool:
        return self._key < other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"VersionNumber({self.text!r})"
