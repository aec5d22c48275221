"""`vgpuctl history`: what was recorded is read back; what is damaged is a row with its reason, never lost."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.quota.memory import MemoryCluster
from tests.unit.render.test_untrusted import TERMINALS as HOSTILE_TERMINALS
from tests.unit.render.test_untrusted import quiet, texts
from vgpuctl import resources
from vgpuctl.model.change import Change, How, Line, Target
from vgpuctl.model.history import PLACE, Entry, History, Wanted, entries
from vgpuctl.render.forms import render
from vgpuctl.render.terminal import Terminal
from vgpuctl.sources.demo import Demo
from vgpuctl.tasks.apply import Conduct, Group, apply
from vgpuctl.tasks.history import past

ROOT = Path(__file__).parents[3]
CLOCK = 1_789_464_000.0
TERMINALS = {
    "80": Terminal(80, True),
    "40": Terminal(40),
    "ascii": Terminal(80, ascii=True),
    "piped": Terminal(),
}
GOOD = {"time": "2026-09-15T10:00:00Z", "who": "ana", "what": "Queue lab", "how": "delete", "change": "", "undo": ""}


def line(**changes: Any) -> str:
    return json.dumps({**GOOD, **changes})


DAMAGED = {
    "no JSON": "made 5 to 6",
    "nothing": "",
    "no object": '["ana"]',
    "no user": json.dumps({key: value for key, value in GOOD.items() if key != "who"}),
    "a number for a user": line(who=5),
    "null": line(change=None),
    "deep": "[" * 100_000,
    "cut": line()[:-9],
    "no text": 7,
}


@pytest.mark.parametrize("case", DAMAGED)
def test_a_damaged_line_is_a_row_with_its_reason(case: str) -> None:
    found = entries({"20260915T100000.000000Z": DAMAGED[case], "20260915T100001.000000Z": line()})  # type: ignore[dict-item]
    assert [bool(entry.error) for entry in found] == [True, False]
    assert "damaged" in found[0].error
    assert found[0].at == found[1].at - 1  # type: ignore[operator]


@pytest.mark.parametrize("key", ["", "yesterday", "20261399T100000.000000Z", "20260915T100000Z"])
def test_a_line_without_a_time_is_shown_with_what_it_says(key: str) -> None:
    first, second = entries({"20260915T100001.000000Z": line(), key: line(who="bob")})
    assert (first.at, first.who) == (None, "bob")
    assert repr(key) in first.error
    assert second.error == ""


@given(st.dictionaries(st.text(max_size=30), st.text(max_size=60) | st.builds(line, who=st.text(max_size=5))))
def test_no_line_is_lost(data: dict[str, str]) -> None:
    found = entries(data)
    assert sorted(entry.key for entry in found) == sorted(data)
    assert [entry.at or 0 for entry in found] == sorted(entry.at or 0 for entry in found)


def test_changes_of_one_moment_keep_their_order() -> None:
    keys = ["20260915T100000.123456Z", "20260915T100000.1234560Z", "20260915T100000.12345600Z"]
    assert [entry.key for entry in entries(dict.fromkeys(reversed(keys), line()))] == keys


@pytest.mark.parametrize(
    ("what", "kind", "namespace", "name"),
    [
        ("ResourceQuota lab/vgpu", "ResourceQuota", "lab", "vgpu"),
        ("Queue lab", "Queue", "", "lab"),
        ("ServiceAccount kube-system/x", "ServiceAccount", "kube-system", "x"),
        ("Host /etc/ld.so.preload", "Host", "", "/etc/ld.so.preload"),
        ("Host chmod 0755 /a/b", "Host", "", "chmod 0755 /a/b"),
    ],
)
def test_an_object_is_told_apart(what: str, kind: str, namespace: str, name: str) -> None:
    (entry,) = entries({"20260915T100000.000000Z": line(what=what)})
    assert (entry.object_kind, entry.namespace, entry.name) == (kind, namespace, name)
    assert entry.object == what


KEPT = entries(
    {
        "20260915T100000.000000Z": line(who="ana@example.com", what="ResourceQuota lab/vgpu"),
        "20260915T110000.000000Z": line(who="ben@example.com", what="Queue lab"),
        "20260915T120000.000000Z": "broken",
        "20260915T130000.000000Z": line(who="ana@example.com", what="Node gpu-1"),
    }
)


@pytest.mark.parametrize(
    ("wanted", "hours"),
    [
        (Wanted(), [10, 11, 12, 13]),
        (Wanted(last=2), [12, 13]),
        (Wanted(last=9), [10, 11, 12, 13]),
        (Wanted(since=KEPT[1].at), [11, 12, 13]),
        (Wanted(since=KEPT[3].at), [13]),
        (Wanted(who="ana"), [10, 12, 13]),
        (Wanted(who="ana", last=1), [13]),
        (Wanted(kind="resourcequotas"), [10, 12]),
        (Wanted(kind="RESOURCEQUOTA", name="vgpu"), [10, 12]),
        (Wanted(kind="resourcequota", name="lab/vgpu"), [10, 12]),
        (Wanted(kind="resourcequota", name="other"), [12]),
        (Wanted(kind="queue", name="lab"), [11, 12]),
        (Wanted(namespace="lab"), [10, 12]),
    ],
)
def test_what_is_asked_for(wanted: Wanted, hours: list[int]) -> None:
    """A damaged line may be meant: it stays, unless its time says no."""
    assert [int(entry.key[9:11]) for entry in wanted.of(KEPT)] == hours


def test_what_apply_records_is_read_back() -> None:
    cluster = MemoryCluster()
    quota, file = Target("ResourceQuota", "vgpu", "lab"), Target("Host", "/opt/\udcff.so")
    changes = [
        Change(quota, How.APPLY, {"metadata": {}, "spec": {"hard": {}}}, lines=(Line("n", "20", "50"),), undo="set 20"),
        Change(file, How.DELETE, None, before={}),
        Change(Target("Queue", "lab"), How.APPLY, {"metadata": {}}),
    ]
    apply(cluster, [Group(changes)], Conduct(say=lambda text: None, yes=True, now=lambda: CLOCK))
    found = past(cluster, Wanted())
    assert found.kept == 3
    first, second, third = found.entries
    assert third.change == "created"
    assert (first.at, first.who, first.object, first.change, first.undo, first.how) == (
        CLOCK,
        "ana",
        "ResourceQuota lab/vgpu",
        "n 20 → 50",
        "set 20",
        "server-side apply",
    )
    assert (second.object, second.change) == ("Host /opt/?.so", "deleted")


def test_nothing_recorded_is_no_failure() -> None:
    assert past(MemoryCluster(), Wanted()) == History(source="memory")
    assert render(History(), "table", Terminal()).startswith("vgpuctl has changed nothing")


def damaged() -> History:
    rows = past(Demo(lambda: CLOCK), Wanted())
    return History(
        source=rows.source, entries=[*rows.entries, *entries({"20260915T100000.000000Z": "5 → 6"})], kept=rows.kept + 1
    )


@pytest.mark.parametrize("form", ["table", "wide"])
@pytest.mark.parametrize("where", TERMINALS)
def test_people_see(golden: Callable[[str, str], None], form: str, where: str) -> None:
    golden(f"history/{form}-{where}.txt", render(damaged(), form, TERMINALS[where]))


@pytest.mark.parametrize("form", ["json", "yaml", "csv"])
def test_machines_get(golden: Callable[[str, str], None], form: str) -> None:
    drawn = render(damaged(), form, Terminal())
    golden(f"history/history.{form}", drawn)
    if form == "csv":
        assert len(list(csv.reader(io.StringIO(drawn)))) == 1 + len(damaged().entries)
        return
    schema = json.loads(resources.text("schemas/History.schema.json"))
    jsonschema.validate(json.loads(drawn) if form == "json" else yaml.safe_load(drawn), schema)


@given(texts)
def test_whatever_a_line_holds_is_drawn_as_plain_text(text: str) -> None:
    fields = dict.fromkeys(("key", "who", "object_kind", "name", "namespace", "how", "change", "undo", "error"), text)
    output = History(source=text, entries=[Entry(**fields)], kept=1)
    for terminal in HOSTILE_TERMINALS:
        drawn = render(output, "wide", terminal)
        assert quiet(drawn.replace("\x1b[", "") if terminal.colour else drawn)
    assert quiet(render(output, "csv", Terminal()))


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "vgpuctl", "history", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=60
    )


def bundle(folder: Path, *objects: dict[str, Any]) -> str:
    (folder / "cluster").mkdir()
    (folder / "meta.json").write_text(json.dumps({"made": "2026-09-15T12:00:00Z", "source": "the lab"}))
    (folder / "cluster" / "configmaps.json").write_text(json.dumps({"kind": "List", "items": list(objects)}))
    return str(folder)


def test_a_bundle_is_read_by_its_own_clock(tmp_path: Path) -> None:
    data = {"20260915T090000.000000Z": line(who="ben"), "20260915T113000.000000Z": line()}
    metadata = {"name": PLACE.name, "namespace": PLACE.namespace}
    path = bundle(tmp_path, {"metadata": metadata, "data": data}, {"metadata": {"name": PLACE.name, "namespace": "x"}})
    done = run("--from", path, "--since", "1h", "-o", "json")
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert [entry["who"] for entry in document["entries"]] == ["ana"]
    assert document["kept"] == 2


def test_a_bundle_without_the_map_and_one_without_any(tmp_path: Path) -> None:
    assert run("--from", bundle(tmp_path)).returncode == 0
    (tmp_path / "cluster" / "configmaps.json").unlink()
    done = run("--from", str(tmp_path))
    assert (done.returncode, done.stdout) == (3, "")
    assert "does not hold cluster/configmaps.json" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--since", "soon"], "--since: 'soon' is not understood"),
        (["--object", "/vgpu"], "names no kind"),
        (["--last", "0"], "0 is not in the range"),
        (["--local"], "no objects of a cluster"),
        (["-o", "junit"], "'csv'"),
    ],
)
def test_wrong_use_is_told(arguments: list[str], told: str) -> None:
    done = run(*(["--demo"] if "--local" not in arguments else []), *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr


def test_options_reach_the_lines() -> None:
    done = run(
        "--demo", "-n", "nlp", "--who", "jonas", "--object", "resourcequota/vgpu", "--last", "1", "--since", "7d"
    )
    assert done.stdout.splitlines()[1:] == [
        "  requests.volcano.sh/vgpu-number 20 → 30",
        "  undo: vgpuctl quota set nlp 20",
        "1 of 7 changes",
    ]


def test_wrong_use_is_told_before_a_cluster_is_asked() -> None:
    done = run("--since", "soon")
    assert (done.returncode, done.stdout) == (2, "")
