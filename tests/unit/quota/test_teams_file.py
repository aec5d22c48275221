"""Teams files: what is read, and what is wrong in them, with its place."""

from __future__ import annotations

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from vgpuctl.model.quota.team import Amounts, Team, TeamQueue, Teams
from vgpuctl.model.quota.teams_file import read_teams

HEAD = "apiVersion: vgpuctl.dev/v1\nkind: Teams\nteams:\n"


def test_everything_that_a_team_can_state() -> None:
    text = HEAD + (
        "- name: ai\n  namespaces: [ai, ai-dev]\n  number: 50\n  memory: 200Gi\n  cores: 800\n"
        "  priorities: {high: 10}\n  queue: {name: ai, guarantee: {number: 5}}\n- {name: b, number: 1, queue: b}\n"
    )
    teams, findings = read_teams(text, "teams.yaml")
    assert findings == []
    assert teams == [
        Team(
            name="ai",
            namespaces=["ai", "ai-dev"],
            number=50,
            memory="200Gi",
            cores=800,
            priorities={"high": 10},
            queue=TeamQueue(name="ai", guarantee=Amounts(number=5)),
        ),
        Team(name="b", number=1, queue=TeamQueue(name="b")),
    ]


@pytest.mark.parametrize(
    ("text", "line", "rule", "remedy"),
    [
        (HEAD + "- name: a\n  numbr: 5\n", 5, "field-misspelt", "number:"),
        (HEAD + "- name: a\n  number: five\n", 5, "quantity-integer", ""),
        (HEAD + "- name: a\n  number: -1\n", 5, "quantity-integer", ""),
        (HEAD + "- name: a\n  number: 1.5\n", 5, "quantity-integer", ""),
        (HEAD + '- name: a\n  number: "5"\n', 5, "quantity-integer", ""),
        (HEAD + "- name: a\n  memory: 8Xi\n", 5, "unit-suffix", ""),
        (HEAD + "- name: A_b\n", 4, "name", ""),
        (HEAD + "- name: kube-system\n", 4, "name", ""),
        (HEAD + "- name: a\n  namespaces: [a, kube-public]\n", 5, "name", ""),
        (HEAD + "- name: a\n  namespaces: a\n", 5, "type-mismatch", "[name, …]"),
        (HEAD + "- number: 5\n", 4, "name", "name: …"),
        (HEAD + "- name: a\n- name: a\n", 5, "same-name", "name each namespace once"),
        (HEAD + "- name: a\n- {name: b, namespaces: [a]}\n", 5, "same-name", "name each namespace once"),
        (HEAD + "- name: a\n  number: 1\n  number: 2\n", 6, "duplicate-key", None),
        (HEAD + "- name: a\n  queue: default\n", 5, "name", ""),
        (HEAD + "- name: a\n  queue: {guarantee: {number: 1}}\n", 5, "name", "name: …"),
        (HEAD + "- a\n", 4, "type-mismatch", "- name: …"),
        ("apiVersion: vgpuctl.dev/v1\nkind: Teams\n", 1, "type-mismatch", "teams: [{name: …}]"),
        ("apiVersion: v1\nkind: Teams\nteams: [{name: a}]\n", 1, "kind", "apiVersion: vgpuctl.dev/v1"),
        ("apiVersion: vgpuctl.dev/v1\nkind: Team\nteams: [{name: a}]\n", 2, "kind", "kind: Teams"),
        ("", 1, "empty", ""),
        (HEAD + "- name: [\n", None, "yaml-syntax", None),
    ],
)
def test_what_is_wrong_has_a_line(text: str, line: int | None, rule: str, remedy: str | None) -> None:
    _, findings = read_teams(text, "teams.yaml")
    found = next(finding for finding in findings if finding.rule == rule)
    assert line is None or found.line == line
    assert remedy is None or found.remedy == remedy


_LABEL = st.from_regex(r"[a-z]([a-z0-9]{0,8})", fullmatch=True).filter(lambda name: not name.startswith("openshift"))
_AMOUNTS = st.builds(
    Amounts,
    number=st.none() | st.integers(0, 10**6),
    memory=st.none() | st.sampled_from(["200Gi", "8192Mi", "20%", "1234"]),
    cores=st.none() | st.integers(0, 10**6),
)
_QUEUES = st.builds(
    TeamQueue,
    name=_LABEL.filter(lambda name: name not in ("root", "default")),
    capability=st.none() | _AMOUNTS,
    guarantee=st.none() | _AMOUNTS,
)
_TEAMS = st.builds(
    Team,
    name=_LABEL,
    number=st.none() | st.integers(0, 10**6),
    memory=st.none() | st.sampled_from(["200Gi", "8192Mi", "20%", "1234"]),
    cores=st.none() | st.integers(0, 10**6),
    priorities=st.dictionaries(_LABEL, st.integers(0, 100), max_size=2),
    queue=st.none() | _QUEUES,
)


@pytest.mark.parametrize("text", ["null", "42", "- 1", "hello"])
def test_a_file_that_is_no_mapping_says_so_in_words(text: str) -> None:
    _, findings = read_teams(text, "teams.yaml")
    assert findings[0].message == "a teams file must be a mapping"


@given(st.lists(_TEAMS, min_size=1, max_size=4, unique_by=lambda team: team.name))
def test_what_is_written_reads_back(teams: list[Team]) -> None:
    text = yaml.safe_dump(msgspec.to_builtins(Teams(teams=teams, source="context prod")), sort_keys=False)
    found, findings = read_teams(text, "teams.yaml")
    assert findings == []
    assert found == teams


@given(st.text(max_size=200))
def test_no_text_crashes_the_reader(text: str) -> None:
    read_teams(HEAD + text, "teams.yaml")
    read_teams(text, "teams.yaml")
