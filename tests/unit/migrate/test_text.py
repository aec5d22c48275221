"""Amounts in texts are brought to another factor: the MiB stay, the rest of the text too."""

from __future__ import annotations

import difflib
import json
import re

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from vgpuctl.model.migrate.text import factors, rewrite

MEMORY = "volcano.sh/vgpu-memory"
POD = f"spec: {{containers: [{{name: main, resources: {{limits: {{{MEMORY}: %s}}}}}}]}}\n"


def changed(text: str, old: int = 10, new: int = 16, file: str = "x.yaml", memory: str = MEMORY) -> dict[str, str]:
    """Old line → new line of what was rewritten."""
    rewritten = rewrite(text, file, old, new, memory)
    before, after = text.splitlines(), rewritten.text.splitlines()
    assert len(before) == len(after)
    return {one.strip(): other.strip() for one, other in zip(before, after, strict=True) if one != other}


REWRITTEN = {
    "a pod": (
        f"kind: Pod\nspec:\n  containers:\n  - resources:\n      limits:\n        {MEMORY}: 1000\n",
        "1000",
        "625",
    ),
    "a Deployment": (
        f"kind: Deployment\nspec:\n  template:\n    spec:\n      containers:\n      - resources:\n"
        f"          limits:\n            {MEMORY}: '1000' # why\n",
        "'1000' # why",
        "'625' # why",
    ),
    "a Volcano job": (
        f"kind: Job\nspec:\n  tasks:\n  - template:\n      spec:\n        containers:\n        - resources:\n"
        f'            limits: {{"{MEMORY}": "1000"}}\n',
        '"1000"',
        '"625"',
    ),
    "an operator's own": (
        f"kind: RayCluster\nspec:\n  head:\n    any: {{limits: {{{MEMORY}: 1000}}}}\n",
        "1000",
        "625",
    ),
    "requests": (
        f"kind: Pod\nspec:\n  containers:\n  - resources:\n      requests:\n        {MEMORY}: 1000\n",
        "1000",
        "625",
    ),
    "a quota": (f"kind: ResourceQuota\nspec:\n  hard:\n    requests.{MEMORY}: 1k\n", "1k", "625"),
    "a quota that counts nothing": (f"kind: ResourceQuota\nspec:\n  hard:\n    limits.{MEMORY}: 1e3\n", "1e3", "625"),
    "a queue": (f"kind: Queue\nspec:\n  guarantee:\n    resource:\n      {MEMORY}: 1000\n", "1000", "625"),
    "octal": (f"kind: Pod\nspec:\n  x:\n    {MEMORY}: 01750\n", "01750", "625"),
    "Helm values": (f"resources:\n  limits:\n    {MEMORY}: 1000\n", "1000", "625"),
    "a chart's factor": ("deviceConfig:\n  nvidia:\n    gpuMemoryFactor: 10\n", "10", "16"),
    "a device config": ("nvidia:\n  gpuMemoryFactor: 10 # MiB\n", "10 # MiB", "16 # MiB"),
    "a device config in a ConfigMap": (
        "kind: ConfigMap\ndata:\n  device-config.yaml: |\n    nvidia:\n      gpuMemoryFactor: 10\n",
        "10",
        "16",
    ),
    "a device config in one line": (
        'kind: ConfigMap\ndata:\n  device-config.yaml: "nvidia:\\n  gpuMemoryFactor: 10\\n"\n',
        "10",
        "16",
    ),
    "the plugin's flag": ("kind: DaemonSet\nargs:\n- --gpu-memory-factor=10\n", "=10", "=16"),
    "a patch of kustomize": (
        "kind: Kustomization\npatches:\n- patch: |-\n    - op: replace\n"
        "      path: /spec/containers/0/resources/limits/volcano.sh~1vgpu-memory\n      value: 1000\n",
        "1000",
        "625",
    ),
    "a JSON patch of a quota": (
        "- op: replace\n  path: /spec/hard/requests.volcano.sh~1vgpu-memory\n  value: '1000'\n",
        "1000",
        "625",
    ),
    "a template in a ConfigMap": (
        f"kind: ConfigMap\ndata:\n  job: |\n    kind: Pod\n    spec:\n      x: {{{MEMORY}: 1000}}\n",
        "1000",
        "625",
    ),
    "a teams file": ("kind: Teams\nteams:\n- name: a\n  memory: 1000\n", "1000", "625"),
    "a second document": (f"kind: A\n---\nkind: Pod\nspec:\n  {MEMORY}: 1000\n", "1000", "625"),
    "CRLF": (f"kind: Pod\r\nspec:\r\n  {MEMORY}: 1000\r\n", "1000", "625"),
    "a byte order mark": (f"\ufeffkind: Pod\nspec:\n  {MEMORY}: 1000\n", "1000", "625"),
    "wide characters": (f"# 显存\nkind: Pod\nspec: {{a: 语言模型, {MEMORY}: 1000}}\n", "1000", "625"),
    "shared by an anchor": (f"x: &r\n  {MEMORY}: 1000\ny: *r\nz: {{<<: *r}}\n", "1000", "625"),
}


