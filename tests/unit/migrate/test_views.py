"""What people and machines see of a new factor."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.unit.config.test_schema import validator
from vgpuctl.model.migrate.outputs import FactorChange
from vgpuctl.model.migrate.use import Use
from vgpuctl.render.forms import render
from vgpuctl.render.terminal import Terminal

LIMIT = 'spec.template.spec.containers[0].resources.limits["volcano.sh/vgpu-memory"]'


def use(kind: str, name: str, units: int, place: str = LIMIT, namespace: str = "ai-team", **more: object) -> Use:
    return Use(
        object_kind=kind,
        namespace=namespace,
        name=name,
        place=place,
        units=units,
        mib_before=units * 10,
        mib_after=units * 16,
        **more,  # type: ignore[arg-type]
    )


CHANGE = FactorChange(
    source="context prod",
    before=10,
    after=16,
    uses=[
        use("Queue", "ai", 20000, 'spec.capability["volcano.sh/vgpu-memory"]', ""),
        use("Deployment", "translate-service-of-the-language-models", 1228, pods=3),
        use("Job", "[bold]train[/]\x1b[31m", 3800, accepted=True),
        use("ResourceQuota", "vgpu", 20480, 'spec.hard["requests.volcano.sh/vgpu-memory"]'),
        use("Pod", "notebook", 1024, "container main", "语言模型", pods=1),
    ],
)
TERMINALS = {
    "80": Terminal(width=80, colour=True, live=True),
    "160": Terminal(width=160),
    "piped": Terminal(),
    "ascii": Terminal(width=80, ascii=True),
}


@pytest.mark.parametrize("where", TERMINALS)
def test_people_see_what_would_mean_something_else(golden: Callable[[str, str], None], where: str) -> None:
    golden(f"migrate/factor-{where}.txt", render(CHANGE, "table", TERMINALS[where]))


@pytest.mark.parametrize("form", ["json", "name", "csv"])
def test_machines_get(golden: Callable[[str, str], None], form: str) -> None:
    golden(f"migrate/factor.{form}", render(CHANGE, form, Terminal()))


def test_json_keeps_its_schema() -> None:
    validator("FactorChange").validate(json.loads(render(CHANGE, "json", Terminal())))


def test_no_escape_of_the_outside_reaches_the_terminal() -> None:
    for form in ("table", "wide", "name", "csv"):
        assert "\x1b" not in render(CHANGE, form, Terminal(width=120))


def test_when_all_is_named_nothing_is_offered() -> None:
    named = FactorChange(before=10, after=16, uses=[use("Job", "train", 1, accepted=True)])
    text = render(named, "table", Terminal())
    assert "--accept" not in text
    assert "1 amount of 1 object would mean something else" in text
