"""Which driver a CUDA toolkit needs.

Source: NVIDIA's CUDA Toolkit release notes, table 3 (toolkit driver versions, Linux) and table 2 (minor-version
compatibility).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

Version = tuple[int, ...]


class Fit(str, Enum):
    """native: made for it. minor: by minor-version compatibility, without features that need a newer driver and
    without compiling PTX made by the newer toolkit. none: it does not start."""

    NATIVE = "native"
    MINOR = "minor"
    NONE = "none"


@dataclass(frozen=True)
class Needs:
    """The answer: how well it fits, and the driver versions that native use and a bare start need ("" when unknown)."""

    fit: Fit
    native: str
    least: str


_NATIVE = {
    "9.0": "384.81",
    "9.2": "396.26",
    "10.0": "410.48",
    "10.1": "418.39",
    "10.2": "440.33",
    "11.0": "450.51.06",
    "11.1": "455.32",
    "11.2": "460.32.03",
    "11.3": "465.19.01",
    "11.4": "470.57.02",
    "11.5": "495.29.05",
    "11.6": "510.47.03",
    "11.7": "515.48.07",
    "11.8": "520.61.05",
    "12.0": "525.60.13",
    "12.1": "530.30.02",
    "12.2": "535.86.09",
    "12.3": "545.23.08",
    "12.4": "550.54.15",
    "12.5": "555.42.06",
    "12.6": "560.35.03",
    "12.8": "570.124.06",
    "12.9": "575.57.08",
    "13.0": "580.65.06",
}
_FAMILY = {11: "450.80.02", 12: "525.60.13", 13: "580.65.06"}


def version(text: str) -> Version:
    """`470.57.02` as numbers, for comparison. Raises ValueError for what is not a version."""
    return tuple(int(part) for part in text.split("."))


def needs(toolkit: str, driver: str, offered: str = "") -> Needs:
    """Whether a toolkit, such as `11.4`, runs on a driver version.

    offered: the newest CUDA version that the driver itself claims, which decides for toolkits younger than the table.
    Raises ValueError for what is not a version.
    """
    major, minor = (*version(toolkit), 0)[:2]
    native = _NATIVE.get(f"{major}.{minor}", "")
    least = _FAMILY.get(major, native)
    here = version(driver)
    if (native and here >= version(native)) or (offered and version(offered)[:2] >= (major, minor)):
        return Needs(Fit.NATIVE, native, least)
    if least and here >= version(least):
        return Needs(Fit.MINOR, native, least)
    return Needs(Fit.NONE, native, least)
