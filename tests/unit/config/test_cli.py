"""`vgpuctl config` as it is typed: output forms, exit codes, files that cannot be read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from tests.called import called
from tests.unit.config.test_device_config import GOOD, good
from tests.unit.config.test_schema import validator

Run = Callable[..., tuple[int, str, str]]
_INPUTS = Path(__file__).parents[2] / "cases" / "data" / "inputs"
ARTICLE = good(
    gpuMemoryFactor="gpuMemoryFactor: 10",
    more="  deviceMemoryScaling: 256\n  knownMigGeometries:\n"
    '  - models: ["V100-SXM2-32GB"]\n    allowedGeometries:\n'
    "    - name: train-slice\n      memory: 8000\n      count: 4\n",
)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """run(*arguments, stdin="", **environment): exit code, stdout, stderr, in an empty directory."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str, stdin: str = "", **environment: str) -> tuple[int, str, str]:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        return called(monkeypatch, capfd, "config", *arguments, stdin=stdin.encode())

    return call


@pytest.mark.parametrize("form", ["table", "wide", "json", "yaml", "junit", "csv", "name"])
@pytest.mark.parametrize(
    ("text", "options", "code"),
    [
        (GOOD, (), 0),
        (good(gpuMemoryFactor="gpuMemoryFactor: 0"), (), 1),
        ("nvidia: [", (), 1),
        (good(more="  defaultCores: 5\n"), (), 0),
        (good(more="  defaultCores: 5\n"), ("--fail-on", "warn"), 1),
        (GOOD, ("--gpus", "8xH100-80GB"), 1),
    ],
    ids=["valid", "invalid", "malformed", "warning", "warning counts", "factor"],
)
def test_the_exit_code_is_the_same_in_every_form(
    run: Run, form: str, text: str, options: tuple[str, ...], code: int
) -> None:
    Path("device-config.yaml").write_text(text, encoding="utf-8")
    assert run("validate", "device-config.yaml", "-o", form, *options)[0] == code


@pytest.mark.parametrize(
    ("name", "options", "environment"),
    [
        ("table", (), {}),
        ("wide", ("-o", "wide"), {}),
        ("table-80", (), {"COLUMNS": "80"}),
        ("table-200", (), {"COLUMNS": "200"}),
        ("wide-80", ("-o", "wide"), {"COLUMNS": "80"}),
        ("wide-200", ("-o", "wide"), {"COLUMNS": "200"}),
        ("colour", (), {"FORCE_COLOR": "1", "COLUMNS": "80"}),
        ("no-colour", (), {"FORCE_COLOR": "1", "NO_COLOR": "1", "COLUMNS": "80"}),
        ("ascii", ("--ascii",), {"COLUMNS": "80"}),
        ("json", ("-o", "json"), {}),
        ("yaml", ("-o", "yaml"), {}),
        ("junit", ("-o", "junit"), {}),
        ("csv", ("-o", "csv"), {}),
        ("name", ("-o", "name"), {}),
    ],
)
def test_findings_are_shown(
    run: Run, golden: Callable[[str, str], None], name: str, options: tuple[str, ...], environment: dict[str, str]
) -> None:
    Path("device-config.yaml").write_text(ARTICLE, encoding="utf-8")
    Path("config.json").write_text('{"nodeconfig": [{"name": "gpu01", "devicesplitcount": "5"}]}', encoding="utf-8")
    code, out, err = run("validate", "device-config.yaml", "config.json", *options, **environment)
    assert (code, err) == (1, "")
    golden(f"config/{name}.txt", out)


@pytest.mark.parametrize("profile", ["training", "inference", "development"])
def test_a_generated_config_is_shown(run: Run, golden: Callable[[str, str], None], profile: str) -> None:
    code, out, err = run("generate", "--profile", profile, "--gpus", "8xH100-80GB,4xV100-32GB")
    assert (code, err) == (0, "")
    golden(f"config/generate-{profile}.yaml", out)
    code, out, _ = run("validate", "-", "--gpus", "8xH100-80GB,4xV100-32GB", stdin=out)
    assert code == 0
    assert "0 errors, 0 warnings, 0 infos" in out


def test_without_cards_the_assumption_is_said(run: Run) -> None:
    code, out, err = run("generate", "--profile", "training", "--for", "device-config", "--local")
    assert code == 0
    assert "check it for larger nodes" in err
    assert "gpuMemoryFactor: 25" in out


def test_the_demo_pool_s_cards_are_used(run: Run) -> None:
    code, out, _ = run("generate", "--profile", "inference", "--for", "node-config", "--demo")
    entries = json.loads(yaml.safe_load(out)["data"]["config.json"])["nodeconfig"]
    assert code == 0
    assert "h100-1" in [entry["name"] for entry in entries]


def test_json_of_generate_is_the_yaml_as_objects(run: Run) -> None:
    options = ("generate", "--profile", "training", "--gpus", "8xH100-80GB")
    written = json.loads(run(*options, "-o", "json")[1])
    validator("GeneratedConfig").validate(written)
    assert written["items"] == list(yaml.safe_load_all(run(*options)[1]))


