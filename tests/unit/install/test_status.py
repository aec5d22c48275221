"""`vgpuctl status`: what is installed, how far it runs, what has drifted; and what is not known stays unknown."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import vgpuctl
from tests.unit.install.test_drift import FIELDS
from vgpuctl import resources
from vgpuctl.model.change import Target
from vgpuctl.model.facts import Part
from vgpuctl.model.install import libraries, release
from vgpuctl.model.install.manifests import cleanup
from vgpuctl.model.install.options import Options
from vgpuctl.model.install.release import Holder, Release, config_map
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.model.reading import Reading, missing
from vgpuctl.model.status import Status
from vgpuctl.render.forms import render
from vgpuctl.render.terminal import Terminal
from vgpuctl.sources.bundle import Bundle
from vgpuctl.sources.demo import Demo, installed
from vgpuctl.tasks.status import look, verdict

ROOT = Path(__file__).parents[3]
CLOCK = 1_789_464_000.0
RECENT, LONG_AGO = "2026-09-15T09:19:00Z", "2026-09-15T07:00:00Z"
BUILT = {"x86_64": b"\x7fELF one", "aarch64": b"\x7fELF two"}
OTHER = "0b" * 32
Objects = dict[str, list[dict[str, Any]]]
Change = Callable[[Objects], object]
HELM = {"labels": {"app.kubernetes.io/managed-by": "Helm"}, "annotations": {"meta.helm.sh/release-name": "gpu"}}


@pytest.fixture(autouse=True)
def one_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same library in every checkout."""
    monkeypatch.setattr(libraries, "built", lambda: BUILT)
    monkeypatch.setattr(installed, "digests", lambda: libraries.hashes(BUILT))


class Cluster(Demo):
    """The demo's cluster, changed. denied: kinds that may not be read."""

    def __init__(self, change: Change = lambda found: None, *denied: str) -> None:
        super().__init__(lambda: CLOCK)
        self.change, self.denied = change, denied

    def objects(self, kind: str, *, namespace: str = "", query: dict[str, str] | None = None) -> list[dict[str, Any]]:
        from vgpuctl.sources.chosen import chosen

        if kind in self.denied:
            raise Problem(f"no permission to list {kind}", exit_code=Exit.UNKNOWN)
        found = _Only({kind: super().objects(kind)})
        self.change(found)
        return list(chosen(found[kind], namespace, query))

    def read(self, part: Part) -> Reading[Any]:
        try:
            return super().read(part)
        except Problem as problem:
            return missing(problem.what, part.value, denied=True)


class _Only(Objects):
    """A change touches the kinds that are being read, and others in vain."""

    def __missing__(self, kind: str) -> list[dict[str, Any]]:
        return []


def state(change: Change = lambda found: None, *denied: str) -> Status:
    return look(Cluster(change, *denied))


def each(*changes: Change) -> Change:
    return lambda found: [change(found) for change in changes]


def plugin(found: Objects) -> dict[str, Any]:
    return next((item for item in found["DaemonSet"] if item["metadata"]["name"] == "volcano-device-plugin"), {})


def pods(found: Objects, *nodes: str) -> list[dict[str, Any]]:
    return [
        item
        for item in found["Pod"]
        if "device-plugin" in item["metadata"]["name"] and item["spec"]["nodeName"] in nodes
    ]


def template(found: Objects) -> dict[str, Any]:
    spec: dict[str, Any] = plugin(found)["spec"]["template"]["spec"]
    return spec


def monitor_env(found: Objects) -> None:
    if daemonset := plugin(found):
        daemonset["metadata"]["managedFields"] = FIELDS
        monitor = daemonset["spec"]["template"]["spec"]["containers"][1]
        next(one for one in monitor["env"] if one["name"] == "HOOK_PATH")["value"] = "/tmp/vgpu"


def without(kind: str, name: str) -> Change:
    return lambda found: found.update({kind: [one for one in found[kind] if one["metadata"]["name"] != name]})


