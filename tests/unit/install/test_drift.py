"""Drift: only what we set counts, by its meaning; what is missing is told; and who changed it last."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vgpuctl.model.change import Target
from vgpuctl.model.install import drift as module
from vgpuctl.model.install.compare import differences
from vgpuctl.model.install.drift import Difference, drift, last_change
from vgpuctl.model.install.manifests import manifests, target
from vgpuctl.model.install.options import Options

WANTED = manifests(Options(), {"x86_64": b"one", "aarch64": b"two"})
PLUGIN = Target("DaemonSet", "volcano-device-plugin", "kube-system", "apps/v1")
ROLE = Target("ClusterRole", "volcano-device-plugin", "", "rbac.authorization.k8s.io/v1")
DEVICE = Target("ConfigMap", "volcano-vgpu-device-config", "kube-system")
Live = dict[Target, Any]


def live() -> Live:
    """What lives after an installation, with what an API server adds."""
    found = {target(item): copy.deepcopy(item) for item in WANTED}
    for item in found.values():
        item["metadata"] |= {"uid": "u", "resourceVersion": "1", "generation": 1, "managedFields": []}
    spec = pod(found)
    spec |= {"restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "serviceAccount": spec["serviceAccountName"]}
    for container in (*spec["initContainers"], *spec["containers"]):
        container |= {"terminationMessagePath": "/dev/termination-log", "resources": {}}
    for key in [key for key, value in spec.items() if value in ([], {})]:
        del spec[key]
    found[PLUGIN]["spec"] |= {"revisionHistoryLimit": 10}
    found[PLUGIN]["status"] = {"numberReady": 5}
    return found


def pod(found: Live) -> dict[str, Any]:
    spec: dict[str, Any] = found[PLUGIN]["spec"]["template"]["spec"]
    return spec


def container(found: Live, name: str) -> dict[str, Any]:
    return next(one for one in pod(found)["containers"] if one["name"] == name)


def told(found: Live) -> list[str]:
    """Each difference as `Kind name path: live → wanted`."""
    lines = []
    for item in drift(WANTED, found):
        lines += [f"{item.object_kind} {item.name} is missing"] if item.missing else []
        lines += [f"{item.object_kind} {one.path}: {one.live} → {one.wanted}" for one in item.differences]
    return lines


def test_what_was_just_installed_has_not_drifted() -> None:
    assert told(live()) == []


def set_env(found: Live) -> None:
    next(one for one in container(found, "monitor")["env"] if one["name"] == "HOOK_PATH")["value"] = "/tmp/vgpu"


def no_env(found: Live) -> None:
    container(found, "monitor")["env"] = [
        one for one in container(found, "monitor")["env"] if one["name"] != "HOOK_PATH"
    ]


MONITOR = "spec.template.spec.containers[monitor]"
CHANGES: dict[str, tuple[Callable[[Live], object], list[str]]] = {
    "a value": (set_env, [f"DaemonSet {MONITOR}.env[HOOK_PATH].value: /tmp/vgpu → /usr/local/vgpu/vgpu"]),
    "an image": (
        lambda found: container(found, "monitor").update(image="evil/plugin:1"),
        [f"DaemonSet {MONITOR}.image: evil/plugin:1 → docker.io/projecthami/volcano-vgpu-device-plugin:v1.12.0"],
    ),
    "an element taken out": (
        no_env,
        [f'DaemonSet {MONITOR}.env[HOOK_PATH]: None → {{"name": "HOOK_PATH", "value": "/usr/local/vgpu/vgpu"}}'],
    ),
    "a label taken out": (
        lambda found: found[ROLE]["metadata"]["labels"].pop("app.kubernetes.io/part-of"),
        ["ClusterRole metadata.labels.app.kubernetes.io/part-of: None → vgpuctl"],
    ),
    "a number as text": (
        lambda found: found[PLUGIN]["spec"]["updateStrategy"]["rollingUpdate"].update(maxUnavailable="1"),
        ["DaemonSet spec.updateStrategy.rollingUpdate.maxUnavailable: \"1\" → 1"],
    ),
    "true for one": (
        lambda found: found[PLUGIN]["spec"].update(minReadySeconds=True),
        ["DaemonSet spec.minReadySeconds: true → 5"],
    ),
    "a list that is one value": (
        lambda found: pod(found).update(tolerations=[{"operator": "Exists"}]),
        ['DaemonSet spec.template.spec.tolerations: [{"operator": "Exists"}] → '
         '[{"key": "nvidia.com/gpu", "operator": "Exists"}]'],
    ),
    "an object that is gone": (
        lambda found: found.update({ROLE: None}),
        ["ClusterRole volcano-device-plugin is missing"],
    ),
    "a configuration that is gone": (
        lambda found: found.update({DEVICE: None}),
        ["ConfigMap volcano-vgpu-device-config is missing"],
    ),
    "nothing: a configuration is the administrator's": (
        lambda found: found[DEVICE]["data"].update({"device-config.yaml": "nvidia: {}"}),
        [],
    ),
    "nothing: a field that we do not set": (lambda found: pod(found).update(hostIPC=True), []),
    "nothing: a label of others": (lambda found: found[ROLE]["metadata"]["labels"].update(team="a"), []),
    "nothing: a container beside ours": (lambda found: pod(found)["containers"].insert(0, {"name": "sidecar"}), []),
    "nothing: another order": (lambda found: pod(found)["containers"].reverse(), []),
    "nothing: what could not be read": (lambda found: found.pop(ROLE), []),
    "nothing: an annotation": (lambda found: found[PLUGIN]["metadata"].update(annotations={"a": "b"}), []),
}  # fmt: skip


@pytest.mark.parametrize("case", CHANGES)
def test_what_has_drifted(case: str) -> None:
    change, wanted = CHANGES[case]
    found = live()
    change(found)
    assert told(found) == wanted


@pytest.mark.parametrize(
    ("wanted", "have", "same"),
    [
        ("1024Mi", "1Gi", True),
        ("1000m", "1", True),
        (1, "1", True),
        ("1Gi", "1G", False),
        ("1Gi", "no", False),
        (True, "1", False),
    ],
)
def test_quantities_are_compared_by_what_they_mean(wanted: object, have: object, same: bool) -> None:
    for place in ("limits", "requests", "hard"):
        assert (differences({place: {"memory": wanted}}, {place: {"memory": have}}) == ()) is same
    assert differences({"data": {"memory": wanted}}, {"data": {"memory": have}}) != ()


def test_long_texts_are_shown_where_they_part() -> None:
    script = "echo one\n" * 50
    (line,) = differences({"args": [script]}, {"args": [script.replace("one\n", "two\n")]})
    assert line.before != line.after
    (line,) = differences({"a": "x" * 90 + " one"}, {"a": "x" * 90 + "  one"})
    assert line.before != line.after


FIELDS = [
    {
        "manager": "vgpuctl",
        "time": "2026-11-01T10:00:00Z",
        "fieldsV1": {
            "f:metadata": {"f:labels": {"f:app.kubernetes.io/part-of": {}}},
            "f:spec": {
                "f:template": {
                    "f:spec": {
                        "f:containers": {
                            'k:{"name":"monitor"}': {
                                ".": {},
                                "f:image": {},
                                "f:env": {'k:{"name":"HOOK_PATH"}': {".": {}, "f:name": {}}},
                                "f:ports": {'k:{"containerPort":9394,"protocol":"TCP"}': {"f:name": {}}},
                            }
                        },
                        "f:tolerations": {},
                    }
                }
            },
        },
    },
    {
        "manager": "kubectl-edit",
        "time": "2026-11-02T10:00:00Z",
        "fieldsV1": {
            "f:spec": {
                "f:template": {
                    "f:spec": {
                        "f:containers": {'k:{"name":"monitor"}': {"f:env": {'k:{"name":"HOOK_PATH"}': {"f:value": {}}}}}
                    }
                }
            }
        },
    },
    {"manager": "controller", "time": "2026-11-03T10:00:00Z", "subresource": "status", "fieldsV1": {"f:spec": {}}},
]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "who"),
    [
        (f"{MONITOR}.env[HOOK_PATH].value", "kubectl-edit"),
        (f"{MONITOR}.env[HOOK_PATH].name", "vgpuctl"),
        (f"{MONITOR}.env[HOOK_PATH]", "kubectl-edit"),
        (f"{MONITOR}.image", "vgpuctl"),
        ("spec.template.spec.tolerations", "vgpuctl"),
        ("metadata.labels.app.kubernetes.io/part-of", "vgpuctl"),
        ("metadata.labels.app.kubernetes.io/version", "kubectl-edit"),
        (f"{MONITOR}.env[OTHER].value", "kubectl-edit"),
    ],
)
def test_who_changed_it_last(path: str, who: str) -> None:
    """Where nobody owns a value, it was taken out by whoever wrote last."""
    by, at = last_change(FIELDS, path)
    assert by == who
    assert at is not None


def test_who_only_took_away_leaves_no_trace() -> None:
    earlier = [FIELDS[0], {**FIELDS[1], "time": "2026-10-01T10:00:00Z"}]
    assert last_change(earlier, "metadata.labels.app.kubernetes.io/version") == ("", None)
    assert last_change(earlier, f"{MONITOR}.image")[0] == "vgpuctl"


@pytest.mark.parametrize(
    "fields", [[], [5], [{}], [{"manager": None, "time": 5, "fieldsV1": "x"}], [{"fieldsV1": {"k:{": {}, "k:5": {}}}]]
)
def test_an_object_that_does_not_tell(fields: list[Any]) -> None:
    by, at = last_change(fields, "spec.a")
    assert (by, at) == ("", None)


names = st.text("abc./", min_size=1, max_size=5)
leaves = st.one_of(st.integers(), st.booleans(), st.text(max_size=5), st.none())
objects = st.recursive(
    st.dictionaries(names, leaves, max_size=4),
    lambda below: st.dictionaries(names | st.sampled_from(["env", "containers"]), below | st.lists(below, max_size=3)),
    max_leaves=12,
)


def grown(value: Any) -> Any:
    """The same with more in it, as others add fields."""
    if isinstance(value, dict):
        return {**{key: grown(item) for key, item in value.items()}, "added by others": {"x": [1]}}
    return [grown(item) for item in value] if isinstance(value, list) else value


@given(objects)
def test_what_is_wanted_is_no_drift_and_what_others_add_neither(wanted: dict[str, Any]) -> None:
    assert differences(wanted, wanted) == ()
    assert differences(wanted, grown(wanted)) == ()


def places(value: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The paths of all single values that are not empty, lists left out."""
    if isinstance(value, dict):
        return [place for key, item in value.items() for place in places(item, (*path, key))]
    return [] if isinstance(value, list) or value in (None, "") else [path]


