"""`vgpuctl install`, `upgrade` and `uninstall` where no cluster is needed, or none is meant."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.called import called
from vgpuctl.cli.conduct import _ask
from vgpuctl.cli.plugin import OPTIONS, chosen
from vgpuctl.model.install.options import Options, Toleration
from vgpuctl.model.problem import Problem

Run = Callable[..., tuple[int, str, str]]
UPSTREAM = ("--shim", "upstream")  # ours may not be built


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: str) -> tuple[int, str, str]:
        return called(monkeypatch, capfd, *arguments)

    return call


class TestOptions:
    def read(self, **texts: Any) -> Options:
        readers = {option.name: option.read for option in OPTIONS}
        return chosen(Options(), {name: readers[name](value) for name, value in texts.items()})

    def test_each_is_a_field_of_what_is_recorded(self) -> None:
        assert {option.name for option in OPTIONS} == set(Options.__struct_fields__) - {"namespace"}

    @pytest.mark.parametrize(
        ("text", "wanted"),
        [
            ("nvidia.com/gpu", Toleration(key="nvidia.com/gpu", operator="Exists")),
            ("team=ai", Toleration(key="team", value="ai")),
            ("team=ai:NoSchedule", Toleration(key="team", value="ai", effect="NoSchedule")),
            ("gpu:NoExecute", Toleration(key="gpu", operator="Exists", effect="NoExecute")),
            ("*", Toleration(operator="Exists")),
        ],
    )
    def test_a_taint_is_written_as_kubectl_writes_it(self, text: str, wanted: Toleration) -> None:
        assert self.read(tolerations=[text]).tolerations == [wanted]

    def test_pairs_come_one_by_one_or_together(self) -> None:
        assert self.read(node_selector=["a=b,c=d", "e="]).node_selector == {"a": "b", "c": "d", "e": ""}

    def test_a_dash_takes_away(self) -> None:
        found = self.read(
            node_selector=["-"], tolerations=["-"], runtime_class="-", registry="-", image_pull_secrets=["-"]
        )
        nothing = (found.node_selector, found.tolerations, found.runtime_class, found.registry)
        assert nothing == ({}, [], "", "")
        assert found.image_pull_secrets == []

    @pytest.mark.parametrize(
        ("name", "value"),
        [("node_selector", ["gpu"]), ("tolerations", [":NoSchedule"]), ("tolerations", ["a=b:Never"])],
    )
    def test_what_is_not_understood_is_wrong_use(self, name: str, value: list[str]) -> None:
        with pytest.raises(Problem, match="is not understood"):
            self.read(**{name: value})


class TestWithoutACluster:
    def test_the_images_one_a_line(self, run: Run) -> None:
        code, out, err = run("install", "--images", "--registry", "registry.example.com:5000/mirror/")
        assert (code, err) == (0, "")
        assert out == "registry.example.com:5000/mirror/projecthami/volcano-vgpu-device-plugin:v1.12.0\n"

    def test_the_manifests_on_standard_output(self, run: Run) -> None:
        code, out, err = run("install", "--export", "-", "-n", "gpu-pool", *UPSTREAM)
        assert code == 0
        assert "the configuration is a guess without a cluster" in err
        kinds = [item["kind"] for item in yaml.safe_load_all(out)]
        assert kinds[0] == "Namespace"
        assert kinds[-1] == "DaemonSet"

    def test_a_folder_for_kustomize(self, run: Run, tmp_path: Path) -> None:
        folder = tmp_path / "new" / "pool"
        assert run("install", "--export", str(folder), *UPSTREAM)[0] == 0
        named = yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]
        assert sorted(named) == sorted(path.name for path in folder.iterdir() if path.name != "kustomization.yaml")

    def test_an_earlier_export_is_written_over_and_what_else_is_there_stays(self, run: Run, tmp_path: Path) -> None:
        assert run("install", "--export", str(tmp_path), "--runtime-class", "nvidia", *UPSTREAM)[0] == 0
        (tmp_path / "patch.yaml").write_text("mine")
        code, _, err = run("install", "--export", str(tmp_path), *UPSTREAM)
        assert code == 0
        assert f"no part of this export, and left in {tmp_path}: patch.yaml, runtimeclass-nvidia.yaml" in err
        assert (tmp_path / "patch.yaml").read_text() == "mine"

    def test_a_folder_with_something_else_is_left_alone(self, run: Run, tmp_path: Path) -> None:
        (tmp_path / "thesis.txt").write_text("years")
        code, out, err = run("install", "--export", str(tmp_path), *UPSTREAM)
        assert (code, out) == (2, "")
        assert "is not empty" in err
        assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]

    def test_a_place_that_cannot_be_written(self, run: Run, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        code, _, err = run("install", "--export", str(tmp_path / "file" / "below"), *UPSTREAM)
        assert code == 2
        assert "cannot be written" in err

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (("install", "--export", ""), "--export is empty"),
            (("install", "--export", "-", "--images"), "one at a time"),
            (("install", "--export", "-", "--dry-run", "client"), "--dry-run needs a cluster"),
            (("install", "--export", "-", "--patch-scheduler"), "--patch-scheduler needs a cluster"),
            (("install", "--images", "--skip", "api"), "--skip needs a cluster"),
            (("upgrade", "--nodes", ""), "--nodes is empty"),
        ],
    )
    def test_what_is_not_done_is_not_taken_for_done(self, run: Run, arguments: tuple[str, ...], said: str) -> None:
        """An empty variable of a script must not turn an export into an install, nor a canary into the whole pool."""
        code, out, err = run(*arguments)
        assert (code, out) == (2, "")
        assert said in err

    def test_auto_needs_a_cluster_to_ask(self, run: Run) -> None:
        code, _, err = run("install", "--images", "--monitoring", "auto")
        assert code == 2
        assert "--monitoring auto asks a cluster" in err

    @pytest.mark.parametrize("command", ["install", "upgrade", "uninstall"])
    def test_none_is_configured(self, run: Run, command: str) -> None:
        assert run(command)[:2] == (3, "")

    @pytest.mark.parametrize("command", ["install", "upgrade", "uninstall"])
    def test_a_recording_cannot_be_changed(self, run: Run, command: str) -> None:
        code, _, err = run("--demo", command)
        assert code == 2
        assert "this changes a live cluster" in err

    def test_going_back_takes_no_options(self, run: Run) -> None:
        code, _, err = run("upgrade", "--rollback", "--image", "x:1")
        assert code == 2
        assert "--rollback takes the former options" in err


def test_a_question_that_is_broken_off_ends_its_line(monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    class Person:
        def readline(self) -> str:
            raise KeyboardInterrupt

    monkeypatch.setattr(sys, "stdin", Person())
    with pytest.raises(KeyboardInterrupt):
        _ask("Go on?")
    assert capfd.readouterr().err == "Go on? [y/N] \n"