def counts(**status: int) -> Change:
    return lambda found: plugin(found) and plugin(found)["status"].update(status)


def placed(node: str, *, said: str = OTHER, code: int = 0) -> Change:
    def change(found: Objects) -> None:
        for pod in pods(found, node):
            ended = {"exitCode": code, "message": said}
            pod["status"]["initContainerStatuses"][0]["state"] = {"terminated": ended}
            if code:
                not_ready(pod, LONG_AGO)

    return change


def not_ready(pod: dict[str, Any], since: str) -> None:
    pod["status"]["conditions"] = [{"type": "Ready", "status": "False", "lastTransitionTime": since}]


def waiting(*nodes: str, why: str = "ImagePullBackOff", since: str = RECENT) -> Change:
    def change(found: Objects) -> None:
        for pod in pods(found, *nodes):
            not_ready(pod, since)
            waits = {"waiting": {"reason": why, "message": "no such image"}}
            pod["status"] |= {"phase": "Pending", "initContainerStatuses": [{"name": "place", "state": waits}]}

    return change


def recorded(made: Release) -> Change:
    def change(found: Objects) -> None:
        without("ConfigMap", release.NAME)(found)
        found["ConfigMap"].append(config_map(made))

    return lambda found: change(found) if "ConfigMap" in found else None


def cleaning(found: Objects) -> None:
    """The clean-up stands in the plugin's place."""
    if there := plugin(found):
        (cleaner,) = cleanup(Options())
        there.update(spec=cleaner["spec"], metadata={**there["metadata"], **cleaner["metadata"]})


def upstreams(found: Objects) -> None:
    """Upstream's own manifests: no record, no init container, no labels of ours."""
    without("ConfigMap", release.NAME)(found)
    for item in (plugin(found), *pods(found, "h100-1", "h100-2", "a100-1", "v100-1", "t4-1", "t4-2")):
        if item:
            item["metadata"].pop("annotations", None)
            item["metadata"]["labels"] = {"name": "volcano-device-plugin"}
            spec = item["spec"].get("template", item)["spec"]
            spec.pop("initContainers", None)
            item["status"].pop("initContainerStatuses", None)


def nothing(found: Objects) -> None:
    without("ConfigMap", release.NAME)(found)
    without("DaemonSet", "volcano-device-plugin")(found)


