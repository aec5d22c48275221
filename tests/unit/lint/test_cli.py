"""`pod lint` and `quota lint` as they are typed: forms, exit codes, files that cannot be read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
import yaml

from tests.called import called
from tests.unit.lint.test_pod import ARTICLE
from vgpuctl import resources

Run = Callable[..., tuple[int, str, str]]

FINE = """\
apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  schedulerName: volcano
  containers:
  - name: a
    resources: {limits: {volcano.sh/vgpu-number: 1, volcano.sh/vgpu-memory: 2000}}
"""
WARNS = FINE.replace("volcano.sh/vgpu-number: 1,", "volcano.sh/vgpu-number: 1, volcano.sh/vgpu-cores: 1,")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """run(*arguments, stdin="", **environment): exit code, stdout, stderr, in an empty directory."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str, stdin: str | bytes = "", **environment: str) -> tuple[int, str, str]:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        data = stdin.encode() if isinstance(stdin, str) else stdin
        return called(monkeypatch, capfd, *arguments, stdin=data)

    return call


@pytest.mark.parametrize("form", ["table", "wide", "json", "yaml", "junit", "csv", "name"])
@pytest.mark.parametrize(
    ("text", "options", "code"),
    [
        (FINE, (), 0),
        (ARTICLE, (), 1),
        (WARNS, (), 0),
        (WARNS, ("--fail-on", "warn"), 1),
        ("a: [", (), 1),
        (FINE, ("--factor", "10", "--gpus", "4xT4-16GB"), 1),
    ],
    ids=["fine", "errors", "warning", "warning counts", "malformed", "too large for the pool"],
)
def test_the_exit_code_is_the_same_in_every_form(
    run: Run, form: str, text: str, options: tuple[str, ...], code: int
) -> None:
    assert run("pod", "lint", "-", "-o", form, *options, stdin=text)[0] == code


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("pod", "lint"), "no file is named"),
        (("quota", "lint"), "no file is named"),
        (("pod", "lint", "none.yaml"), "cannot read none.yaml"),
        (("pod", "lint", "."), "cannot read ."),
        (("pod", "lint", "-", "--volcano-version", "latest"), "is not a version"),
        (("quota", "lint", "-", "--gpus", "lots"), "is not understood"),
        (("quota", "lint", "-", "--factor", "0"), "--factor"),
        (("quota", "lint", "-", "-o", "html"), "is not one of"),
    ],
)
def test_wrong_use(run: Run, arguments: tuple[str, ...], said: str) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert said in err


def test_several_files_keep_their_names(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(ARTICLE)
    (tmp_path / "b.json").write_text(json.dumps(yaml.safe_load(FINE)))
    code, out, _ = run("pod", "lint", "a.yaml", "b.json", "-o", "json")
    assert code == 1
    found = json.loads(out)
    assert {row["file"] for row in found["findings"]} == {"a.yaml"}
    assert [row["file"] for row in found["checked"]] == ["a.yaml", "b.json"]
    jsonschema.validate(found, json.loads(resources.text("schemas/Findings.schema.json")))


def test_bytes_that_are_no_text_are_no_crash(run: Run) -> None:
    assert run("pod", "lint", "-", stdin=b"\xff\xfe\x00kind: Pod")[0] in (0, 1)
    assert run("quota", "lint", "-", stdin=b"")[0] in (0, 1)


def test_the_demo_is_a_pool_to_lint_for(run: Run) -> None:
    large = FINE.replace("vgpu-memory: 2000", "vgpu-memory: 99999")
    code, out, _ = run("pod", "lint", "-", "--demo", stdin=large)
    assert code == 1
    assert "more than any card that fits has" in out


@pytest.mark.parametrize("where", ["80", "200", "piped"])
@pytest.mark.parametrize("form", ["table", "wide"])
def test_the_public_articles_pod(run: Run, golden: Callable[[str, str], None], form: str, where: str) -> None:
    environment = {} if where == "piped" else {"FORCE_COLOR": "1", "COLUMNS": where}
    _, out, _ = run("pod", "lint", "-", "--factor", "10", "-o", form, stdin=ARTICLE, **environment)
    golden(f"lint/article-{form}-{where}.txt", out)


def test_the_public_articles_quota(run: Run, golden: Callable[[str, str], None]) -> None:
    text = "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: gpu-quota, namespace: ai-team}\nspec:\n  hard:\n"
    code, out, _ = run("quota", "lint", "-", stdin=f"{text}    volcano.sh/vgpu-number: 50\n")
    assert code == 1
    golden("lint/quota-piped.txt", out)


@pytest.mark.parametrize("command", ["pod", "quota"])
@pytest.mark.parametrize("text", [FINE.encode() + b"# gr\xfc\xdfe\n", FINE.replace("a}", "\xe9}").encode("latin-1")])
def test_a_text_that_kubectl_cannot_decode_is_an_error(run: Run, command: str, text: bytes) -> None:
    code, out, _ = run(command, "lint", "-", stdin=text)
    assert code == 1
    assert "error: the text is not UTF-8" in out


def test_a_name_that_is_empty_is_shown_as_one(run: Run) -> None:
    assert run("pod", "lint", "")[2].startswith("error: cannot read ''")
