"""Runs a case of doctor/: its facts as a bundle, its kind as a check, the check's result against the expected one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from tests.cases.host import host_files
from vgpuctl.checks.check import Options, Status
from vgpuctl.checks.registry import all_checks
from vgpuctl.sources.bundle import Bundle
from vgpuctl.sources.machine import Machine
from vgpuctl.tasks.doctor import diagnose

KINDS: dict[str, tuple[str, ...]] = {
    "config-undecodable": ("geometries-configmap",),
    "filter-no-effect": ("filter-devices",),
    "request-as-annotation": ("limits",),
    "cgroup-driver-mismatch": ("cgroup-driver",),
    "stale-cdi": ("cdi-spec",),
    "cdi-names": ("cdi-spec",),
    "cdi-version": ("cdi-spec",),
    "guarantee-over-pool": ("queue-state",),
    "reload-not-enough": ("config-reload",),
    "scheduler-not-configured": ("scheduler-conf", "deviceshare-enabled"),
}
"""The kind of a case → the ids of the checks that find it; a kind that is not here is its own check's id."""

_FILES = {
    "queues": "queues",
    "daemonset": "daemonsets",
    "scheduler-deployment": "deployments",
    "quotas": "resourcequotas",
}
"""Names of a case's files → names of a bundle's; the others are the same in both."""
_STATUS = {
    "fail": (Status.FAIL,),
    "warn": (Status.WARN,),
    "pass": (Status.PASS, Status.SKIP),
    "skip": (Status.PASS, Status.SKIP),
}


def differences(case: Path) -> list[str]:
    """What differs from a case's expected.yaml, a line each; none when the case passes."""
    expected: dict[str, Any] = yaml.safe_load((case / "expected.yaml").read_text(encoding="utf-8"))
    wanted = KINDS.get(expected["kind"], (expected["kind"],))
    checks = [check for check in all_checks() if check.id in wanted]
    if not checks:
        return [f"no check {' or '.join(wanted)} for the kind {expected['kind']}"]
    outcomes = diagnose(_sources(case), checks, Options()).outcomes
    status = _worst([outcome.result.status for outcome in outcomes])
    if status in _STATUS[expected["result"]]:
        return []
    told = "; ".join(f"{outcome.result.subject} {outcome.result.summary}".strip() for outcome in outcomes)
    return [f"{' or '.join(wanted)}: {status.value} instead of {expected['result']}: {told}"]


def _worst(found: list[Status]) -> Status:
    ranks = (Status.FAIL, Status.UNKNOWN, Status.WARN, Status.PASS, Status.SKIP)
    return min(found, key=ranks.index)


def _sources(case: Path) -> tuple[Bundle | Machine, ...]:
    bundle = Bundle(case.name, dict(_members(case)))
    if not (case / "host").is_dir():
        return (bundle,)
    return (bundle, Machine.recorded(host_files(case), bundle.now()))


def _members(case: Path) -> list[tuple[str, bytes]]:
    """A case's files under the names that a bundle has for them."""
    members = []
    for path in sorted(case.iterdir()):
        if path.suffix == ".json":
            members.append((f"cluster/{_FILES.get(path.stem, path.stem)}.json", path.read_bytes()))
        elif path.suffix == ".log":
            members.append((f"logs/{path.name}", path.read_bytes()))
        elif path.name == "events.txt":
            members.append(("logs/events.txt", path.read_bytes()))
    versions = json.loads((case / "versions.json").read_text()) if (case / "versions.json").is_file() else {}
    if "kubernetes" in versions:
        members.append(("cluster/version.json", json.dumps({"gitVersion": versions["kubernetes"]}).encode()))
    return members
