"""`vgpuctl doctor` as a whole: what it prints in each form, its exit codes, what it runs on."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.machines import POD, UNREAD, healthy, with_card, with_host
from tests.unit.recording import record
from vgpuctl.checks.check import Check, Evidence, Options, Outcome, Result, Status, Where, run_checks
from vgpuctl.checks.registry import AREAS, all_checks
from vgpuctl.model import kube, proc
from vgpuctl.model.doctor import DoctorReport
from vgpuctl.model.facts import Facts, Part
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.model.reading import known, missing
from vgpuctl.render.forms import render
from vgpuctl.render.terminal import Terminal
from vgpuctl.tasks.doctor import Diagnosis, choose, count, diagnose, explanation, listing, report, verdict, wait

MACHINE_AREAS = ("host", "driver", "runtime", "shim")
CHECKS = tuple(check for check in all_checks() if check.area in MACHINE_AREAS)
NO_UVM = {
    "/proc/modules": "nvidia 14299136 - - Live 0xffffffffc0400000 (O)\n",
    "/proc/devices": "Character devices:\n195 nvidia\n195 nvidiactl\n",
}
WITHOUT_UVM = ("/dev/nvidia-uvm", "/dev/nvidia-uvm-tools")


def ill() -> Facts:
    """The healthy node with one thing wrong of each kind."""
    facts = with_host(
        healthy(),
        modules=known(proc.Modules(frozenset({"nvidia"})), "/proc/modules"),
        majors=known({"nvidia": 195, "nvidiactl": 195}, "/proc/devices"),
        kubelet=UNREAD,
        engines=known({}, "--version"),
    )
    return with_card(facts, persistence=known(False, "NVML"))


def diagnosis(facts: Facts) -> Diagnosis:
    pod = kube.Pod(metadata=kube.Metadata(name="train", uid=POD))
    facts = replace(facts, daemonsets=known((), "/apis/apps/v1/daemonsets"), pods=known((pod,), "/api/v1/pods"))
    outcomes = tuple(run_checks(CHECKS, facts, Options()))
    return Diagnosis(facts.source, facts.now, outcomes, dict.fromkeys(MACHINE_AREAS, facts.source))


def printed(facts: Facts, form: str, terminal: Terminal) -> str:
    made = report(diagnosis(facts), choose([], []))
    return render(replace_version(made), form, terminal)


def replace_version(made: DoctorReport) -> DoctorReport:
    from msgspec.structs import replace as changed

    return changed(made, version="0.0.0")


TERMINALS: Mapping[str, Terminal] = {
    "80": Terminal(80),
    "200": Terminal(200),
    "piped": Terminal(None),
    "80-colour": Terminal(80, colour=True, live=True),
    "80-ascii": Terminal(80, ascii=True),
}


@pytest.mark.parametrize("form", ["table", "wide"])
@pytest.mark.parametrize("name", TERMINALS)
@pytest.mark.parametrize("state", ["healthy", "ill"])
def test_tables_look_as_they_should(state: str, form: str, name: str, golden: Callable[[str, str], None]) -> None:
    text = printed(healthy() if state == "healthy" else ill(), form, TERMINALS[name])
    golden(f"doctor/{state}-{form}-{name}.txt", text)
    if TERMINALS[name].width and not TERMINALS[name].colour:
        assert max(map(len, text.splitlines())) <= (TERMINALS[name].width or 0)
    if TERMINALS[name].ascii:
        assert text.isascii()


@pytest.mark.parametrize("form", ["short", "json", "yaml", "junit", "csv", "name"])
def test_other_forms(form: str, golden: Callable[[str, str], None]) -> None:
    golden(f"doctor/ill.{form}", printed(ill(), form, Terminal(None)))


def test_the_last_line_counts() -> None:
    for form in ("table", "wide", "short"):
        assert printed(healthy(), form, Terminal(80)).splitlines()[-1] == (
            "29 passed, 0 warnings, 0 failed, 0 unknown, 4 skipped"
        )


def test_junit_counts_what_it_holds() -> None:
    root = ElementTree.fromstring(printed(ill(), "junit", Terminal(None)))
    for suite in (root, *root.iter("testsuite")):
        cases = list(suite.iter("testcase"))
        assert int(suite.get("tests", "")) == len(cases)
        for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(suite.get(attribute, "")) == sum(case.find(tag) is not None for case in cases)


@given(st.text(max_size=40), st.sampled_from(["table", "wide", "short", "json", "yaml", "junit", "csv", "name"]))
def test_outside_text_is_drawn_as_text_in_every_form(hostile: str, form: str) -> None:
    text = f"{hostile}\x1b[31m[bold]</testcase>\u202e"
    check = replace(
        CHECKS[0], run=lambda facts, options: Result(Status.FAIL, text, text, (Evidence(text, text),), text)
    )
    outcome = Outcome(check, check.run(healthy(), Options()))  # type: ignore[arg-type]
    made = report(Diagnosis("x", 0.0, (outcome,), {}), choose([], []))
    shown = render(made, form, Terminal(80, colour=False))
    if form == "json":
        assert json.loads(shown)["results"][0]["summary"] == text
    elif form == "junit":
        assert ElementTree.fromstring(shown).tag == "testsuites"
    else:
        assert "\x1b" not in shown


class TestVerdict:
    @pytest.mark.parametrize(
        ("statuses", "strict", "wanted"),
        [
            ("pass skip", False, Exit.FINE),
            ("pass warn", False, Exit.FINE),
            ("pass warn", True, Exit.FINDINGS),
            ("unknown warn", False, Exit.UNKNOWN),
            ("unknown warn", True, Exit.FINDINGS),
            ("unknown fail", False, Exit.FINDINGS),
            ("fail", False, Exit.FINDINGS),
            ("", False, Exit.FINE),
        ],
    )
    def test_a_failure_beats_an_unknown(self, statuses: str, strict: bool, wanted: Exit) -> None:
        outcomes = [Outcome(CHECKS[0], Result(Status(status), "")) for status in statuses.split()]
        assert verdict(count(outcomes), strict=strict) is wanted


class TestChoice:
    def test_ids_and_areas(self) -> None:
        chosen = choose(["host", "driver-match"], ["wsl"])
        ids = [check.id for check in chosen.checks]
        assert "driver-match" in ids and "nvidia-uvm" in ids
        assert "wsl" not in ids and "nvml-usable" not in ids
        assert set(chosen.left_out) == {check.id for check in all_checks()} - set(ids)

    def test_a_wrong_name_is_wrong_use_with_the_right_one(self) -> None:
        with pytest.raises(Problem, match="nvidia-uv") as caught:
            choose([], ["nvidia-uv"])
        assert caught.value.exit_code is Exit.USAGE
        assert "nvidia-uvm" in caught.value.remedy

    def test_an_area_is_not_explained(self) -> None:
        with pytest.raises(Problem, match="area"):
            explanation("driver")


class TestRegistry:
    def test_ids_are_unique_and_stable_in_form(self) -> None:
        ids = [check.id for check in all_checks()]
        assert len(ids) == len(set(ids))
        assert all(id == id.lower() and " " not in id for id in ids)

    def test_each_check_lies_in_an_area_and_comes_after_known_ones(self) -> None:
        seen: set[str] = set()
        for check in all_checks():
            assert check.area in {area.id for area in AREAS}
            assert set(check.after) <= {other.id for other in all_checks()}, check.id
            seen.add(check.id)

    def test_every_check_of_a_machine_is_explained(self) -> None:
        assert all(check.explain for check in CHECKS)

    def test_the_list_has_them_all(self) -> None:
        assert len(listing(all_checks()).checks) == len(all_checks())


class _Pool:
    """A source of one part, for what the runner does with sources."""

    name, scope = "pool", ""
    parts = frozenset({Part.NODES})

    def now(self) -> float:
        return 1.0

    def read(self, part: Part) -> object:
        return missing("no permission", "/api/v1/nodes", denied=True)


def _check(id: str, *needs: Part, also: tuple[Part, ...] = ()) -> Check:
    def run(facts: Facts, options: Options) -> Result:
        for part in needs:
            facts.part(part).need()
        return Result(Status.PASS, "")

    return Check(id, id, "cluster", Status.FAIL, needs, (Where.API,), run, also=also)


class TestSources:
    def run(self, *checks: Check) -> dict[str, tuple[str, str]]:
        found = diagnose([_Pool()], checks, Options())  # type: ignore[list-item]
        return {one.check.id: (one.result.status.value, one.result.summary) for one in found.outcomes}

    def test_what_was_tried_is_unknown_and_what_cannot_be_is_skipped(self) -> None:
        found = self.run(
            _check("nodes", Part.NODES),
            _check("pods", Part.PODS),
            _check("host", Part.HOST),
            _check("free", also=(Part.NODES,)),
        )
        assert found["nodes"] == ("unknown", "no permission")
        assert found["pods"] == ("skip", "the source does not hold pods")
        assert found["host"][0] == "skip" and "machine" in found["host"][1]
        assert found["free"][0] == "pass"


class TestWait:
    def looks(self, *states: Facts) -> Callable[[], Diagnosis]:
        left = list(states)
        return lambda: diagnosis(left.pop(0) if len(left) > 1 else left[0])

    def test_it_ends_when_all_is_well(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("vgpuctl.tasks.doctor._PAUSE", 0.0)
        told: list[object] = []
        found, well = wait(self.looks(ill(), ill(), healthy()), 60, told.append)
        assert well and len(told) == 2
        assert count(found.outcomes).failed == 0

    def test_it_gives_up_in_time(self) -> None:
        assert wait(self.looks(ill()), 0.0, lambda counts: None)[1] is False


class Done(NamedTuple):
    """What a run of the program left behind."""

    returncode: int
    stdout: str
    stderr: str


Run = Callable[..., Done]


@pytest.fixture
def vgpuctl(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the program in this process: vgpuctl("doctor", "--local", NO_COLOR="1")."""
    from vgpuctl.cli import main

    monkeypatch.setenv("KUBECONFIG", "")

    def run(*arguments: str, **environment: str) -> Done:
        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", ["vgpuctl", *arguments])
            for name, value in environment.items():
                patch.setenv(name, value)
            with pytest.raises(SystemExit) as ended:
                main.main()
        out, err = capsys.readouterr()
        return Done(int(ended.value.code or 0), out, err)

    return run