@given(objects, st.data())
def test_a_value_that_was_changed_or_taken_out_is_the_only_drift(wanted: dict[str, Any], data: st.DataObject) -> None:
    found = [place for place in places(wanted) if not set(place) & {"apiVersion", "kind"}]
    if not found:
        return
    place = data.draw(st.sampled_from(found))
    have = copy.deepcopy(wanted)
    *parents, last = place
    inside = have
    for step in parents:
        inside = inside[step]
    if data.draw(st.booleans()):
        inside[last] = "quite another"
    else:
        del inside[last]
    assert [line.path for line in differences(wanted, have)] == [".".join(place)]


@given(objects, objects)
def test_no_live_object_is_too_odd(wanted: dict[str, Any], have: dict[str, Any]) -> None:
    differences(wanted, have)
    last_change([have], "spec.a")


def test_the_result_is_data() -> None:
    found = live()
    set_env(found)
    found[PLUGIN]["metadata"]["managedFields"] = FIELDS
    (item,) = drift(WANTED, found)
    assert item.target == Target("DaemonSet", "volcano-device-plugin", "kube-system")
    (value,) = item.differences
    assert isinstance(value, Difference)
    assert (value.by, value.at) == ("kubectl-edit", 1793613600.0)
    assert module.drift([], {}) == []
