"""What is told of a change of the objects that are installed."""

from __future__ import annotations

from typing import Any

from tests.unit.quota.memory import MemoryCluster
from vgpuctl.model.changes import story
from vgpuctl.model.install.manifests import manifests
from vgpuctl.model.install.options import Options
from vgpuctl.tasks.install.objects import bring_about, target

OLD = {"x86_64": "a1" * 32, "aarch64": "b2" * 32}
NEW = {**OLD, "x86_64": "c3" * 32}
IMAGE = "registry.example.com/plugin:v2"


def plugin(digests: dict[str, str], image: str = Options().image) -> dict[str, Any]:
    return next(item for item in manifests(Options(image=image), {}, digests=digests) if item["kind"] == "DaemonSet")


def told(wanted: dict[str, Any], have: dict[str, Any]) -> str:
    plan = bring_about(MemoryCluster(), [wanted], {target(wanted): have})  # type: ignore[arg-type]
    (step,) = plan.steps
    return story(step.lines)  # type: ignore[union-attr]


def test_another_library_is_told_by_its_hash_and_once() -> None:
    assert told(plugin(NEW), plugin(OLD)) == "library for x86_64 a1a1a1a1a1 → c3c3c3c3c3"


def test_what_else_changes_is_told_too() -> None:
    found = told(plugin(NEW, IMAGE), plugin(OLD))
    assert found.endswith(", library for x86_64 a1a1a1a1a1 → c3c3c3c3c3")
    assert f"→ {IMAGE}" in found and "LIBRARIES" not in found


def test_the_same_library_hides_nothing() -> None:
    assert "vgpuctl.dev/template" in told(plugin(OLD, IMAGE), plugin(OLD))