@pytest.mark.parametrize("name", REWRITTEN)
def test_one_line_changes_by_its_digits(name: str) -> None:
    text, before, after = REWRITTEN[name]
    rewritten = rewrite(text, "x.yaml", 10, 16, MEMORY)
    assert rewritten.left == []
    assert rewritten.text == text.replace(before, after)
    assert len(rewritten.places) == 1


@pytest.mark.parametrize("row", ['a: "{{ x }}"', "a: '{% #'", "a: b # {{ x }}", '- "it\'s {{ x }}"'])
def test_braces_in_quotes_and_comments_are_no_template(row: str) -> None:
    rewritten = rewrite(f"x:\n  {row}\n  {MEMORY}: 1000\n".replace("  -", "- z:"), "x.yaml", 10, 16, MEMORY)
    assert "template" not in " ".join(left.why for left in rewritten.left)


def test_json_is_rewritten_too() -> None:
    text = '{\t"kind": "Pod", "spec": {"limits": {"volcano.sh/vgpu-memory" :  "1000"}}}'
    assert rewrite(text, "x.json", 10, 16, MEMORY).text == text.replace('"1000"', '"625"')


@pytest.mark.parametrize(
    "text",
    [
        f"kind: Pod\nmetadata: {{annotations: {{{MEMORY}: '1000'}}}}\n",
        f"kind: Pod\nspec: {{x: {{{MEMORY}-percentage: 1000}}}}\n",
        f"kind: ResourceQuota\nstatus: {{hard: {{requests.{MEMORY}: 1000}}}}\n",
        f"nvidia: {{resourceMemoryName: {MEMORY}}}\n",
        f"kind: Pod\nspec: {{x: {{{MEMORY}: 0}}}}\n",
        f"kind: Pod # {MEMORY}: 1000\n",
        "kind: Teams\nteams:\n- name: a\n  memory: 200Gi\n",
        f"kind: Pod\nspec:\n  nodeSelector: {{{MEMORY}: '1000'}}\n",
        "",
        "a: {{ b }}\n",
    ],
    ids=lambda text: text.strip()[:40],
)
def test_what_is_no_amount_stays_and_is_not_told(text: str) -> None:
    rewritten = rewrite(text, "x.yaml", 10, 16, MEMORY)
    assert (rewritten.text, rewritten.places, rewritten.left) == (text, [], [])


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (f"kind: Pod\nspec: {{x: {{{MEMORY}: 4Gi}}}}\n", 2, "4Gi"),
        (f"kind: Pod\nspec: {{x: {{{MEMORY}: 1.5}}}}\n", 2, "1.5"),
        (f"kind: Pod\nspec: {{x: {{{MEMORY}: '{{{{ .Values.m }}}}'}}}}\n", 2, "no whole number"),
        (f"kind: Pod\nspec:\n  {MEMORY}: {{{{ .Values.m }}}}\n", 3, "template"),
        (f"{{{{- if .Values.gpu }}}}\nkind: Pod\nspec: {{{MEMORY}: 5}}\n", 1, "template"),
        (f"kind: Pod\nspec: [\n{MEMORY}: 5\n", 2, "cannot be read"),
        (f"a: {{{MEMORY}: &m 5}}\n", 1, "anchor"),
        (f"kind: ConfigMap\ndata:\n  run.sh: |\n    kubectl run --limits={MEMORY}=5\n", 4, "not understood"),
        ("nvidia:\n  gpuMemoryFactor: 12\n", 2, "the factor here is 12, not 10"),
        ("gpuMemoryFactor: 10\n", 1, "not understood"),
        ("args: [--gpu-memory-factor, '10']\n", 1, "gpu-memory-factor stands here"),
        ("- op: remove\n  from: /x/volcano.sh~1vgpu-memory\n", 2, "not understood"),
        (f"kind: ConfigMap\ndata:\n  x: '{{\"{MEMORY}\": 5}}'\n", 3, "by hand"),
    ],
)
def test_what_cannot_be_rewritten_is_named_and_stays(text: str, line: int, words: str) -> None:
    rewritten = rewrite(text, "x.yaml", 10, 16, MEMORY)
    assert rewritten.text == text
    assert [(left.line, words in left.why) for left in rewritten.left] == [(line, True)]


