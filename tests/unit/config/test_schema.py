"""The JSON Schemas say what a schema can say of the configurations, and of every output."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
import yaml

from tests.unit.config import test_device_config, test_node_config, test_scheduler_config
from tools import schemas
from vgpuctl import resources
from vgpuctl.model.config.generate import generated, kinds_for, plan
from vgpuctl.model.config.kind import KINDS
from vgpuctl.model.context import Context
from vgpuctl.model.document import read_json, read_yaml
from vgpuctl.tasks.config.validate import validate_texts

_CASES = Path(__file__).parents[2] / "cases" / "data" / "inputs"
_VALID = {
    "device-config": test_device_config.VALID,
    "node-config": test_node_config.VALID,
    "scheduler": test_scheduler_config.VALID,
}


@functools.cache
def validator(name: str) -> jsonschema.Draft202012Validator:
    schema = json.loads(resources.text(f"schemas/{name}.schema.json"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def plain(kind: str, text: str) -> Any:
    """A bare configuration as the loader sees it; None for ConfigMaps and for what only a loader can read."""
    document = read_json(text) if kind == "node-config" else read_yaml(text)[0]
    value = document.root.plain() if document.root else None
    return None if not isinstance(value, dict) or "kind" in value or document.faults else value


_ODD = {"whole float", "keys in any case", "merged", "anchors", "a note", "notes", "numbers as names", "nulls", "null"}


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        pytest.param(k, t, id=f"{k}-{n}")
        for k, texts in _VALID.items()
        for n, t in texts.items()
        if not _ODD & {n} and plain(k, t)
    ],
)
def test_what_works_fits_the_schema(kind: str, text: str) -> None:
    assert [error.message for error in validator(kind).iter_errors(plain(kind, text))] == []


_SAID = {
    "key-misspelt", "key-case", "string-for-number", "string-for-bool", "type-mismatch", "number-range", "split-zero",
    "factor-zero", "foreign-resource-names", "mode-value", "policy-value", "mig-group-name", "mig-shape",
}  # fmt: skip
_LOOSE = {"node-config": {"key-case"}}
"""What a schema of a format with open keys cannot say."""
_UNSAID = {"an infinite scaling", "the same group twice", "a whole float", "an exponent"}
"""Cases that are the same JSON value as one that works."""


def said(kind: str, text: str) -> set[str]:
    """The rules that a broken text breaks and that a schema can say."""
    rules = {finding.rule for finding in validate_texts([("-", text)], Context(), KINDS[kind]).findings}
    return rules & (_SAID - _LOOSE.get(kind, set()))


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        pytest.param(kind, text, id=f"{kind}-{name}")
        for kind, broken in (
            ("device-config", test_device_config.BROKEN),
            ("node-config", {name: text for name, (text, _) in test_node_config.BROKEN.items()}),
        )
        for name, text in broken.items()
        if name not in _UNSAID and plain(kind, text) is not None and said(kind, text)
    ],
)
def test_what_a_schema_can_say_it_says(kind: str, text: str) -> None:
    assert list(validator(kind).iter_errors(plain(kind, text))), said(kind, text)


@pytest.mark.parametrize("kind", [output.__name__ for output in schemas.outputs()])
def test_every_output_has_a_schema_that_is_fresh(kind: str) -> None:
    assert schemas.files()[f"schemas/{kind}.schema.json"] == resources.text(f"schemas/{kind}.schema.json")


@pytest.mark.parametrize("case", ["C13-factor-zero", "N04-filter-singular", "S30-twice", "V16-minified"])
def test_findings_fit_their_schema(case: str) -> None:
    path = next((_CASES / case).glob("input.*"))
    findings = validate_texts([(path.name, path.read_text(encoding="utf-8"))], Context())
    validator("Findings").validate(json.loads(msgspec.json.encode(findings)))


def test_a_generated_config_fits_its_schema() -> None:
    result = generated(plan("inference", Context(), named=False), kinds_for("all"))
    validator("GeneratedConfig").validate(json.loads(msgspec.json.encode(result)))
    for kind, item in zip(KINDS, result.items, strict=True):
        ((_, text),) = item["data"].items()
        validator(kind).validate(yaml.safe_load(text))
