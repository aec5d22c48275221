"""The objects as files: for `kubectl apply -f`, `kubectl apply -k` and a repository."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml

from vgpuctl.model.install.template import Object
from vgpuctl.model.yaml_scalar import needs_quotes

KUSTOMIZATION = "kustomization.yaml"


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Writes texts of several lines as they are read, and quotes those that kubectl would take for numbers."""


def _text(dumper: Any, text: str) -> Any:
    style = "|" if "\n" in text else "'" if needs_quotes(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def text(objects: Sequence[Object]) -> str:
    """All objects in one text."""
    return "---\n".join(_yaml(item) for item in objects)


def files(objects: Sequence[Object]) -> dict[str, str]:
    """File name → text: one for each object, and a kustomization that names them in their order."""
    found = {f"{item['kind'].lower()}-{item['metadata']['name']}.yaml": _yaml(item) for item in objects}
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": list(found),
    }
    return {**found, KUSTOMIZATION: _yaml(kustomization)}


def _yaml(item: Object) -> str:
    return str(yaml.dump(item, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1000))