HOLDER = Holder(who="mei", host="laptop", pid=7, since=CLOCK - 5, until=CLOCK + 60)
STALE = Holder(who="mei", host="laptop", pid=7, since=CLOCK - 500, until=CLOCK - 60)
CASES: dict[str, tuple[Change, Exit, tuple[str, ...]]] = {
    "all is well": (lambda found: None, Exit.FINE, ("all is as it should be", "6 nodes: library")),
    "a value was changed": (
        monitor_env,
        Exit.FINDINGS,
        ("env[HOOK_PATH].value: is /tmp/vgpu, wanted /usr/local/vgpu/vgpu (last changed by kubectl-edit at 2026-11",),
    ),
    "an object is gone": (
        without("ClusterRole", "volcano-device-plugin"),
        Exit.FINDINGS,
        ("ClusterRole volcano-device-plugin is missing", "1 object has drifted: vgpuctl upgrade brings"),
    ),
    "the DaemonSet is gone": (
        without("DaemonSet", "volcano-device-plugin"),
        Exit.FINDINGS,
        ("no DaemonSet of the vGPU device plugin", "DaemonSet kube-system/volcano-device-plugin is missing"),
    ),
    "pods that do not come up": (
        each(counts(numberReady=4, numberUnavailable=2), waiting("h100-1", "t4-1")),
        Exit.FINDINGS,
        ("! h100-1, t4-1: place: ImagePullBackOff: no such image", "2 pods do not come up"),
    ),
    "a pod on its way": (
        each(counts(numberReady=5), waiting("t4-1", why="ContainerCreating")),
        Exit.FINE,
        ("… t4-1: Pending, not ready", "the rollout is under way", "unknown, not placed yet (ContainerCreating): t4-1"),
    ),
    "a pod that takes too long": (
        each(counts(numberReady=5), waiting("t4-1", why="ContainerCreating", since=LONG_AGO)),
        Exit.FINDINGS,
        ("! t4-1: Pending, not ready", "1 pod does not come up"),
    ),
    "pods that may not be made": (
        lambda found: [pods(found, "t4-1") and without("Pod", "volcano-device-plugin-t4-1")(found), found.update(
            {"Event": [{"metadata": {"name": "e", "namespace": "kube-system"}, "type": "Warning",
                        "involvedObject": {"kind": "DaemonSet", "name": "volcano-device-plugin"},
                        "reason": "FailedCreate", "message": "violates PodSecurity"}]}) if "Event" in found else None],
        Exit.FINDINGS,
        ("! FailedCreate: violates PodSecurity",),
    ),
    "the library could not be placed": (
        each(counts(numberReady=5), placed("t4-1", said="cannot write in /usr/local/vgpu", code=1)),
        Exit.FINDINGS,
        ("! t4-1: place: exit code 1: cannot write in /usr/local/vgpu", "library unknown, place failed"),
    ),
    "another library on a node": (
        placed("t4-1"),
        Exit.FINDINGS,
        ("1 node: another library, 0b0b0b0b0b: t4-1", "lies on 1 node"),
    ),
    "an older one while it rolls": (
        each(counts(updatedNumberScheduled=5), placed("t4-1")),
        Exit.FINE,
        ("1 node: another library, 0b0b0b0b0b: t4-1",),
    ),
    "interrupted": (
        recorded(Release(phase="installing", holder=STALE)),
        Exit.FINDINGS,
        ("interrupted installing in kube-system", "vgpuctl install finishes it"),
    ),
    "somebody is at it": (
        recorded(Release(phase="upgrading", holder=HOLDER)),
        Exit.FINE,
        ("upgrading, mei on laptop is at it", "not judged: it is upgrading"),
    ),
    "of another version": (
        recorded(Release(phase="installed", version="0.0.9")),
        Exit.UNKNOWN,
        ("0.0.9 (this is", "not judged: vgpuctl 0.0.9 knows what it installed"),
    ),
    "with other options than the record": (
        recorded(Release(phase="installed", options=Options(max_unavailable="2", priority_class="low"))),
        Exit.FINDINGS,
        ("rollingUpdate.maxUnavailable: is 1, wanted 2", "priorityClassName: is system-node-critical, wanted low"),
    ),
    "a record that cannot be read": (
        lambda found: [
            item["data"].update({release.KEY: "{"})
            for item in found["ConfigMap"]
            if item["metadata"]["name"] == release.NAME
        ],
        Exit.FINDINGS,
        ("vgpuctl     – (this is", "is no record of an installation that this vgpuctl can read"),
    ),
    "a plugin that finds no card": (
        lambda found: [node["metadata"].update(annotations={}) for node in found["Node"]],
        Exit.FINE,
        ("registered  no card", "the plugin runs, and no node registers a card yet"),
    ),
    "the nodes are being cleaned": (
        each(recorded(Release(phase="uninstalling", holder=STALE)), cleaning),
        Exit.FINDINGS,
        ("no DaemonSet of the vGPU device plugin", "vgpuctl uninstall finishes it"),
    ),
    "upstream's manifests": (
        upstreams,
        Exit.FINE,
        ("has installed nothing here", "6 desired", "6 nodes: library unknown, its pod has no init container"),
    ),
    "a Helm chart": (
        each(upstreams, lambda found: plugin(found) and plugin(found)["metadata"].update(HELM)),
        Exit.FINE,
        ("of Helm release gpu",),
    ),
    "nothing": (nothing, Exit.FINE, ("has installed nothing here", "no DaemonSet of the vGPU device plugin")),
    "an odd pod": (
        lambda found: [pod["status"].update(initContainerStatuses=7) for pod in pods(found, "t4-1")],
        Exit.UNKNOWN,
        ("not known   a pod of the plugin: not as the API gives it", "5 nodes: library"),
    ),
    "nulls": (
        lambda found: [pod["status"].update(message=None, initContainerStatuses=None) for pod in pods(found, "t4-1")],
        Exit.FINE,
        ("1 node: library unknown, not placed yet (its pod starts): t4-1",),
    ),
    "an odd DaemonSet": (
        lambda found: plugin(found) and template(found).update(containers=[{}]),
        Exit.FINDINGS,
        ("DaemonSet kube-system/volcano-device-plugin: not as the API gives it",),
    ),
    "pods of another DaemonSet with the same label": (
        lambda found: [pod["metadata"]["ownerReferences"][0].update(uid="other") for pod in pods(found, "t4-1")],
        Exit.FINE,
        ("5 nodes: library",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_is_the_case_is_told(case: str) -> None:
    change, code, words = CASES[case]
    found = state(change)
    drawn = render(found, "table", Terminal())
    assert verdict(found) is code, drawn
    for word in words:
        assert word in drawn


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("ConfigMap", "not known   the record of the installation: no permission to list ConfigMap"),
        ("DaemonSet", "not known   DaemonSets: no permission"),
        ("Pod", "not known   pods of the plugin: no permission"),
        ("ClusterRole", "not known   ClusterRole volcano-device-plugin: no permission"),
        ("Node", "not known   nodes: no permission"),
    ],
)
def test_without_permission_it_is_not_known(kind: str, words: str) -> None:
    found = state(lambda found: None, kind)
    drawn = render(found, "table", Terminal())
    assert words in drawn
    assert verdict(found) is Exit.UNKNOWN
    assert "all is as it should be" not in drawn
    if kind == "ConfigMap":
        assert "has installed nothing" not in drawn and found.installed_reason
    if kind == "DaemonSet":
        assert "no DaemonSet" not in drawn and found.rollouts is None
    if kind == "Node":
        assert found.pool is None and "registered  –" in drawn


def test_what_is_wrong_beats_what_is_not_known() -> None:
    assert verdict(state(monitor_env, "Node")) is Exit.FINDINGS


def test_a_program_of_another_library_tells_both(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries, "built", lambda: {**BUILT, "x86_64": b"newer"})
    found = state()
    assert verdict(found) is Exit.FINE, "nobody said that it should be this one"
    assert "this vgpuctl has" in render(found, "table", Terminal())


def test_a_program_without_a_library_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> dict[str, bytes]:
        raise Problem("there is none")

    monkeypatch.setattr(libraries, "built", none)
    found = state()
    assert (found.drift, verdict(found)) == ([], Exit.FINE)
    assert "carries none to compare it with" in render(found, "table", Terminal())


def test_a_node_that_is_known_by_name_only_in_wide() -> None:
    found = state(placed("t4-1"))
    assert "h100-2" not in render(found, "table", Terminal())
    assert "h100-2" in render(found, "wide", Terminal()) and OTHER in render(found, "wide", Terminal())


ILL = each(
    monitor_env,
    counts(numberReady=4, numberUnavailable=2, updatedNumberScheduled=4),
    waiting("h100-1"),
    placed("t4-1"),
    without("ClusterRole", "volcano-device-plugin"),
)
TERMINALS = {
    "80": Terminal(80),
    "80-colour": Terminal(80, True),
    "200": Terminal(200),
    "ascii": Terminal(80, ascii=True),
    "piped": Terminal(),
}


def unversioned(drawn: str) -> str:
    return drawn.replace(vgpuctl.__version__, "0.0.0")


@pytest.mark.parametrize("form", ["table", "wide"])
@pytest.mark.parametrize("where", TERMINALS)
@pytest.mark.parametrize("name", ["demo", "ill"])
def test_people_see(golden: Callable[[str, str], None], name: str, where: str, form: str) -> None:
    found = state(ILL) if name == "ill" else state()
    golden(f"status/{name}-{form}-{where}.txt", unversioned(render(found, form, TERMINALS[where])))


@pytest.mark.parametrize("form", ["json", "yaml"])
@pytest.mark.parametrize("name", ["demo", "ill"])
def test_machines_get(golden: Callable[[str, str], None], name: str, form: str) -> None:
    drawn = render(state(ILL) if name == "ill" else state(), form, Terminal())
    golden(f"status/{name}.{form}", unversioned(drawn))
    schema = json.loads(resources.text("schemas/Status.schema.json"))
    jsonschema.validate(json.loads(drawn) if form == "json" else yaml.safe_load(drawn), schema)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "vgpuctl", "status", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=60
    )


