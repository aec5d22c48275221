"""JSON and YAML of top keep to schemas/Usage.schema.json."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
import yaml

from tests.unit.top.test_golden import PIPE, usage
from tests.unit.usage.pools import config, facts, pod
from vgpuctl import resources
from vgpuctl.model.usage.arrange import GROUPS, arrange
from vgpuctl.model.usage.pool import pool
from vgpuctl.render.forms import render


@pytest.fixture(scope="module")
def schema() -> Any:
    return json.loads(resources.text("schemas/Usage.schema.json"))


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize(("form", "load"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_the_demo(schema: Any, group: str, form: str, load: Any) -> None:
    document = load(render(usage(group), form, PIPE))
    jsonschema.validate(document, schema)
    assert document["kind"] == "Usage"


def test_what_is_unknown_is_null(schema: Any) -> None:
    shown = arrange(pool(facts(pod(), nodes="no permission", metrics="no permission", configmaps=(config(0),))))
    document = json.loads(render(shown, "json", PIPE))
    jsonschema.validate(document, schema)
    vgpu = document["rows"][-1]
    assert vgpu["memoryUnits"] == 1024
    assert {vgpu[name] for name in ("memoryUsed", "memoryAllocated", "coresUsed", "busy", "lastKernel")} == {None}


def test_the_schema_refuses_what_is_no_usage(schema: Any) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"apiVersion": "vgpuctl.dev/v1", "kind": "Usage", "rows": [{"level": "galaxy"}]}, schema)
