"""The record of an installation, a ConfigMap beside the plugin.

Rule: it is the first object that an installation writes and the last that its removal deletes, so that a command that
was interrupted is recognised and taken to the same end.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from vgpuctl import __version__
from vgpuctl.model.install.manifests import PART_OF, VERSION
from vgpuctl.model.install.options import Options
from vgpuctl.model.install.template import Object
from vgpuctl.model.output import Item
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.model.quota.team import MANAGED_BY, MANAGER

NAME: Final = "vgpuctl-release"
KEY: Final = "release.json"

Phase = Literal["installing", "installed", "upgrading", "uninstalling"]


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


class Release(Item, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """version: of the vgpuctl that wrote it. former: None when there was no upgrade."""

    version: str = __version__
    phase: Phase
    options: Options = Options()
    backups: tuple[Backup, ...] = ()
    former: Former | None = None


def config_map(release: Release) -> Object:
    """The object that keeps the record."""
    text = msgspec.json.format(msgspec.json.encode(release), indent=2).decode()
    labels = {MANAGED_BY: MANAGER, PART_OF: MANAGER, VERSION: release.version}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": NAME, "namespace": release.options.namespace, "labels": labels},
        "data": {KEY: text + "\n"},
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