def test_the_demo_is_installed_and_has_not_drifted() -> None:
    done = run("--demo", "-o", "json")
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert (document["installed"]["phase"], document["drift"], document["findings"]) == ("installed", [], [])


def test_a_bundle_shows_what_it_holds(tmp_path: Path) -> None:
    """RBAC is not in bundles: that it drifted cannot be told."""
    source = Cluster(monitor_env)
    (tmp_path / "cluster").mkdir()
    (tmp_path / "meta.json").write_text(json.dumps({"made": "2026-09-15T12:00:00Z", "source": "the lab"}))
    for kind in ("ConfigMap", "DaemonSet", "Pod", "Node", "Deployment", "Event"):
        text = json.dumps({"items": source.objects(kind)})
        (tmp_path / "cluster" / f"{kind.lower()}s.json").write_text(text)
    done = run("--from", str(tmp_path))
    drawn = " ".join(done.stdout.split())
    assert done.returncode == 1
    for words in ("bundle", "36 cards", "is /tmp/vgpu, wanted", "ClusterRole volcano-device-plugin: bundle"):
        assert words in drawn


garbage = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda below: st.lists(below, max_size=2) | st.dictionaries(st.text(max_size=5), below, max_size=2),
    max_leaves=5,
)


def bent(item: Any, value: Any, chance: random.Random) -> None:
    """Puts the value in the place of any part of an object."""
    while isinstance(item, dict) and item:
        key = chance.choice(sorted(item))
        if not isinstance(item[key], (dict, list)) or not item[key] or chance.random() < 0.3:
            item[key] = value
            return
        item = item[key][0] if isinstance(item[key], list) else item[key]