class TestCommand:
    """The whole program on a recorded node."""

    def test_a_healthy_node_is_fine(self, vgpuctl: Run, tmp_path: Path) -> None:
        done = vgpuctl("doctor", "--from", str(record(tmp_path)))
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.splitlines()[-1].startswith("19 passed, 0 warnings, 0 failed, 0 unknown")

    @pytest.mark.parametrize("form", ["table", "wide", "short", "json", "yaml", "junit", "csv", "name"])
    def test_a_failure_exits_1_in_every_form(self, vgpuctl: Run, form: str, tmp_path: Path) -> None:
        bundle = record(tmp_path, without=WITHOUT_UVM, **NO_UVM)
        done = vgpuctl("doctor", "--from", str(bundle), "-o", form)
        assert done.returncode == 1
        assert "nvidia-uvm" in done.stdout and done.stderr == ""

    @pytest.mark.parametrize(
        ("arguments", "kind"),
        [((), "DoctorReport"), (("--list",), "CheckList"), (("--explain", "nvidia-uvm"), "CheckExplanation")],
    )
    def test_json_is_as_its_schema_says(
        self, vgpuctl: Run, arguments: tuple[str, ...], kind: str, tmp_path: Path
    ) -> None:
        import jsonschema

        bundle = record(tmp_path, without=WITHOUT_UVM, **NO_UVM)
        shown = json.loads(vgpuctl("doctor", "--from", str(bundle), "-o", "json", *arguments).stdout)
        schema = Path(__file__).parents[2] / "schemas" / f"{kind}.schema.json"
        assert shown["kind"] == kind
        jsonschema.validate(shown, json.loads(schema.read_text(encoding="utf-8")))

    def test_an_unknown_exits_3(self, vgpuctl: Run, tmp_path: Path) -> None:
        bundle = record(tmp_path)
        (bundle / "nodes/gpu-1/host/commands/df.txt").unlink()
        done = vgpuctl("doctor", "--from", str(bundle))
        assert done.returncode == 3
        assert "free space is not recorded" in done.stdout

    def test_warnings_are_findings_when_asked(self, vgpuctl: Run, tmp_path: Path) -> None:
        text = (record(tmp_path) / "nodes/gpu-1/host/commands/nvidia-smi-q-x.txt").read_text(encoding="utf-8")
        off = text.replace("<persistence_mode>Enabled", "<persistence_mode>Disabled")
        bundle = record(tmp_path, **{"/commands/nvidia-smi-q-x.txt": off})
        assert vgpuctl("doctor", "--from", str(bundle)).returncode == 0
        assert vgpuctl("doctor", "--from", str(bundle), "--fail-on", "warn").returncode == 1

    @pytest.mark.parametrize(("toolkit", "code", "words"), [("11.4", 0, "runs on driver"), ("14.0", 1, "does not run")])
    def test_cuda(self, vgpuctl: Run, toolkit: str, code: int, words: str, tmp_path: Path) -> None:
        done = vgpuctl("doctor", "--from", str(record(tmp_path)), "--cuda", toolkit, "--only", "cuda-driver")
        assert done.returncode == code
        assert words in done.stdout

    @pytest.mark.parametrize(
        "arguments",
        [("--cuda", "eleven"), ("--only", "nothing"), ("--wait", "soon"), ("--explain", "nothing"), ("-o", "pdf")],
    )
    def test_wrong_use(self, vgpuctl: Run, arguments: tuple[str, ...], tmp_path: Path) -> None:
        done = vgpuctl("doctor", "--from", str(record(tmp_path)), *arguments)
        assert done.returncode == 2
        assert done.stdout == "" and "Traceback" not in done.stderr

    @pytest.mark.parametrize("arguments", [("--list",), ("--explain", "wsl")])
    @pytest.mark.parametrize(("form", "code"), [("table", 0), ("name", 0), ("csv", 0), ("short", 2), ("junit", 2)])
    def test_the_list_in_every_form(self, vgpuctl: Run, arguments: tuple[str, ...], form: str, code: int) -> None:
        done = vgpuctl("doctor", *arguments, "-o", form)
        assert (done.returncode, "wsl" in done.stdout) == (code, code == 0)
        assert "crash" not in done.stderr

    def test_a_recording_cannot_be_mended(self, vgpuctl: Run, tmp_path: Path) -> None:
        done = vgpuctl("doctor", "--from", str(record(tmp_path)), "--fix")
        assert done.returncode == 2

    def test_time_runs_out(self, vgpuctl: Run, tmp_path: Path) -> None:
        bundle = record(tmp_path, without=WITHOUT_UVM, **NO_UVM)
        assert vgpuctl("doctor", "--from", str(bundle), "--wait", "0s").returncode == 4

    def test_neither_card_nor_cluster_takes_two_lines(self, vgpuctl: Run, tmp_path: Path) -> None:
        done = vgpuctl("doctor", "--root", str(tmp_path))
        assert done.returncode == 3 and "unknown" in done.stdout
        done = vgpuctl("doctor")
        if "no NVIDIA GPU" not in done.stderr:
            pytest.skip("this machine has a GPU")
        assert done.returncode == 3 and done.stdout == ""
        assert len(done.stderr.splitlines()) == 2 and "--demo" in done.stderr

    def test_no_color_and_force_color(self, vgpuctl: Run, tmp_path: Path) -> None:
        bundle = str(record(tmp_path))
        assert "\x1b[" not in vgpuctl("doctor", "--from", bundle).stdout
        assert "\x1b[" in vgpuctl("doctor", "--from", bundle, FORCE_COLOR="1").stdout
        assert "\x1b[" not in vgpuctl("doctor", "--from", bundle, FORCE_COLOR="1", NO_COLOR="1").stdout


def test_the_page_of_checks_is_fresh() -> None:
    from tools.checks_page import files

    for name, text in files().items():
        path = Path(__file__).parents[2] / name
        assert path.read_text(encoding="utf-8") == text, "make generate"
