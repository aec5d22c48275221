"""Parsers of the texts that the kernel and the NVIDIA driver publish under /proc, and of `ls -l`.

Each takes the text and gives a value; a text that is not what it should be raises ValueError with the reason.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_KEY = re.compile(r"^(?P<key>[^:\n]+):[ \t]*(?P<value>.*)$", re.M)
_XID = re.compile(r"NVRM: Xid \(PCI:(?P<bus>[0-9a-fA-F:.]+)\): (?P<code>\d+)")
_LS = re.compile(
    r"^(?P<kind>[-dlcbps])(?P<mode>[-rwxsStT]{9})\S* +\d+ +(?P<uid>\S+) +(?P<gid>\S+)"
    r" +(?P<major>\d+)(?:, *(?P<minor>\d+))? .* (?P<name>\S+)$"
)


@dataclass(frozen=True)
class ModuleVersion:
    """The loaded kernel module. version: such as 580.159.04. open: the open kernel module."""

    version: str
    open: bool = False


@dataclass(frozen=True)
class Modules:
    """Loaded kernel modules by name (`-` in a name reads `_`)."""

    names: frozenset[str]

    def __contains__(self, name: str) -> bool:
        return name.replace("-", "_") in self.names


@dataclass(frozen=True)
class CardInfo:
    """A card in /proc/driver/nvidia/gpus. excluded: the driver was told to leave it alone."""

    model: str
    uuid: str
    bus: str
    minor: int | None = None
    excluded: bool = False


def module_version(text: str) -> ModuleVersion:
    """/proc/driver/nvidia/version."""
    line = next((line for line in text.splitlines() if line.startswith("NVRM version:")), "")
    found = re.search(r"\s(\d{3}\.\d+(?:\.\d+)?)(?=\s|$)", line)
    if not found:
        raise ValueError("no line `NVRM version: … <number>`")
    return ModuleVersion(found.group(1), "Open Kernel Module" in line)


def modules(text: str) -> Modules:
    """/proc/modules."""
    return Modules(frozenset(line.split()[0] for line in text.splitlines() if line.strip()))


def character_majors(text: str) -> dict[str, int]:
    """The character devices of /proc/devices: major by name."""
    body = text.split("Block devices:")[0]
    return {match.group(2): int(match.group(1)) for match in re.finditer(r"^ *(\d+) (\S+)$", body, re.M)}


def pairs(text: str) -> dict[str, str]:
    """Lines `Key: value`, as in params and information; the first of a repeated key counts."""
    found: dict[str, str] = {}
    for match in _KEY.finditer(text):
        found.setdefault(match.group("key").strip(), match.group("value").strip())
    return found


def card_info(text: str) -> CardInfo:
    """/proc/driver/nvidia/gpus/<address>/information."""
    values = pairs(text)
    if "Model" not in values:
        raise ValueError("no line `Model:`")
    minor = values.get("Device Minor", "")
    return CardInfo(
        model=values["Model"],
        uuid=values.get("GPU UUID", ""),
        bus=values.get("Bus Location", ""),
        minor=int(minor) if minor.isdigit() else None,
        excluded=values.get("GPU Excluded", "No") == "Yes",
    )


def xids(text: str) -> tuple[str, ...]:
    """The Xid lines of a kernel log, without their time."""
    return tuple(line[line.index("NVRM: Xid") :].strip() for line in text.splitlines() if _XID.search(line))


def xid_of(line: str) -> tuple[str, int]:
    """PCI address and number of an Xid line."""
    found = _XID.search(line)
    if not found:
        raise ValueError("not an Xid line")
    return found.group("bus"), int(found.group("code"))


@dataclass(frozen=True)
class Listed:
    """A line of `ls -l`. kind: the first letter. mode: permission bits. size: bytes, or the major of a device."""

    name: str
    kind: str
    mode: int
    size: int
    minor: int | None
    root: bool


def listing(text: str) -> tuple[Listed, ...]:
    """The entries of `ls -l`; the names after a line `directory:` get that directory in front."""
    found = []
    directory = ""
    for line in text.splitlines():
        if line.endswith(":") and not line.startswith(" "):
            directory = line[:-1] + "/"
            continue
        match = _LS.match(line)
        if match:
            minor = match.group("minor")
            found.append(
                Listed(
                    name=directory + match.group("name")
                    if not match.group("name").startswith("/")
                    else match.group("name"),
                    kind=match.group("kind"),
                    mode=_mode(match.group("mode")),
                    size=int(match.group("major")),
                    minor=int(minor) if minor else None,
                    root=match.group("uid") == "root" and match.group("gid") == "root",
                )
            )
    return tuple(found)


def _mode(text: str) -> int:
    """Permission bits of `rwxrwxrwt`."""
    bits = 0
    for position, letter in enumerate(text):
        if letter in "rwxst":
            bits |= 1 << (8 - position)
        if letter in "sStT":
            bits |= 0o4000 >> (position // 3)
    return bits