def test_an_amount_that_is_not_whole_is_rounded_up_and_told() -> None:
    (place,) = rewrite(f"kind: Pod\nspec: {{x: {{{MEMORY}: 1001}}}}\n", "x.yaml", 10, 16, MEMORY).places
    assert (place.before, place.after, place.mib_before, place.mib_after, place.rounded) == (1001, 626, 10010, 10016, 6)


def test_another_name_of_the_resource_counts() -> None:
    text = "kind: Pod\nspec:\n  example.com/mem: 1000\n"
    assert changed(text, memory="example.com/mem") == {"example.com/mem: 1000": "example.com/mem: 625"}


def test_the_factors_of_a_text_are_found() -> None:
    assert list(factors("nvidia: {gpuMemoryFactor: 7}\n---\nargs: [--gpu-memory-factor=9]\n", "x.yaml")) == [7, 9]
    assert list(factors("gpuMemoryFactor: 7\n", "x.yaml")) == []


amounts = st.integers(0, 1 << 40)
factor = st.integers(1, 4096)
quoted = st.sampled_from(["{}", '"{}"', "'{}'"])
around = st.text("abc: {}[]#&*!|>'\"%@`,-\n\t 语\u00e9", max_size=40)


@st.composite
def manifests(draw: st.DrawFn) -> tuple[str, list[int]]:
    """A stream of documents with amounts in it, and the amounts."""
    found: list[int] = []
    documents = []
    for _ in range(draw(st.integers(1, 3))):
        rows = [f"# {line}" for line in draw(around).splitlines()]
        rows += ["kind: Deployment", "metadata:", "  name: " + json.dumps(draw(around)), "spec:", "  list:"]
        for _ in range(draw(st.integers(0, 3))):
            number = draw(amounts)
            found.append(number)
            key = draw(quoted).format(draw(st.sampled_from(["", "requests.", "limits."])) + MEMORY)
            gap, tail = draw(st.sampled_from([" ", "   "])), draw(st.sampled_from(["", "  # 5", " #x"]))
            rows.append(f"  - {key}:{gap}{draw(quoted).format(number)}{tail}")
            rows.append(f"  - volcano.sh/vgpu-number: {draw(st.integers(0, 9))}")
        documents.append(draw(st.sampled_from(["\n", "\r\n"])).join(rows) + "\n")
    return "---\n".join(documents), found


@settings(max_examples=200)
@given(manifests(), factor, factor)
def test_mib_stay_the_same_and_only_amounts_change(made: tuple[str, list[int]], old: int, new: int) -> None:
    text, numbers = made
    rewritten = rewrite(text, "x.yaml", old, new, MEMORY)
    assert rewritten.left == []

    def read(text: str) -> list[int]:
        keys = [item for document in yaml.safe_load_all(text) for item in document["spec"]["list"] or ()]
        return [int(value) for item in keys for key, value in item.items() if key.endswith(MEMORY)]

    after = read(rewritten.text)
    assert read(text) == numbers
    for before, now in zip(numbers, after, strict=True):
        assert 0 <= now * new - before * old < new
    # Everything but digits is where it was.
    assert re.sub(r"\d+", "N", rewritten.text) == re.sub(r"\d+", "N", text)
    for line, other in zip(text.splitlines(), rewritten.text.splitlines(), strict=True):
        assert line == other or MEMORY in line
    assert sum(place.rounded for place in rewritten.places) == sum(
        now * new - before * old for before, now in zip(numbers, after, strict=True) if before != now
    )


@settings(max_examples=100)
@given(manifests(), factor, st.integers(1, 64))
def test_where_it_divides_there_and_back_is_the_same_text(made: tuple[str, list[int]], new: int, times: int) -> None:
    text, _ = made
    there = rewrite(text, "x.yaml", new * times, new, MEMORY).text
    assert rewrite(there, "x.yaml", new, new * times, MEMORY).text == text


@settings(max_examples=300)
@given(
    st.text(max_size=200) | around.map(lambda text: text.replace("a", MEMORY).replace("b", "gpuMemoryFactor")), factor
)
def test_any_text_is_left_as_it_is_or_changed_by_digits_only(text: str, new: int) -> None:
    rewritten = rewrite(text, "x.yaml", 10, new, MEMORY)
    matcher = difflib.SequenceMatcher(None, text, rewritten.text, autojunk=False)
    for kind, start, end, _, _ in matcher.get_opcodes():
        assert kind == "equal" or text[start:end].strip("0123456789kme+") == ""
