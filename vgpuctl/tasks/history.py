"""Keeps and reads who changed what: an Event at the object, and a line in a ConfigMap.

ConfigMap `vgpuctl-history` in kube-system: key = time (UTC), value = JSON, the last 500, fewer where they are long.
Recording is best effort: a change that was made stays made when it cannot be recorded.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import Any, Final

import msgspec

from vgpuctl.model.change import Change, How, Target
from vgpuctl.model.changes import story
from vgpuctl.model.history import PLACE, History, Line, Wanted, entries
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.sources.source import Objects, Writer

KEPT: Final = 500
ROOM: Final = 900_000
"""Bytes of all lines: the API server refuses a ConfigMap of more than 1 MiB."""
_LONGEST: Final = 1500
_TRIES: Final = 4
_BATCH: Final = 50


class Recorder:
    """Collects the changes of one run; `flush` writes what is left. warn: takes the one warning when it fails."""

    def __init__(self, cluster: Writer, warn: Callable[[str], None], now: Callable[[], float]) -> None:
        self.cluster = cluster
        self.warn = warn
        self.now = now
        self._who: str | None = None
        self._lines: dict[str, str] = {}
        self._warned = False

    def add(self, change: Change, uid: str = "") -> None:
        """Records one change that was made."""
        when = datetime.fromtimestamp(self.now(), timezone.utc)
        key = f"{when:%Y%m%dT%H%M%S}.{when.microsecond:06d}Z"
        while key in self._lines:
            key = f"{key[:-1]}0Z"
        line = Line(
            time=f"{when:%Y-%m-%dT%H:%M:%SZ}",
            who=self.who(),
            what=_text(str(change.target)),
            how=change.how.value,
            change=_text(story(change.lines) or _deed(change)),
            undo=_text(change.undo),
        )
        self._lines[key] = msgspec.json.encode(line).decode()
        self._event(change, line, uid)
        if len(self._lines) >= _BATCH:
            self.flush()

    def who(self) -> str:
        """The user as the API server knows us, else the name on this machine."""
        if self._who is None:
            try:
                review = self.cluster.create(Target("SelfSubjectReview", "", "", "authentication.k8s.io/v1"), {})
                self._who = str(review["status"]["userInfo"]["username"])
            except (Problem, KeyError, TypeError):
                self._who = f"{os.environ.get('USER') or os.environ.get('LOGNAME') or 'unknown'} (on this machine)"
        return self._who

    def flush(self) -> None:
        """Writes the lines that are not written yet."""
        lines, self._lines = self._lines, {}
        if lines:
            self._store(lines, _TRIES)

    def _store(self, lines: dict[str, str], tries: int) -> None:
        try:
            self._append(lines)
        except Problem as problem:
            if problem.exit_code is Exit.FINDINGS and tries > 1:  # someone else wrote at the same time
                self._store(lines, tries - 1)
            else:
                self._fail(problem)

    def _append(self, lines: dict[str, str]) -> None:
        current = self.cluster.get(PLACE)
        if current is None:
            body = {"metadata": {"name": PLACE.name, "namespace": PLACE.namespace}, "data": dict(lines)}
            self.cluster.create(PLACE, body)
            return
        data = current.get("data") or {}
        kept = _newest({**data, **lines})
        operations: list[dict[str, Any]] = [] if data else [{"op": "add", "path": "/data", "value": {}}]
        operations += [
            {"op": "add", "path": f"/data/{key}", "value": text} for key, text in lines.items() if key in kept
        ]
        operations += [{"op": "remove", "path": f"/data/{_pointer(key)}"} for key in data if key not in kept]
        version = str(current["metadata"].get("resourceVersion", ""))
        self.cluster.write(Change(PLACE, How.PATCH, operations, resource_version=version))

    def _event(self, change: Change, line: Line, uid: str) -> None:
        target = change.target
        namespace = target.namespace or "default"
        body = {
            "metadata": {"generateName": "vgpuctl-", "namespace": namespace},
            "involvedObject": {
                "apiVersion": target.api_version,
                "kind": target.kind,
                "name": target.name,
                **({"namespace": target.namespace} if target.namespace else {}),
                **({"uid": uid} if uid else {}),
            },
            "type": "Normal",
            "reason": "Deleted" if change.how is How.DELETE else "Changed",
            "message": f"{line.who} by vgpuctl: {line.change}"[:1000],
            "source": {"component": "vgpuctl"},
            "firstTimestamp": line.time,
            "lastTimestamp": line.time,
            "count": 1,
        }
        try:
            self.cluster.create(Target("Event", "", namespace), body)
        except Problem as problem:
            self._fail(problem)

    def _fail(self, problem: Problem) -> None:
        if not self._warned:
            self._warned = True
            self.warn(f"the change is made, but could not be recorded: {'; '.join(problem.lines())}")


def _newest(lines: Mapping[str, str]) -> set[str]:
    """The keys of the lines that are kept: so many of the newest as there is room for."""
    kept: set[str] = set()
    room = ROOM
    for key in sorted(lines, reverse=True)[:KEPT]:
        room -= len(key) + len(lines[key].encode())
        if room < 0:
            break
        kept.add(key)
    return kept


def _deed(change: Change) -> str:
    """What was done, where no value tells it."""
    if change.how is How.DELETE:
        return "deleted"
    return "created" if change.before is None and change.how is not How.COMMAND else "changed"


def _text(text: str) -> str:
    """As a line keeps it; a path of this machine need not be Unicode."""
    return text[:_LONGEST].encode("utf-8", "replace").decode()


def _pointer(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def past(source: Objects, wanted: Wanted) -> History:
    """What vgpuctl changed, as far as it is kept. Raises Problem when that cannot be read."""
    found = source.get(PLACE)
    data = (found or {}).get("data")
    kept = entries(data if isinstance(data, dict) else {})
    return History(source=source.name, entries=wanted.of(kept), kept=len(kept))
