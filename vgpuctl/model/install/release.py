"""The record of an installation, a ConfigMap in kube-system.

Rule: it is the first object that an installation writes and the last that its removal deletes, so that a command that
was interrupted is recognised and taken to the same end.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from vgpuctl import __version__
from vgpuctl.model import configmaps
from vgpuctl.model.change import Target
from vgpuctl.model.install.manifests import PART_OF, VERSION
from vgpuctl.model.install.options import Options
from vgpuctl.model.install.template import Object
from vgpuctl.model.output import Item
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.model.quota.team import MANAGED_BY, MANAGER

NAME: Final = "vgpuctl-release"
PLACE: Final = Target("ConfigMap", NAME, configmaps.PLUGIN_NAMESPACES[0])
"""Always there, since the namespace of an installation may be one that it makes."""
KEY: Final = "release.json"

Phase = Literal["installing", "installed", "upgrading", "uninstalling"]
COMMANDS: Final[Mapping[str, str]] = {"installing": "install", "upgrading": "upgrade", "uninstalling": "uninstall"}
"""Phase → the command that is under way, and that finishes it."""


class Backup(Item, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was there before vgpuctl changed something of others. path: a JSON pointer into the object, "" for the whole
    of it. before: None when there was nothing. after: what vgpuctl wrote there, by which a later change is seen."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    path: str = ""
    before: Any = None
    after: Any = None


class Former(Item, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The installation before an upgrade, to go back to. version: of vgpuctl. plugin: its DaemonSet as applied."""

    version: str
    options: Options = Options()
    plugin: dict[str, Any] = {}


class Holder(Item, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The command that is at work. who: the user as the API server knows him. host, pid: where it runs; space: to which
    namespace of processes the pid belongs, "" where there is but one. since, until: when it began, and when it will
    have ended one way or the other, Unix seconds."""

    who: str
    host: str
    pid: int
    space: str = ""
    since: float
    until: float


class Release(Item, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """version: of the vgpuctl that wrote it. former: None when there was no upgrade. holder: None when nobody is at
    work; the whole record is tested when it is written, so it is the lock too."""

    version: str = __version__
    phase: Phase
    options: Options = Options()
    backups: tuple[Backup, ...] = ()
    former: Former | None = None
    holder: Holder | None = None


def text(release: Release) -> str:
    """The record as it is kept."""
    return msgspec.json.format(msgspec.json.encode(release), indent=2).decode() + "\n"


def config_map(release: Release) -> Object:
    """The object that keeps the record."""
    labels = {MANAGED_BY: MANAGER, PART_OF: MANAGER, VERSION: release.version}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": NAME, "namespace": PLACE.namespace, "labels": labels},
        "data": {KEY: text(release)},
    }


def decode(found: Mapping[str, Any]) -> Release:
    """The record in a ConfigMap as the API gives it. Raises Problem when it is none that this vgpuctl can read."""
    metadata = found.get("metadata") or {}
    place = f"ConfigMap {metadata.get('namespace')}/{metadata.get('name')}"
    try:
        return msgspec.json.decode((found.get("data") or {})[KEY].encode(), type=Release)
    except KeyError:
        why = f"it has no key {KEY}"
    except (msgspec.DecodeError, Problem) as error:
        why = str(error)
    remedy = (
        "use the vgpuctl that wrote it, or a newer one"
        if "unknown field" in why
        else "restore it, or delete it and run `vgpuctl install` again"
    )
    raise Problem(f"{place} is no record of an installation that this vgpuctl can read", why, remedy, Exit.FINDINGS)
