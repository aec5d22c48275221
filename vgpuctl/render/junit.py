"""A JUnit test report: a suite for each group, a case for each result.

Form: what Jenkins and GitLab read, https://github.com/testmoapp/junitxml.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from xml.etree import ElementTree

from vgpuctl.model.output import Output
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.render.terminal import Terminal
from vgpuctl.render.text import clean
from vgpuctl.render.view import Case, view_of

_ATTRIBUTES = {"failure": "failures", "error": "errors", "skipped": "skipped"}


def render(output: Output, terminal: Terminal) -> str:
    view = view_of(output)
    if view.cases is None:
        raise Problem(f"{type(output).__name__} has no form junit", exit_code=Exit.USAGE)
    cases = view.cases(output)
    root = ElementTree.Element("testsuites", _counts(cases))
    for group in dict.fromkeys(case.group for case in cases):
        mine = [case for case in cases if case.group == group]
        suite = ElementTree.SubElement(root, "testsuite", {"name": clean(group), **_counts(mine)})
        for case in mine:
            element = ElementTree.SubElement(suite, "testcase", {"classname": clean(group), "name": clean(case.name)})
            if case.outcome in _ATTRIBUTES:
                lines = [clean(line) for line in case.text] or [""]
                ElementTree.SubElement(element, case.outcome, {"message": lines[0]}).text = "\n".join(lines[1:])
            elif case.text:
                ElementTree.SubElement(element, "system-out").text = "\n".join(map(clean, case.text))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _counts(cases: Sequence[Case]) -> dict[str, str]:
    counted = Counter(case.outcome for case in cases)
    return {"tests": str(len(cases)), **{name: str(counted[key]) for key, name in _ATTRIBUTES.items()}}
