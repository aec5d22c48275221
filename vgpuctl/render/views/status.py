"""The view of Status: one screen, a line for each thing, what is wrong below its line."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from vgpuctl.model.install.drift import Difference, Drift
from vgpuctl.model.status import Library, Placed, Rollout, Status
from vgpuctl.render.grid import paint, plain
from vgpuctl.render.terminal import Terminal
from vgpuctl.render.view import Column, View
from vgpuctl.render.views.alike import some

_LABEL = 11
_UNKNOWN = "–"
_SHORT = 10
"""Characters of a hash that are shown."""


class _Line(NamedTuple):
    """label: of the thing, "" below it. text, and how it is meant (a style)."""

    label: str
    text: str
    style: str = ""


def _lines(output: Status, terminal: Terminal, wide: bool) -> Iterator[str]:
    for line in _screen(output, wide):
        label = paint(f"{line.label:<{_LABEL}}", "strong", terminal) if line.label else " " * _LABEL
        for number, text in enumerate(_wrapped(line.text, terminal)):
            yield f"{label if not number else ' ' * _LABEL} {paint(text, line.style, terminal)}"


def _wrapped(text: str, terminal: Terminal) -> list[str]:
    text = plain(text, terminal)
    if terminal.width is None:
        return [text]
    lead = " " * (len(text) - len(text.lstrip()))
    room = max(terminal.width - _LABEL - 1, 30)
    return textwrap.wrap(text, room, subsequent_indent=f"{lead}  ", break_long_words=False, break_on_hyphens=False)


def _screen(output: Status, wide: bool) -> Iterator[_Line]:
    yield _Line("source", output.source)
    yield from _vgpuctl(output, wide)
    versions = output.versions
    yield _Line("Kubernetes", versions.kubernetes or _UNKNOWN)
    yield _Line("Volcano", versions.volcano or _UNKNOWN)
    absent = _UNKNOWN if output.rollouts is None else "no DaemonSet of the vGPU device plugin"
    yield _Line("plugin", versions.plugin or absent)
    for number, library in enumerate(output.libraries):
        yield _Line("" if number else "library", _library(library, wide))
    for item in output.rollouts or ():
        yield from _rollout(item, wide)
    yield from _placed(output.placed, wide)
    yield _Line("registered", _size(output))
    yield from _drift(output)
    yield from _verdict(output)


def _vgpuctl(output: Status, wide: bool) -> Iterator[_Line]:
    installed, versions = output.installed, output.versions
    if installed is None:
        told = _UNKNOWN if output.installed_reason else "has installed nothing here"
        yield _Line("vgpuctl", f"{told} (this is {versions.program})")
        return
    this = "" if versions.release == versions.program else f" (this is {versions.program})"
    half = installed.phase != "installed"
    words = (
        f"{installed.phase}, {installed.at_work} is at it" if installed.at_work else f"interrupted {installed.phase}"
    )
    told = f"{versions.release}{this}, {words if half else 'installed'} in {installed.namespace}"
    yield _Line("vgpuctl", told, "warn" if half else "")
    if wide and installed.options:
        yield _Line("", ", ".join(f"{name}: {_said(value)}" for name, value in installed.options.items()), "dim")


def _said(value: object) -> str:
    return ", ".join(f"{key}={item}" for key, item in value.items()) if isinstance(value, dict) else str(value)


def _library(item: Library, wide: bool) -> str:
    if item.release is None:
        return f"{item.architecture}: none"
    if item.program is None:
        whose = "this vgpuctl carries none to compare it with"
    elif item.program == item.release:
        whose = "the one of this vgpuctl"
    else:
        whose = f"this vgpuctl has {_hash(item.program, wide)}, which an upgrade places"
    return f"{item.architecture}: {_hash(item.release, wide)}, {whose}"


def _hash(text: str, wide: bool) -> str:
    return text if wide else text[:_SHORT]


def _rollout(item: Rollout, wide: bool) -> Iterator[_Line]:
    owner = f", of {item.owner}" if item.owner else ""
    counts = f"{item.desired} desired, {item.updated} updated, {item.ready} ready, {item.unavailable} unavailable"
    late = "" if item.current else "; its controller has not seen the newest specification yet"
    style = "good" if item.done else "bad" if any(trouble.stuck for trouble in item.troubles) else "warn"
    yield _Line("rollout", f"{counts} (DaemonSet {item.namespace}/{item.name}{owner}){late}", style)
    for trouble in item.troubles:
        where = f"{_nodes(trouble.nodes, wide)}: " if trouble.nodes else ""
        mark, style = ("!", "bad") if trouble.stuck else ("…", "warn")
        yield _Line("", f"{mark} {where}{trouble.reason}", style)


def _nodes(names: Sequence[str], wide: bool) -> str:
    known = [name or "(no node)" for name in names]
    return ", ".join(known) if wide else some(known)


def _placed(found: Sequence[Placed], wide: bool) -> Iterator[_Line]:
    for number, item in enumerate(found):
        label = "" if number else "on nodes"
        count = f"{len(item.nodes)} node{'' if len(item.nodes) == 1 else 's'}"
        if item.sha256 is None:
            yield _Line(label, f"{count}: library unknown, {item.reason}: {_nodes(item.nodes, wide)}", "warn")
        elif item.wanted is False:
            yield _Line(
                label, f"{count}: another library, {_hash(item.sha256, wide)}: {_nodes(item.nodes, wide)}", "warn"
            )
        else:
            names = f": {_nodes(item.nodes, wide)}" if wide else ""
            yield _Line(label, f"{count}: library {_hash(item.sha256, wide)}{names}")


def _size(output: Status) -> str:
    size = output.pool
    if size is None:
        return _UNKNOWN
    if not size.nodes:
        return "no card"
    bad = f"; {size.unhealthy} unhealthy" if size.unhealthy else ""
    return f"{size.cards} cards with {size.vgpus} vGPUs on {size.nodes} nodes{bad}"


def _drift(output: Status) -> Iterator[_Line]:
    if output.drift is None:
        if output.installed:
            yield _Line("drift", f"not judged: {output.drift_reason}", "warn")
        return
    if not output.drift:
        yield _Line("drift", "none: every object is as it was installed", "good")
    for number, item in enumerate(output.drift):
        yield _Line("" if number else "drift", str(item.target) + (" is missing" if item.missing else ""), "bad")
        for value in item.differences:
            yield _Line("", f"  {value.path}: is {_value(value)}, wanted {value.wanted}{_by(value)}")


def _value(value: Difference) -> str:
    return "not there" if value.live is None else value.live


def _by(value: Difference) -> str:
    if not value.by:
        return ""
    when = time.strftime(" at %Y-%m-%d %H:%M:%SZ", time.gmtime(value.at)) if value.at is not None else ""
    return f" (last changed by {value.by}{when})"


def _verdict(output: Status) -> Iterator[_Line]:
    for line in output.unread:
        yield _Line("not known", line, "warn")
    for line in output.findings:
        yield _Line("wrong", line, "bad")
    if not output.findings and not output.unread and output.drift is not None:
        if output.pool and not output.pool.nodes and any(item.ready for item in output.rollouts or ()):
            yield _Line("", "the plugin runs, and no node registers a card yet; if it stays so: vgpuctl doctor", "warn")
            return
        done = all(item.done for item in output.rollouts or ())
        yield _Line("", "all is as it should be" if done else "nothing is wrong; the rollout is under way", "good")


def _rows(output: Status) -> list[Drift]:
    return output.drift or []


VIEWS = {"Status": View(rows=_rows, columns=(Column("OBJECT", lambda row: str(row.target)),), lines=_lines)}
