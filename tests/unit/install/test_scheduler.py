"""The scheduler's text is edited at positions: what is not meant stays byte for byte, or the edit is refused."""

from __future__ import annotations

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vgpuctl.model.config.kind import SCHEDULER
from vgpuctl.model.config.scheduler_rules import on
from vgpuctl.model.document import read_yaml
from vgpuctl.model.install.scheduler import BY_HAND, switched_on
from vgpuctl.model.problem import Exit, Problem

PLAIN = """\
# Who changes this tells the platform team.
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang   # all or nothing
    enablePreemptable: false

- plugins:
  - name: drf
  - name: predicates
    arguments:
      predicate.CacheEnable: true
      # predicate.ProportionalEnable: true

  # ranks
  - name: nodeorder
  - name: binpack
"""
ENTRY = ["+  - name: deviceshare", "+    arguments:", "+      deviceshare.VGPUEnable: true"]


def diff(old: str, new: str) -> list[str]:
    """Removed and added lines, ends of lines included where they are no LF."""
    lines = difflib.ndiff(old.splitlines(keepends=True), new.splitlines(keepends=True))
    return [line[0] + line[2:].removesuffix("\n") for line in lines if line[0] in "+-"]


def with_entry(*rows: str) -> str:
    return PLAIN.replace("  # ranks\n", "".join(f"  {row}\n" for row in rows) + "  # ranks\n")


class TestEdits:
    @pytest.mark.parametrize(
        ("old", "wanted"),
        [
            pytest.param(PLAIN, ENTRY, id="no entry: behind predicates, its comments before, the next one's after"),
            pytest.param(PLAIN.replace("\n", "\r\n"), [f"{row}\r" for row in ENTRY], id="CRLF"),
            pytest.param(
                with_entry("- name: deviceshare"),
                ["+    arguments:", "+      deviceshare.VGPUEnable: true"],
                id="an entry without arguments",
            ),
            pytest.param(
                with_entry("- name: deviceshare # ours", "  arguments:"),
                ["+      deviceshare.VGPUEnable: true"],
                id="empty arguments",
            ),
            pytest.param(
                with_entry("- enablePredicate: true", "  name: deviceshare"),
                ["+    arguments:", "+      deviceshare.VGPUEnable: true"],
                id="the name is not the first key",
            ),
            pytest.param(
                with_entry(
                    "- name: deviceshare", "  arguments:", "        # kept", "        deviceshare.ScheduleWeight: 10"
                ),
                ["+          deviceshare.VGPUEnable: true"],
                id="other arguments, indented their own way",
            ),
            pytest.param(
                with_entry("- name: deviceshare", "  arguments:", "    deviceshare.VGPUEnable: false # later"),
                ["-      deviceshare.VGPUEnable: false # later", "+      deviceshare.VGPUEnable: true # later"],
                id="off",
            ),
            pytest.param(
                with_entry("- name: deviceshare", "  arguments:", '    deviceshare.VGPUEnable: "yes"'),
                ['-      deviceshare.VGPUEnable: "yes"', "+      deviceshare.VGPUEnable: true"],
                id="a value that does not count",
            ),
            pytest.param(
                with_entry("- name: deviceshare", "  arguments:", "    deviceshare.VGPUEnable: # ?"),
                ["-      deviceshare.VGPUEnable: # ?", "+      deviceshare.VGPUEnable: true # ?"],
                id="no value",
            ),
            pytest.param(
                with_entry(
                    "- name: deviceshare",
                    "  arguments:",
                    "    deviceshare.VGPUEnable: true",
                    '    deviceshare.GPUSharingEnable: "true" # of old',
                    "    deviceshare.GPUNumberEnable: false",
                ),
                [
                    '-      deviceshare.GPUSharingEnable: "true" # of old',
                    "+      deviceshare.GPUSharingEnable: false # of old",
                ],
                id="an older switch, with which the scheduler would exit",
            ),
            pytest.param(
                with_entry("- {name: deviceshare, arguments: {deviceshare.VGPUEnable: false}}"),
                [
                    "-  - {name: deviceshare, arguments: {deviceshare.VGPUEnable: false}}",
                    "+  - {name: deviceshare, arguments: {deviceshare.VGPUEnable: true}}",
                ],
                id="a value in flow style can be replaced",
            ),
            pytest.param(
                "tiers:\n- plugins:\n  - name: deviceshare\n- plugins:\n  - name: gang\n",
                ["+    arguments:", "+      deviceshare.VGPUEnable: true", "+  - name: predicates"],
                id="no predicates: in the tier of deviceshare",
            ),
            pytest.param(
                "tiers:\n- plugins:\n  - name: gang\n- plugins:\n  - name: proportion",
                ["-  - name: proportion", "+  - name: proportion", "+  - name: predicates", *ENTRY],
                id="neither, and no end of line at the end",
            ),
            pytest.param(
                "tiers:\n  - plugins:\n      - name: predicates\nconfigurations: []\n",
                [
                    "+      - name: deviceshare",
                    "+        arguments:",
                    "+          deviceshare.VGPUEnable: true",
                ],
                id="lists indented, something behind the tiers",
            ),
            pytest.param(
                "tiers:\n- plugins:\n  - name: deviceshare\n    arguments: {}\n".replace(" {}", "")
                + "- plugins:\n  - name: predicates\n",
                ["+      deviceshare.VGPUEnable: true"],
                id="predicates in another tier is enough",
            ),
        ],
    )
    def test_only_what_is_meant_changes(self, old: str, wanted: list[str]) -> None:
        new = switched_on(old, "the text")
        changed = diff(old, new.text)
        if not old.endswith("\n"):
            assert not new.text.endswith("\n")
        assert changed == wanted
        config = SCHEDULER.read(read_yaml(new.text)[0])
        assert on(config, "deviceshare.VGPUEnable")
        assert config.named("predicates")
        assert new.lines

    def test_what_is_right_stays(self) -> None:
        text = with_entry("- name: deviceshare", "  arguments:", '    deviceshare.VGPUEnable: "1"')
        assert switched_on(text, "the text").text == text
        assert switched_on(text, "the text").lines == ()

    def test_it_settles_at_once(self) -> None:
        once = switched_on(PLAIN, "the text").text
        assert switched_on(once, "the text").text == once

    def test_a_byte_order_mark_stays(self) -> None:
        assert switched_on("\ufeff" + PLAIN, "the text").text == "\ufeff" + switched_on(PLAIN, "the text").text

    def test_old_and_new_are_told(self) -> None:
        text = with_entry("- name: deviceshare", "  arguments:", "    deviceshare.VGPUEnable: 1")
        (line,) = switched_on(text, "the text").lines
        assert (line.path, line.before, line.after) == ("deviceshare.VGPUEnable", "1", "true")


