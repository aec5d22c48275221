"""`config migrate` on directories: preview, in place, elsewhere, broken off, contradictions."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.called import called
from tests.unit.config.test_schema import validator
from vgpuctl.model.change import Change, Files, How, Target
from vgpuctl.model.problem import Problem
from vgpuctl.sources import manifests

MEMORY = "volcano.sh/vgpu-memory"
DEVICE = "nvidia:\n  gpuMemoryFactor: 10\n"
JOB = f"kind: Job\nmetadata: {{name: train, namespace: a}}\nspec:\n  {MEMORY}: 1001 # a comment\n"
QUOTA = (
    f'{{"kind": "ResourceQuota", "metadata": {{"name": "q"}}, "spec": {{"hard": {{"requests.{MEMORY}": "4000"}}}}}}\n'
)
FILES = {
    "device-config.yaml": DEVICE,
    "jobs/train.yml": JOB,
    "quota.json": QUOTA,
    "README.md": "# how\n",
    ".git/x.yaml": JOB,
}
NEW = {
    **FILES,
    "device-config.yaml": DEVICE.replace("10", "16"),
    "jobs/train.yml": JOB.replace("1001", "626"),
    "quota.json": QUOTA.replace("4000", "2500"),
}

Run = Callable[..., tuple[int, str, str]]


def put(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def there(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """run(*arguments): exit code, stdout, stderr of `vgpuctl config migrate`, beside a directory `pool`."""
    put(tmp_path / "pool", FILES)
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> tuple[int, str, str]:
        return called(monkeypatch, capfd, "config", "migrate", *arguments, stdin=b"")

    return call


def test_without_a_word_nothing_is_written(run: Run, golden: Callable[[str, str], None]) -> None:
    code, out, err = run("--factor", "16", "pool")
    assert (code, err) == (0, "")
    golden("migrate/preview.txt", out)
    code, out, err = run("--factor", "16", "pool", "-o", "wide")
    golden("migrate/preview-wide.txt", out)
    assert there(Path("pool")) == dict(sorted(FILES.items()))


@pytest.mark.skipif(shutil.which("patch") is None, reason="there is no patch")
def test_the_diff_is_a_patch_that_does_the_same(run: Run) -> None:
    put(Path("pool"), {"ends.yaml": f"kind: Pod\r\nspec:\r\n  {MEMORY}: 1000"})
    report = json.loads(run("--factor", "16", "pool", "-o", "json")[1])
    subprocess.run(["patch", "-p0", "--binary"], input=report["diff"].encode(), check=True, stdout=subprocess.DEVNULL)
    ends = NEW | {"ends.yaml": f"kind: Pod\r\nspec:\r\n  {MEMORY}: 625"}
    found = {name: (Path("pool") / name).read_bytes().decode() for name in there(Path("pool"))}
    assert {name: text for name, text in found.items() if not name.endswith(".orig")} == dict(sorted(ends.items()))


def test_in_place_all_files_are_rewritten_with_their_mode_and_nothing_else(run: Run) -> None:
    Path("pool/quota.json").chmod(0o600)
    code, out, _ = run("--factor", "16", "pool", "--in-place")
    assert code == 0
    assert "3 places in 3 files rewritten" in out
    assert there(Path("pool")) == dict(sorted(NEW.items()))
    assert Path("pool/quota.json").stat().st_mode & 0o777 == 0o600
    code, out, _ = run("--factor", "16", "pool", "--in-place")
    assert "written for gpuMemoryFactor 16 already" in out
    assert there(Path("pool")) == dict(sorted(NEW.items()))


def test_elsewhere_every_manifest_is_written(run: Run) -> None:
    assert run("--factor", "16", "pool", "--to", "new/place")[0] == 0
    assert there(Path("new/place")) == {
        name: NEW[name] for name in ("device-config.yaml", "jobs/train.yml", "quota.json")
    }
    assert there(Path("pool")) == dict(sorted(FILES.items()))
    code, _, err = run("--factor", "16", "pool", "--to", "new/place")
    assert code == 1
    assert "device-config.yaml is there already" in err and "run it again" not in err


def test_where_nothing_tells_the_factor_a_second_time_is_warned_of(run: Run) -> None:
    warned = "in units of 16 MiB now"
    assert warned in run("--factor", "16", "--from-factor", "10", "pool/jobs", "--in-place")[1]
    assert warned not in run("--factor", "16", "--from-factor", "10", "pool/jobs")[1]
    assert warned not in run("--factor", "16", "pool", "--to", "new")[1], "the device config tells it"


def test_json_has_every_place_and_its_schema(run: Run) -> None:
    report = json.loads(run("--factor", "16", "pool", "-o", "json")[1])
    validator("Migration").validate(report)
    assert [
        (row["file"], row["line"], row["before"], row["after"], row["mibBefore"], row["mibAfter"])
        for row in report["places"]
    ] == [
        ("pool/device-config.yaml", 2, 10, 16, None, None),
        ("pool/quota.json", 1, 4000, 2500, 40000, 40000),
        ("pool/jobs/train.yml", 4, 1001, 626, 10010, 10016),
    ]


def test_what_is_left_is_named_and_a_finding(run: Run) -> None:
    chart = {
        "chart/templates/job.yaml": f"{{{{- if .Values.gpu }}}}\nspec: {{{MEMORY}: 5}}\n",
        "chart/run.sh": f"kubectl --limits={MEMORY}=5\n",
        "chart/latin.yaml": f"# {MEMORY}\n",
    }
    put(Path("pool"), chart)
    Path("pool/chart/latin.yaml").write_bytes(f"{MEMORY}: \xe9".encode("latin-1"))
    Path("pool/link.yaml").symlink_to("quota.json")
    code, out, _ = run("--factor", "16", "pool")
    assert code == 1
    for words in (
        "job.yaml:1: it is a template",
        "run.sh:1: it is no YAML",
        "latin.yaml:1: it is not UTF-8",
        "link.yaml: it cannot be read",
    ):
        assert words in out


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--factor", "16", "pool/jobs"), 2, ("--from-factor",)),
        (("--factor", "16", "pool", "--from-factor", "11"), 1, ("--from-factor 11", "device-config.yaml says 10")),
        (("--factor", "16", "nowhere"), 2, ("there is no nowhere",)),
        (("--factor", "16", "pool", "--in-place", "--to", "x"), 2, ("two places",)),
        (("--factor", "0", "pool"), 2, ("--factor",)),
        (("pool",), 2, ("--factor",)),
        (("--factor", "16"), 3, ("no cluster",)),
    ],
)
def test_wrong_use_is_told(run: Run, arguments: tuple[str, ...], code: int, words: tuple[str, ...]) -> None:
    got, out, err = run(*arguments)
    assert (got, out) == (code, "")
    assert all(word in err for word in words), err


def test_two_factors_in_one_directory_are_a_contradiction(run: Run) -> None:
    put(Path("pool"), {"other.yaml": "nvidia: {gpuMemoryFactor: 11}\n"})
    code, out, err = run("--factor", "16", "pool", "--in-place")
    assert (code, out) == (1, "")
    assert "10 in pool/device-config.yaml" in err and "11 in pool/other.yaml" in err


class TestBrokenOff:
    """A run that is killed at any moment has changed nothing, or is ended by the next one."""

    @pytest.mark.parametrize("moment", range(20))
    def test_killed_at_any_write_it_ends_right(self, run: Run, monkeypatch: pytest.MonkeyPatch, moment: int) -> None:
        writes = iter(range(1000))

        class Killed(BaseException):
            pass

        def at(act: Callable[..., object]) -> Callable[..., object]:
            def work(*arguments: object, **options: object) -> object:
                if next(writes) == moment:
                    raise Killed
                return act(*arguments, **options)

            return work

        collected = manifests.collect(["pool"])
        change = Change(Target("Host", collected.folder), How.FILES, _files(collected))
        with monkeypatch.context() as patch:
            patch.setattr(manifests, "_put", at(manifests._put))
            patch.setattr(Path, "replace", at(Path.replace))
            patch.setattr(Path, "unlink", _dead(Path.unlink, lambda: next(writes) > moment))
            with contextlib.suppress(Killed):
                manifests.rewrite(change)
        assert run("--factor", "16", "pool", "--in-place")[0] == 0
        found = {name: text for name, text in there(Path("pool")).items() if not name.endswith(".vgpuctl")}
        assert found == dict(sorted(NEW.items()))
        assert not Path("pool/.vgpuctl-migrate").exists()

    def test_a_file_that_changed_meanwhile_stops_all(self, run: Run) -> None:
        collected = manifests.collect(["pool"])
        files = _files(collected)
        Path("pool/quota.json").write_text("{}", encoding="utf-8")
        with pytest.raises(Problem, match="is not what it was"):
            manifests.rewrite(Change(Target("Host", collected.folder), How.FILES, files))
        assert Path("pool/device-config.yaml").read_text() == DEVICE
        assert sorted(there(Path("pool"))) == sorted(FILES)

    @pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only for root")
    def test_a_read_only_directory_is_told(self, run: Run) -> None:
        Path("pool/jobs").chmod(0o500)
        code, _, err = run("--factor", "16", "pool", "--in-place")
        Path("pool/jobs").chmod(0o700)
        assert code == 1
        assert "cannot be written" in err and there(Path("pool")) == dict(sorted(FILES.items()))

    @pytest.mark.parametrize("name", ["../outside", "/etc/hostname", "device-config.yaml"])
    def test_a_journal_of_somebody_else_moves_nothing(self, run: Run, name: str) -> None:
        put(Path("pool"), {".vgpuctl-migrate": json.dumps([name])})
        put(Path(), {".outside.vgpuctl": "bad"})
        assert run("--factor", "16", "pool")[0] == 0
        assert not Path("outside").exists()
        assert Path("pool/device-config.yaml").read_text() == DEVICE


def _files(collected: manifests.Collected) -> Files:
    return Files(
        tuple(
            (name, text.encode(), NEW[name].encode())
            for name, text in FILES.items()
            if NEW[name] != text and any(one.path.endswith(name) for one in collected.files)
        )
    )


def _dead(act: Callable[..., None], is_dead: Callable[[], bool]) -> Callable[..., None]:
    """After its death a process cleans nothing up."""

    def work(*arguments: object, **options: object) -> None:
        if not is_dead():
            act(*arguments, **options)

    return work
