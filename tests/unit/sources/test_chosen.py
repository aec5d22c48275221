"""Objects in memory are narrowed as an API server narrows its lists."""

from __future__ import annotations

from typing import Any

import pytest

from vgpuctl.sources.chosen import chosen

POD = {"kind": "Pod"}
EVENTS: list[Any] = [
    {"metadata": {"name": "a", "namespace": "x", "labels": {"app": "one"}}, "type": "Warning", "involvedObject": POD},
    {"metadata": {"name": "b", "namespace": "x", "labels": {"app": "two"}}, "type": "Normal", "involvedObject": POD},
    {"metadata": {"name": "c", "namespace": "y", "labels": None}, "type": "Warning", "involvedObject": None},
    {"metadata": {"name": "d"}},
    {"metadata": None},
    {},
    5,
]  # fmt: skip


@pytest.mark.parametrize(
    ("namespace", "query", "names"),
    [
        ("", None, "abcd"),
        ("x", None, "ab"),
        ("", {"labelSelector": "app"}, "ab"),
        ("", {"labelSelector": "app=one"}, "a"),
        ("", {"labelSelector": "app!=one"}, "bcd"),
        ("", {"fieldSelector": "metadata.name=b"}, "b"),
        ("", {"fieldSelector": "metadata.name==b"}, "b"),
        ("", {"fieldSelector": "metadata.name!=b"}, "acd"),
        ("x", {"fieldSelector": "type=Warning"}, "a"),
        ("", {"fieldSelector": "involvedObject.kind=Pod,type=Warning"}, "a"),
        ("", {"fieldSelector": "type=Warning", "labelSelector": "!app"}, "c"),
        ("z", {}, ""),
    ],
)
def test_what_is_chosen(namespace: str, query: dict[str, str] | None, names: str) -> None:
    assert "".join(item["metadata"]["name"] for item in chosen(EVENTS, namespace, query)) == names
