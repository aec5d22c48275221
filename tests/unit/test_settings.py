"""The shared options: where a value comes from, and what is told of one that cannot be understood."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from vgpuctl.cli.settings import Settings, settings_from
from vgpuctl.cli.sources import find_cluster, pool
from vgpuctl.model.problem import Exit, Problem

FORMS = ("table", "json")


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No variable and no file of the person who runs the tests."""
    for name in [name for name in os.environ if name.startswith(("VGPUCTL_", "KUBE"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


def settings(
    file: str | bytes = "",
    variables: Mapping[str, str] | None = None,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> Settings:
    path = Path(os.environ["XDG_CONFIG_HOME"]) / "vgpuctl" / "config.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(file.encode() if isinstance(file, str) else file)
    os.environ.update({f"VGPUCTL_{name}": value for name, value in (variables or {}).items()})
    try:
        return settings_from(before or {}, after or {}, FORMS)
    finally:
        for name in variables or {}:
            del os.environ[f"VGPUCTL_{name}"]


@pytest.mark.parametrize(
    ("file", "variables", "before", "after", "context"),
    [
        ("", {}, {}, {}, ""),
        ("context: file", {}, {}, {}, "file"),
        ("context: file", {"CONTEXT": "variable"}, {}, {}, "variable"),
        ("context: file", {"CONTEXT": ""}, {}, {}, "file"),
        ("context: file", {"CONTEXT": "variable"}, {"context": "before"}, {}, "before"),
        ("context: file", {"CONTEXT": "variable"}, {"context": "before"}, {"context": "after"}, "after"),
        ("context: file", {"CONTEXT": "variable"}, {}, {"context": ""}, ""),
    ],
)
def test_the_nearest_value_wins(file: str, variables: Any, before: Any, after: Any, context: str) -> None:
    assert settings(file, variables, before, after).context == context


@pytest.mark.parametrize(
    ("file", "variables", "expected"),
    [
        ("as: bob\nas-group: [a, 1]", {}, Settings(as_user="bob", as_group=("a", "1"))),
        ("as-group: a,b\nfrom: /b", {}, Settings(as_group=("a", "b"), bundle="/b")),
        ("as_group: 5\nall_namespaces: yes", {}, Settings(as_group=("5",), all_namespaces=True)),
        ("request-timeout: 5\nfail-on: warn", {}, Settings(request_timeout=5.0, fail_on="warn")),
        ("", {"AS": "bob", "AS_GROUP": "a,b", "FROM": "/b"}, Settings(as_user="bob", as_group=("a", "b"), bundle="/b")),
        ("", {"REQUEST_TIMEOUT": "500ms", "ASCII": "on"}, Settings(request_timeout=0.5, ascii=True)),
        ("", {"REQUEST_TIMEOUT": "", "FAIL_ON": "", "DEMO": "", "OUTPUT": ""}, Settings()),
        ("\ufeffdemo: true", {}, Settings(demo=True)),
        ("request-timeout: 99999999999999h", {}, Settings(request_timeout=1e9)),
    ],
)
def test_defaults_have_the_names_of_the_options(file: str, variables: Any, expected: Settings) -> None:
    assert settings(file, variables) == expected


def test_a_default_form_that_a_command_does_not_know_leaves_it_its_own() -> None:
    assert settings("output: wide").output == ""
    assert settings("", {"OUTPUT": "csv"}).output == ""
    assert settings("output: json").output == "json"
    assert settings("output: json", {"OUTPUT": "table"}).output == "table"


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("5", "is not a mapping"),
        ("ouput: json", "ouput is not an option"),
        ("1: 2", "1 is not an option"),
        ("output: bogus", "config.yaml: output: 'bogus'"),
        ("demo: maybe", "config.yaml: demo: 'maybe'"),
        ("fail-on: x", "config.yaml: fail-on: 'x'"),
        ("request-timeout: [1]", "config.yaml: request-timeout"),
        ("namespace: [a]", "config.yaml: namespace"),
        ('kubeconfig: "a\\0b"', "config.yaml: kubeconfig"),
        ("a: {{ x }}", "is not YAML"),
        ("demo: 2024-99-99", "is not YAML"),
        ("[" * 5000, "is not YAML"),
        (b"\x00", "is not YAML"),
        (b"\xff\xfe", "is not UTF-8"),
    ],
)
def test_a_wrong_config_file_is_wrong_use_told_with_its_place(file: str | bytes, words: str) -> None:
    with pytest.raises(Problem) as caught:
        settings(file)
    assert words in caught.value.what
    assert caught.value.exit_code == Exit.USAGE


@pytest.mark.parametrize(
    ("name", "value"), [("DEMO", "maybe"), ("REQUEST_TIMEOUT", "-1"), ("FAIL_ON", "x"), ("OUTPUT", "bogus")]
)
def test_a_wrong_variable_is_wrong_use_told_by_its_name(name: str, value: str) -> None:
    with pytest.raises(Problem, match=f"VGPUCTL_{name}: '{value}' is not understood") as caught:
        settings("", {name: value})
    assert caught.value.exit_code == Exit.USAGE


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (Settings(namespace="Bad_NS/.."), "-n: 'Bad_NS/..' cannot be a namespace"),
        (Settings(namespace="a,b"), "-n: 'a,b' cannot be a namespace"),
        (Settings(selector="bad=("), "-l bad=( is not understood"),
    ],
)
def test_what_no_api_server_understands_is_told_before_it_is_asked(given: Settings, words: str) -> None:
    with pytest.raises(Problem) as caught:
        find_cluster(given)
    assert caught.value.what.startswith(words)
    assert caught.value.exit_code == Exit.USAGE


def test_a_pool_is_not_looked_for_on_this_machine_unless_it_is_named() -> None:
    with pytest.raises(Problem, match="no cluster is configured") as caught:
        pool(Settings())
    assert caught.value.exit_code == Exit.UNKNOWN
    assert [source.name for source in pool(Settings(root="/x"))] == ["files of /x"]


@pytest.mark.skipif(sys.platform != "linux", reason="user namespaces are Linux's own")
@pytest.mark.parametrize(
    ("command", "code"), [("version", 0), ("quota list --demo", 0), ("quota list --kubeconfig ~nobody-at-all/x", 3)]
)
def test_a_user_without_home_and_name_can_work(command: str, code: int) -> None:
    program = [str(Path(sys.executable).with_name("vgpuctl")), *command.split()]
    alone = ["unshare", "-U", "--map-user=12345", "env", "-u", "HOME", "-u", "XDG_CONFIG_HOME"]
    try:
        subprocess.run([*alone, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this machine makes no user namespaces (unshare -U)")
    done = subprocess.run([*alone, *program], capture_output=True, text=True, timeout=60)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
