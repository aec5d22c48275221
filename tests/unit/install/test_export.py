"""Exported objects are read back as they are, by PyYAML and by kubectl."""

from __future__ import annotations

from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from vgpuctl.model.document import read_yaml
from vgpuctl.model.install import export
from vgpuctl.model.install.manifests import manifests
from vgpuctl.model.install.options import Options

NUMBERS = st.sampled_from(
    ["1e3", "13229e34", "0o17", "010", "1_000", "0x1F", ".5", "+1", "y", "N", "on", "null", "~", ""]
)
TEXTS = NUMBERS | st.from_regex(r"[a-z0-9.\-]{1,12}", fullmatch=True) | st.text(max_size=30)
OBJECT = {"apiVersion": "v1", "kind": "ConfigMap"}


def as_kubectl_does(text: str) -> list[Any]:
    roots = [document.root for document in read_yaml(text)]
    return [root.plain() for root in roots if root is not None]


@given(st.dictionaries(TEXTS, TEXTS, max_size=4))
def test_texts_stay_texts(data: dict[str, str]) -> None:
    item = {**OBJECT, "metadata": {"name": "x", "labels": data}}
    written = export.text([item, item])
    assert list(yaml.safe_load_all(written)) == [item, item]
    assert as_kubectl_does(written) == [item, item]


def test_a_kustomization_names_each_file_in_the_order_of_application() -> None:
    objects = manifests(Options(namespace="gpu", monitoring="ServiceMonitor"), {"x86_64": b"x"})
    files = export.files(objects)
    kustomization = yaml.safe_load(files.pop("kustomization.yaml"))
    assert kustomization["resources"] == list(files)
    assert [yaml.safe_load(text) for text in files.values()] == objects
