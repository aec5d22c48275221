"""What people see of quotas and changes, at every width and without colour; what machines get."""

from __future__ import annotations

import json
from collections.abc import Callable

import jsonschema
import msgspec
import pytest

from vgpuctl import resources
from vgpuctl.model.changes import Action, Changed, Changes, Value
from vgpuctl.model.output import Output
from vgpuctl.model.quantity import MIB
from vgpuctl.model.quota.share import Amount, QueueShare, Quotas, Share
from vgpuctl.render.forms import render
from vgpuctl.render.terminal import Terminal

NUMBER, MEMORY = "requests.volcano.sh/vgpu-number", "requests.volcano.sh/vgpu-memory"


def amount(number: int | None = None, units: int | None = None, cores: int | None = None) -> Amount:
    return Amount(number=number, memory=None if units is None else units * 10 * MIB, memory_units=units, cores=cores)


QUOTAS = Quotas(
    source="context prod",
    factor=10,
    shares=[
        Share(
            namespace="ai-team",
            name="vgpu",
            team="ai-team",
            managed=True,
            queue="ai",
            hard=amount(50, 20480, 800),
            used=amount(12, 9000, 300),
            holds=amount(11, 16384, 560),
            pending=amount(1, 500, 20),
            pending_pods=1,
            problems=["memory is counted once for a container with several vGPUs: more is held than counted"],
        ),
        Share(
            namespace="ai-team",
            name="vgpu-high",
            team="ai-team",
            priorities=["vgpu-high"],
            managed=True,
            queue="ai",
            hard=amount(10),
            used=amount(10),
            holds=amount(10, 4096, 0),
            pending=amount(0, 0, 0),
            pending_pods=0,
        ),
        Share(
            namespace="data-science-experiments",
            name="compute-quota-of-old",
            hard=amount(),
            used=amount(),
            problems=["volcano.sh/vgpu-number enforces nothing: only requests.volcano.sh/vgpu-number is counted"],
        ),
        Share(
            namespace="语言模型",
            name="vgpu",
            hard=amount(4),
            used=amount(6),
            holds=amount(6, 600, 0),
            pending=amount(0, 0, 0),
            pending_pods=0,
            problems=["2 vGPUs above the cap: nothing is evicted, new pods are refused"],
        ),
        Share(
            namespace="[red]scratch[/red]\x1b[31m",
            holds=amount(3, 300, 0),
            pending=amount(0, 0, 0),
            pending_pods=0,
            problems=["no quota: nothing limits this namespace"],
        ),
    ],
    queues=[
        QueueShare(name="ai", capability=amount(60, 20480), guarantee=amount(10), allocated=amount(12, 9000)),
        QueueShare(name="idle", deserved=amount(5)),
    ],
    unread=["namespaces: no permission to list namespaces in the whole cluster"],
)
CHANGES = Changes(
    source="context prod",
    changes=[
        Changed(
            object_kind="Namespace", name="ai-team", action=Action.CREATED, undo="kubectl delete namespace ai-team"
        ),
        Changed(
            object_kind="ResourceQuota",
            name="vgpu",
            namespace="ai-team",
            action=Action.CONFIGURED,
            values=[
                Value(path=NUMBER, before="20", after="50"),
                Value(path=MEMORY, before=None, after="20480", note="200 GiB"),
            ],
            undo="vgpuctl quota set ai-team 20",
        ),
        Changed(object_kind="Queue", name="ai", action=Action.FAILED, error="queues ai is refused by admission"),
        Changed(object_kind="ResourceQuota", name="old", namespace="ai-team", action=Action.UNDONE, error="after: it"),
    ],
    notes=["ai-team uses 60 vGPUs, 10 above the cap of 50: nothing is evicted"],
)
NOTHING = Changes(
    source="context prod",
    changes=[Changed(object_kind="ResourceQuota", name="vgpu", namespace="ai-team", action=Action.UNCHANGED)],
)
DRY = msgspec.structs.replace(CHANGES, dry_run="server", notes=[])
OUTPUTS: dict[str, Output] = {"list": QUOTAS, "changes": CHANGES, "nothing": NOTHING, "dry": DRY}
TERMINALS = {
    "80": Terminal(width=80, colour=True, live=True),
    "200": Terminal(width=200, colour=True, live=True),
    "piped": Terminal(),
    "no-color": Terminal(width=80, live=True),
    "ascii": Terminal(width=80, ascii=True),
}


@pytest.mark.parametrize("where", TERMINALS)
@pytest.mark.parametrize("form", ["table", "wide"])
@pytest.mark.parametrize("name", OUTPUTS)
def test_people_see(golden: Callable[[str, str], None], name: str, form: str, where: str) -> None:
    golden(f"quota/{name}-{form}-{where}.txt", render(OUTPUTS[name], form, TERMINALS[where]))


@pytest.mark.parametrize("form", ["json", "yaml", "name", "csv"])
@pytest.mark.parametrize("name", ["list", "changes"])
def test_machines_get(golden: Callable[[str, str], None], name: str, form: str) -> None:
    golden(f"quota/{name}.{form}", render(OUTPUTS[name], form, Terminal()))


@pytest.mark.parametrize("name", OUTPUTS)
def test_json_keeps_its_schema(name: str) -> None:
    output = OUTPUTS[name]
    schema = json.loads(resources.text(f"schemas/{type(output).__name__}.schema.json"))
    jsonschema.validate(json.loads(render(output, "json", Terminal())), schema)


def test_no_escape_of_the_outside_reaches_the_terminal() -> None:
    for form in ("table", "wide", "name", "csv"):
        assert "\x1b" not in render(QUOTAS, form, Terminal(width=120))


def test_nothing_at_all_is_said_in_words() -> None:
    assert render(Quotas(), "table", Terminal()) == "no quota on vGPUs, and no vGPU pod\n"