def test_json_has_the_place_and_the_schema(run: Run) -> None:
    code, out, _ = run("validate", "-", "-o", "json", stdin=ARTICLE)
    report = json.loads(out)
    validator("Findings").validate(report)
    assert code == 1
    assert [(f["line"], f["rule"]) for f in report["findings"]] == [
        (9, "dead-key"),
        (11, "mig-template-wrong"),
        (13, "mig-shape"),
    ]
    assert {f["file"] for f in report["findings"]} == {"<stdin>"}


def test_junit_counts_a_failure_for_each_error_and_warning(run: Run) -> None:
    root = ElementTree.fromstring(run("validate", "-", "-o", "junit", stdin=ARTICLE)[1])
    assert (root.get("tests"), root.get("failures")) == ("3", "3")
    root = ElementTree.fromstring(run("validate", "-", "-o", "junit", stdin=GOOD)[1])
    assert (root.get("tests"), root.get("failures")) == ("1", "0")


def test_several_files_are_checked_together(run: Run) -> None:
    Path("a.yaml").write_text(GOOD, encoding="utf-8")
    Path("b.yaml").write_text(good(gpuMemoryFactor=None), encoding="utf-8")
    code, out, _ = run("validate", "a.yaml", "b.yaml")
    assert code == 1
    assert "b.yaml:1:1: error: gpuMemoryFactor is missing" in out
    assert "[factor-zero]" in out


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("validate",), 2, ("no file is named", "config validate FILE")),
        (("validate", "missing.yaml"), 2, ("cannot read missing.yaml", "No such file")),
        (("validate", "."), 2, ("cannot read .", "directory")),
        (("validate", "-", "--kind", "pod"), 2, ("pod",)),
        (("validate", "-", "--gpus", "many"), 2, ("many", "8xH100-80GB")),
        (("validate", "-", "--volcano-version", "new"), 2, ("new",)),
        (("validate", "-", "-o", "html"), 2, ("html", "junit")),
        (("validate", "--live", "--from", "missing.tar.gz"), 3, ("missing.tar.gz",)),
        (("validate", "--live", "--local"), 3, ("configmaps",)),
        (("generate",), 2, ("--profile", "training")),
        (("generate", "--profile", "gaming"), 2, ("gaming", "training")),
        (("generate", "--profile", "training", "--gpus", "x"), 2, ("8xH100-80GB",)),
        (("schema", "pod"), 2, ("pod", "device-config")),
    ],
)
def test_wrong_use_is_told(run: Run, arguments: tuple[str, ...], code: int, words: tuple[str, ...]) -> None:
    got, out, err = run(*arguments)
    assert (got, out) == (code, "")
    assert all(word in err for word in words), err


@pytest.mark.parametrize("command", ["validate", "apply", "diff"])
def test_live_is_offered_where_there_is_such_an_option(run: Run, command: str) -> None:
    code, _, err = run(command)
    assert (code, "--live" in err) == (2, command == "validate")


def test_ascii_holds_for_what_is_told_beside_the_result_too(run: Run) -> None:
    assert "config apply FILE~" in run("apply", "--ascii")[2]
    assert "config apply FILE…" in run("apply")[2]


def test_cards_given_by_hand_have_no_names_that_an_entry_could_miss(run: Run) -> None:
    text = '{"nodeconfig": [{"name": "gpu01"}]}'
    assert run("validate", "-", "--gpus", "8xH100-80GB", stdin=text)[0] == 0
    assert "node-unknown" not in run("validate", "-", "--gpus", "8xH100-80GB", stdin=text)[1]
    assert "node-unknown" in run("validate", "-", "--demo", stdin=text)[1]


def test_the_demo_pool_has_no_error(run: Run) -> None:
    code, out, _ = run("validate", "--live", "--demo")
    assert code == 0
    assert "0 errors" in out


@pytest.mark.parametrize("kind", ["device-config", "node-config", "scheduler"])
def test_a_schema_is_printed(run: Run, kind: str) -> None:
    code, out, _ = run("schema", kind)
    assert code == 0
    assert json.loads(out)["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize(
    "case",
    [path.name for path in sorted(_INPUTS.iterdir()) if path.name[0] in "CNSV" and "pod" not in path.name],
)
def test_the_command_line_agrees_with_the_cases(run: Run, case: str) -> None:
    expected = yaml.safe_load((_INPUTS / case / "expected.yaml").read_text(encoding="utf-8"))
    if "validate" not in expected["command"]:
        pytest.skip("another command's case")
    errors = [d for d in expected["defects"] or () if d["severity"] == "error" and not d.get("needs_context")]
    code, out, _ = run("validate", str(_INPUTS / case / expected["input"]), "-o", "json")
    found = {(f["line"], f["severity"]) for f in json.loads(out)["findings"]}
    assert code == (1 if errors else 0)
    assert {(d["line"], "error") for d in errors} <= found


def test_names_from_outside_are_drawn_as_plain_text(run: Run) -> None:
    text = '{"nodeconfig": [{"name": "\\u001b[31mgpu\\u202e", "operatingmode": "[bold]MIG[/]"}]}'
    out = run("validate", "-", "--kind", "node-config", stdin=text, FORCE_COLOR="1")[1]
    assert "[bold]MIG[/]" in out
    assert "\x1b[31mgpu" not in out
