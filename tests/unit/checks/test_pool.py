"""What holds for every check of a pool."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit import pools
from tests.unit.checks import test_config, test_plugin, test_pods, test_volcano
from tests.unit.illness import CHECKS, outcome
from tests.unit.pools import pool
from vgpuctl.checks.check import Status
from vgpuctl.model.access import RIGHTS
from vgpuctl.model.facts import Part
from vgpuctl.model.reading import Reading, known, missing
from vgpuctl.model.usage.sample import Scrape

OPTIONAL = {("socket-directory", Part.HOST), ("mig-table", Part.HOST)}
"""Parts that a check does without, by skipping: they are there on a GPU node only."""
CASES = (*test_plugin.CASES, *test_volcano.CASES, *test_config.CASES, *test_pods.CASES)


@pytest.mark.parametrize("check", CHECKS)
def test_a_healthy_pool_passes(check: str) -> None:
    status, text = outcome(check, pool())
    assert status in ("pass", "skip"), text


@pytest.mark.parametrize(("check", "part"), [(check.id, part) for check in CHECKS.values() for part in check.needs])
def test_without_its_facts_a_check_is_unknown_with_the_reason(check: str, part: Part) -> None:
    status, text = outcome(check, pools.without(pool(), part, "no permission for this"))
    if (check, part) in OPTIONAL:
        assert status == "skip"
    else:
        assert (status, "no permission for this" in text) == ("unknown", True), text


@pytest.mark.parametrize("check", CHECKS)
def test_what_is_only_useful_is_never_needed(check: str) -> None:
    facts = pool()
    for part in CHECKS[check].also:
        facts = pools.without(facts, part)
    if CHECKS[check].needs:
        assert outcome(check, facts)[0] in ("pass", "skip")


@pytest.mark.parametrize("check", CHECKS)
def test_an_empty_cluster_crashes_no_check(check: str) -> None:
    empty = pools.facts_of({name: [] for name in pools.objects()})
    assert outcome(check, empty)[0] in ("pass", "skip", "fail")


def test_rights_that_are_lacking_are_told_in_one_line() -> None:
    denied = known({right.id: right.verb == "list" for right in RIGHTS}, "review")
    status, text = outcome("access", replace(pool(), access=denied))
    assert status == "unknown" and "get pods/log" in text
    writes = known({right.id: right.use == "read" for right in RIGHTS}, "review")
    assert outcome("access", replace(pool(), access=writes))[0] == "warn"


def test_what_may_lie_where_we_cannot_read_is_unknown() -> None:
    """A user who reads the ConfigMaps of one namespace only must not hear that the others do not exist."""
    maps = pool().configmaps.need()
    reason = "no permission to list configmaps in namespace kube-system"
    seen = Reading(maps[2:], "/api/v1/configmaps", note=reason)
    facts = replace(pool(), configmaps=seen)
    for check in ("geometries-configmap", "device-config", "config-place", "node-config", "filter-devices"):
        assert outcome(check, facts)[0] == "unknown" and reason in outcome(check, facts)[1]
    assert outcome("deviceshare-enabled", facts)[0] == "pass"
    assert outcome("limits", facts)[0] == "pass"


def test_monitors_that_do_not_answer_are_a_warning() -> None:
    silent = known((Scrape("gpu-1", 0.0, reason="connection refused"), Scrape("gpu-2", 0.0)), "monitors")
    status, text = outcome("metrics-path", replace(pool(), metrics=silent))
    assert status == "warn" and "Node gpu-1" in text and "gpu-2" not in text
    assert outcome("metrics-path", replace(pool(), metrics=missing("no monitor runs", "monitors")))[0] == "warn"


@pytest.mark.parametrize("check", [check.id for check in CHECKS.values() if check.worst is not Status.PASS])
def test_each_check_has_a_case_in_which_it_finds_something(check: str) -> None:
    found = {case.check for case in CASES if case.status in ("warn", "fail")}
    assert check in found | {"access", "metrics-path"}
