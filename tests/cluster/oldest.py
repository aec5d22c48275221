"""The API of the oldest Kubernetes that vgpuctl supports, as JSON Schema; no server of it is needed.

Its OpenAPI document is part of the Go module k8s.io/kubernetes (14 MB, about 4 s once); it is kept beside the programs
of the bench.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema

from . import binaries
from .binaries import BenchMissingError

MODULE = "k8s.io/kubernetes@v1.20.15"
SUM = "h1:eGwdo4cRbRbi3AuFxQxzKz/uObB8nFt7eNhc3/KN4r0="
DOCUMENT = "api/openapi-spec/swagger.json"
_EITHER = {
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": ["integer", "string"],
    "io.k8s.apimachinery.pkg.api.resource.Quantity": ["number", "string"],
}


class Schemas:
    """The kinds of this API. Strict: a field that a type does not have is an error, where a server would drop it."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._definitions: dict[str, Any] = document["definitions"]
        self._names: dict[tuple[str, str], str] = {}
        for name, definition in self._definitions.items():
            if name in _EITHER:
                definition["type"] = _EITHER[name]
            elif "properties" in definition:
                definition["additionalProperties"] = False
            for kind in definition.get("x-kubernetes-group-version-kind", ()):
                version = "/".join(part for part in (kind["group"], kind["version"]) if part)
                self._names[version, kind["kind"]] = name

    def errors(self, item: Mapping[str, Any]) -> list[str]:
        """What is wrong with an object: path and reason."""
        name = self._names[item["apiVersion"], item["kind"]]
        schema = {"$ref": f"#/definitions/{name}", "definitions": self._definitions}
        found = jsonschema.Draft4Validator(schema).iter_errors(item)
        return [f"{error.json_path}: {error.message}" for error in found]


def find() -> Schemas:
    """Raises BenchMissingError where the document is not kept and there is no Go, RuntimeError where Go fails."""
    kept = binaries.CACHE / f"swagger-{MODULE.rpartition('@')[2]}.json"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="module-", dir=kept.parent) as scratch:
            (_download(Path(scratch)) / DOCUMENT).rename(kept)
    return Schemas(json.loads(kept.read_bytes()))


def _download(scratch: Path) -> Path:
    """The module's directory, below `scratch`."""
    go = shutil.which("go")
    if go is None:
        raise BenchMissingError(f"{MODULE} is fetched by Go, which is not installed")
    # A module cache of its own: the module is 72 MB unpacked, and one file of it is wanted.
    environment = {**os.environ, "GOMODCACHE": str(scratch), "GOFLAGS": "-modcacherw", "GOWORK": "off"}
    command = [go, "mod", "download", "-json", MODULE]
    done = subprocess.run(command, cwd=scratch, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{MODULE} cannot be fetched: {done.stdout}{done.stderr}")
    found = json.loads(done.stdout)
    if found["Sum"] != SUM:
        raise RuntimeError(f"{MODULE} is not the one that is known: {found['Sum']}, not {SUM}")
    return Path(found["Dir"])