class TestRefusals:
    @pytest.mark.parametrize(
        ("text", "why"),
        [
            ("tiers:\n- plugins: [{name: predicates}]\n", "one a line"),
            ("{tiers: [{plugins: [{name: predicates}]}]}", "one a line"),
            ("tiers:\n- plugins:\n  - name: predicates\n  - {name: deviceshare}\n", "flow style"),
            ("tiers:\n- plugins:\n  - name: predicates\n  - name: deviceshare\n    arguments: {}\n", "flow style"),
            ("tiers:\n- plugins:\n  - name: predicates\n  - name: deviceshare\n    arguments: 3\n", "no mapping"),
            (with_entry("- name: deviceshare", "- name: deviceshare"), "2 times"),
            (
                "a: &x false\n" + with_entry("- name: deviceshare", "  arguments: {deviceshare.VGPUEnable: *x}"),
                "layout",
            ),
            ("tiers:\n- plugins: &p\n  - name: predicates\n- plugins: *p\n", "one a line"),
            ("tiers:\n  plugins: [\n", "no valid YAML"),
            ("", "no valid YAML"),
            ("actions: allocate\n", "no tiers"),
            ("tiers: 3\n", "no tiers"),
            (PLAIN + "---\n" + PLAIN, "several"),
        ],
    )
    def test_what_cannot_be_edited_safely_is_left_to_its_owner(self, text: str, why: str) -> None:
        with pytest.raises(Problem) as raised:
            switched_on(text, "ConfigMap a/b")
        assert why in raised.value.what
        assert raised.value.what.startswith("ConfigMap a/b cannot be edited")
        assert raised.value.remedy == BY_HAND
        assert raised.value.exit_code is Exit.FINDINGS


PIECES = st.sampled_from(
    [*(row for row in PLAIN.splitlines()), "  - name: deviceshare", "    arguments:", "      deviceshare.VGPUEnable: 0",
     "# c", "", "  - {name: deviceshare}", "\t", "  - &a name: x", "tiers:", "- plugins:", "  - name: predicates"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=14), st.sampled_from(["\n", "\r\n"]))
def test_any_text_is_edited_or_refused(rows: list[str], ending: str) -> None:
    """And what was edited says what it said, with the switch on."""
    text = ending.join(rows)
    try:
        new = switched_on(text, "the text").text
    except Problem:
        return
    assert on(SCHEDULER.read(read_yaml(new)[0]), "deviceshare.VGPUEnable")
    kept = [row for row in text.splitlines() if "VGPUEnable" not in row]
    rest = iter(new.splitlines())
    assert all(row in rest for row in kept)
