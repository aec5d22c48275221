"""One thing to change, told before it is done: object, before, after, how, undo.

Tasks yield Changes; only `tasks.apply` carries them out, so preview, dry run, conflict, confirmation and history
exist once.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from vgpuctl.model.problem import Exit, Problem


class How(str, Enum):
    """The way a change is carried out."""

    APPLY = "server-side apply"
    """After is the whole object that we own; field manager `vgpuctl`."""
    PATCH = "json patch"
    """After is a list of JSON patch operations; guarded by a test of the resourceVersion."""
    CREATE = "create"
    """After is the whole object; refused when there is one."""
    MERGE = "merge patch"
    """After is the part that changes; null takes a value away. Carried out twice it is the same."""
    DELETE = "delete"
    """After is None, or options of the deletion such as `{"propagationPolicy": "Orphan"}`."""
    STATUS = "status"
    FILE = "file"
    """Target is a path on this machine; after is its new text, before its present one (None: there is no file), which
    is kept beside it as <path>.before."""
    BYTES = "bytes"
    """Target is a path on this machine; after is a Bytes."""
    FILES = "files"
    """Target is a directory on this machine; after is Files: all of them are written, or none."""
    COMMAND = "command"
    """After is an argument vector to run on this machine."""


@dataclass(frozen=True)
class Bytes:
    """Bytes to write into a file that others write too. guard: (offset, bytes) that must stand there at that moment,
    else nothing is written. keep: the file that gets what stood in their place."""

    offset: int
    after: bytes
    guard: tuple[tuple[int, bytes], ...]
    keep: str


@dataclass(frozen=True)
class Files:
    """Many files of a directory: name below it, bytes that must stand there (None: there is no file), new bytes."""

    texts: tuple[tuple[str, bytes | None, bytes], ...]


@dataclass(frozen=True)
class Target:
    """What is changed: a Kubernetes object (api_version, kind, namespace, name) or a file or command (kind `Host`)."""

    kind: str
    name: str
    namespace: str = ""
    api_version: str = "v1"

    def __str__(self) -> str:
        place = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {place}"


@dataclass(frozen=True)
class Line:
    """One value that changes, for the preview: a path such as `spec.hard["requests…"]`, old and new text.
    note: the new value as people read it, such as `200 GiB`."""

    path: str
    before: str | None
    after: str | None
    note: str = ""


@dataclass(frozen=True)
class Change:
    """lines: what the preview shows. before: the object as it was read (None: it does not exist). after: see How.
    resource_version: what `before` was, for the test. undo: the command that reverts it. why: one sentence.
    routine: of no meaning by itself, such as a pod that its controller makes anew or a note of how far a command came:
    neither asked about nor listed nor recorded."""

    target: Target
    how: How
    after: Any
    before: Any = None
    lines: tuple[Line, ...] = ()
    resource_version: str = ""
    undo: str = ""
    why: str = ""
    routine: bool = False


def changed_meanwhile(target: Target) -> Problem:
    """Somebody else wrote between our read and our write, which tested what was read."""
    return Problem(
        f"{target} was changed by someone else meanwhile", remedy="run the command again", exit_code=Exit.FINDINGS
    )
