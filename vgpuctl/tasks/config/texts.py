"""The configurations in files, taken out of their ConfigMaps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from vgpuctl.model.config.configmap import configmap
from vgpuctl.model.config.kind import Kind, kind_of, kind_of_text
from vgpuctl.model.context import Context
from vgpuctl.model.manifest import manifests, read_text
from vgpuctl.model.problem import Exit, Problem


@dataclass(frozen=True)
class Found:
    """A configuration in a file. namespace and name: of the ConfigMap around it, "" for a bare one."""

    file: str
    kind: Kind
    text: str
    namespace: str = ""
    name: str = ""


def found_in(texts: Iterable[tuple[str, str]], kind: Kind | None = None) -> list[Found]:
    """The configurations in (file name, text) pairs. Raises Problem for a file without any, and when one kind is there
    twice. kind: what a bare text is where its own words do not tell."""
    found = []
    for file, text in texts:
        here = list(_in_file(file, text, kind))
        if not here:
            raise Problem(
                f"{file} holds no device config, node config or scheduler configuration",
                remedy="vgpuctl config validate says what is in it",
                exit_code=Exit.FINDINGS,
            )
        found += here
    for one in found:
        twice = [other.file for other in found if other.kind is one.kind]
        if len(twice) > 1:
            raise Problem(f"there are {len(twice)} {one.kind.title}s", ", ".join(twice), "give one", Exit.USAGE)
    return found


def _in_file(file: str, text: str, kind: Kind | None) -> Iterator[Found]:
    body = text.removeprefix("\ufeff")
    documents = read_text(body, file)
    wrapped = [
        (manifest, inner)
        for manifest in manifests(documents, file)
        if manifest.kind == "ConfigMap" and (inner := configmap(manifest, Context(), kind))
    ]
    for manifest, inner in wrapped:
        if inner.text is not None:
            yield Found(file, inner.kind, inner.text.text, manifest.namespace, manifest.name)
    if wrapped:
        return
    bare = kind_of(documents[0].root) or kind or kind_of_text(body)
    if bare:
        yield Found(file, bare, text)