@settings(max_examples=100)
@given(st.sampled_from(["DaemonSet", "Pod", "ConfigMap", "ClusterRole", "Node"]), garbage, st.randoms())
def test_no_object_of_a_bundle_is_too_odd(kind: str, value: Any, chance: random.Random) -> None:
    """The rest is told all the same."""
    source, members = Cluster(), {}
    for one in ("DaemonSet", "Pod", "ConfigMap", "ClusterRole", "Node", "Deployment", "Event"):
        items = source.objects(one)
        if one == kind:
            bent(chance.choice(items), value, chance)
        members[f"cluster/{one.lower()}s.json"] = json.dumps({"items": items}).encode()
    drawn = render(look(Bundle("odd", members)), "wide", Terminal())
    assert ("installed" in drawn and "rollout" in drawn) or kind in ("DaemonSet", "ConfigMap")


@pytest.mark.parametrize("arguments", [("--local",), ("--root", "/x")])
def test_a_machine_alone_has_no_status(arguments: tuple[str, ...]) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "holds no objects of a cluster" in done.stderr


def test_one_object_is_read_by_its_name() -> None:
    cluster = Cluster()
    assert cluster.get(Target("ConfigMap", release.NAME, "kube-system")) is not None
    assert cluster.get(Target("ConfigMap", release.NAME, "default")) is None
