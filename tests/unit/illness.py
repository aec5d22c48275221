"""Ways to make the healthy pool of `pools` ill, and what a check says of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from tests.unit import pools
from tests.unit.pools import Objects
from vgpuctl.checks.check import Options, Result, Status, run_checks
from vgpuctl.checks.registry import all_checks
from vgpuctl.model.facts import Facts

AREAS = ("cluster", "plugin", "volcano", "config", "quota", "pods")
CHECKS = {check.id: check for check in all_checks() if check.area in AREAS}
LATE = "2026-05-28T12:00:00Z"
"""After everything started."""


def outcome(check: str, facts: Facts) -> tuple[str, str]:
    """The worst status of a check, and all that its results say."""
    results = [item.result for item in run_checks([CHECKS[check]], facts, Options())]
    rank = (Status.FAIL, Status.UNKNOWN, Status.WARN, Status.SKIP, Status.PASS)
    worst = min((result.status for result in results), key=rank.index)
    return worst.value, " | ".join(_text(result) for result in results)


def _text(result: Result) -> str:
    return " ".join([result.subject, result.summary, *(f"{e.source} {e.text}" for e in result.evidence), result.remedy])


class Case(NamedTuple):
    """One row: the check, what is the case, how the healthy objects differ, the wanted status, words of the result."""

    check: str
    name: str
    change: Callable[[Objects], object]
    status: str
    words: tuple[str, ...] = ()


def nodes(change: Callable[[dict[str, Any]], object], which: int = 0) -> Callable[[Objects], object]:
    return lambda found: change(found["nodes"][which])


def annotate(**values: str | None) -> Callable[[Objects], object]:
    """Annotations of gpu-1 by short name; None removes one."""
    keys = {
        "register": "volcano.sh/node-vgpu-register",
        "handshake": "volcano.sh/node-vgpu-handshake",
        "lock": "hamivgpu",
    }

    def change(found: Objects) -> None:
        kept = found["nodes"][0]["metadata"]["annotations"]
        for name, value in values.items():
            kept.pop(keys[name], None)
            if value is not None:
                kept[keys[name]] = value

    return change


def offer(**values: str | None) -> Callable[[Objects], object]:
    """What gpu-1 offers, by the last word of the resource's name."""

    def change(found: Objects) -> None:
        for key in ("allocatable", "capacity"):
            have = found["nodes"][0]["status"][key]
            have |= {f"volcano.sh/vgpu-{name}": value for name, value in values.items() if value is not None}
            for name, value in values.items():
                if value is None:
                    have.pop(f"volcano.sh/vgpu-{name}")

    return change


def add(part: str, *items: dict[str, Any]) -> Callable[[Objects], object]:
    return lambda found: found[part].extend(items)


def only(part: str, *items: dict[str, Any]) -> Callable[[Objects], object]:
    return lambda found: found.update({part: list(items)})


def each(*changes: Callable[[Objects], object]) -> Callable[[Objects], object]:
    return lambda found: [change(found) for change in changes]


def text(name: str, value: str) -> Callable[[Objects], object]:
    """The text of one of the three ConfigMaps, by the middle word of its name."""

    def change(found: Objects) -> None:
        for item in found["configmaps"]:
            if name in item["metadata"]["name"]:
                item["data"] = dict.fromkeys(item["data"], value)

    return change


def edit(name: str, old: str, new: str) -> Callable[[Objects], object]:
    def change(found: Objects) -> None:
        for item in found["configmaps"]:
            if name in item["metadata"]["name"]:
                assert all(old in value for value in item["data"].values())
                item["data"] = {key: value.replace(old, new) for key, value in item["data"].items()}

    return change


def touched(name: str, time: str) -> Callable[[Objects], object]:
    """The time at which a ConfigMap was last changed."""

    def change(found: Objects) -> None:
        for item in found["configmaps"]:
            if name in item["metadata"]["name"]:
                item["metadata"]["managedFields"][0]["time"] = time

    return change


def own(pod: dict[str, Any], **annotations: str | None) -> dict[str, Any]:
    """A pod with other annotations of the scheduler, by the last words of their names."""
    kept = pod["metadata"].setdefault("annotations", {})
    for name, value in annotations.items():
        key = f"volcano.sh/{name.replace('_', '-')}"
        kept.pop(key, None)
        if value is not None:
            kept[key] = value
    return pod


def with_env(pod: dict[str, Any], name: str, value: str) -> dict[str, Any]:
    pod["spec"]["containers"][0]["env"] = [{"name": name, "value": value}]
    return pod


def daemonset(**status: int) -> Callable[[Objects], object]:
    return lambda found: found["daemonsets"][0]["status"].update(status)


def image(tag: str) -> Callable[[Objects], object]:
    """The scheduler's version."""

    def change(found: Objects) -> None:
        for item in (*found["pods"], found["deployments"][0]["spec"]["template"]):
            for container in item["spec"]["containers"]:
                if "vc-scheduler" in container["image"]:
                    container["image"] = f"volcanosh/vc-scheduler:{tag}"

    return change


def scheduler(change: Callable[[dict[str, Any]], object]) -> Callable[[Objects], object]:
    return lambda found: change(next(item for item in found["pods"] if "scheduler" in item["metadata"]["name"]))


def filtered(key: str, value: object) -> Callable[[Objects], object]:
    return text("node-config", json.dumps({"nodeconfig": [{"name": "gpu-1", key: value}]}))


MIG = "  knownMigGeometries:\n  - models: [A30]\n    allowedGeometries:\n    - group: g\n      geometries:\n      - "


def mig(instance: str) -> Callable[[Objects], object]:
    return text("device-config", f"{pools.DEVICE_CONFIG}{MIG}{instance}\n")


def run(case: Case) -> None:
    """The case's check gives the wanted status, and says the wanted words."""
    status, text = outcome(case.check, pools.pool(case.change))
    assert status == case.status, text
    for words in case.words:
        assert words in text
