"""Nothing that stands in a cluster makes a check of a pool fail: it finds something, or it does not."""

from __future__ import annotations

import time
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit import pools
from tests.unit.illness import CHECKS
from vgpuctl.checks.check import Options, run_checks
from vgpuctl.render.text import clean

NASTY = (
    "",
    "0",
    "-1",
    "4Gi",
    "1e9999999",
    "9" * 400,
    "NaN",
    "[bold red]x[/]",
    "\x1b[31m\x07\u202e",
    "a,b,c,d,e,f:",
    ",,,,,:;:;,",
    "GPU[g-0],NVIDIA,1,2:",
    "GPU[-],NVIDIA,4294967295,4294967295:",
    "Reported 9999-99-99 99:99:99 +9999",
    "2026-05-28T20:26:00+99:99",
    "0000-00-00T00:00:00Z",
    "{{ .Values.x }}",
    "nvidia: [",
    "nvidia: {knownMigGeometries: [[[]]]}",
    "tiers: {plugins: 5}",
    '{"nodeconfig": [{"name": null, "filterdevices": {"index": [[]], "uuid": {}}}]}',
    '{"nodeconfig": [5, {"name": [], "filterdevices": 7}]}',
)
_text = st.one_of(st.sampled_from(NASTY), st.text(max_size=40))
_name = st.sampled_from((*pools.NAMES, "requests.volcano.sh/vgpu-number", "nvidia.com/gpu", "cpu"))
_amounts = st.dictionaries(_name, st.one_of(_text, st.integers(-5, 1 << 70)), max_size=3)


@st.composite
def _sick(draw: st.DrawFn) -> dict[str, list[dict[str, Any]]]:
    """The healthy pool with texts and amounts of all kinds in it."""
    found = pools.objects()
    for node in found["nodes"]:
        node["metadata"]["annotations"] |= {
            key: draw(_text) for key in ("volcano.sh/node-vgpu-register", "volcano.sh/node-vgpu-handshake", "hamivgpu")
        }
        node["status"]["allocatable"] |= {key: str(value) for key, value in draw(_amounts).items()}
    for pod in found["pods"][:2]:
        pod["metadata"].setdefault("annotations", {}).update(
            {f"volcano.sh/{key}": draw(_text) for key in ("vgpu-ids-new", "vgpu-node", "bind-phase", "bind-time")}
        )
        pod["spec"]["containers"][0]["resources"] = {"limits": draw(_amounts)}
        pod["status"] |= {"phase": draw(_text), "startTime": draw(_text)}
    for item in found["configmaps"]:
        item["data"] = {key: draw(st.one_of(st.just(text), _text)) for key, text in item["data"].items()}
        item["metadata"]["managedFields"][0]["time"] = draw(_text)
    quota = found["quotas"][0]
    quota["spec"]["hard"] = quota["status"]["used"] = {key: str(value) for key, value in draw(_amounts).items()}
    found["queues"][0]["spec"] = {
        "capability": draw(_amounts),
        "guarantee": draw(st.one_of(_amounts, st.fixed_dictionaries({"resource": _amounts}))),
        "parent": draw(_text),
    }
    return found


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_sick())
def test_no_text_and_no_amount_makes_a_check_crash(found: dict[str, list[dict[str, Any]]]) -> None:
    for outcome in run_checks(list(CHECKS.values()), pools.facts_of(found), Options()):
        clean(outcome.result.summary)


def test_thousands_of_ill_nodes_are_checked_in_seconds() -> None:
    found = pools.objects()
    for number in range(2000):
        node = pools.node(f"[red]{number}\x1b[0m", number)
        node["metadata"]["annotations"]["volcano.sh/node-vgpu-register"] = NASTY[number % len(NASTY)]
        found["nodes"].append(node)
    facts = pools.facts_of(found)
    began = time.process_time()
    assert len(list(run_checks(list(CHECKS.values()), facts, Options()))) > 2000
    assert time.process_time() - began < 10
