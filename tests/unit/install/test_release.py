"""The record of an installation is read as it was written, or refused with what to do."""

from __future__ import annotations

from typing import Any

import pytest

from vgpuctl.model.install import release
from vgpuctl.model.install.options import Options, Toleration
from vgpuctl.model.install.release import Backup, Former, Release
from vgpuctl.model.problem import Problem


@pytest.mark.parametrize(
    "record",
    [
        Release(phase="installing"),
        Release(
            phase="upgrading",
            version="9.9.9",
            options=Options(
                namespace="gpu",
                shim="upstream",
                node_selector={"a": "b"},
                tolerations=(Toleration(key="a", value="b"), Toleration(operator="Exists")),
                monitoring="PodMonitor",
            ),
            backups=(
                Backup(
                    api_version="v1",
                    kind="ConfigMap",
                    namespace="volcano-system",
                    name="volcano-scheduler-configmap",
                    path="/data/volcano-scheduler.conf",
                    before="tiers: []\n",
                    after='tiers: ["ü"]\n',
                ),
                Backup(api_version="apps/v1", kind="DaemonSet", name="x", before={"metadata": {"labels": {}}}),
            ),
            former=Former(version="0.0.1", options=Options(), plugin={"kind": "DaemonSet"}),
        ),
    ],
)
def test_a_record_comes_back_as_it_was_written(record: Release) -> None:
    kept = release.config_map(record)
    assert release.decode(kept) == record
    assert kept["metadata"]["name"] == "vgpuctl-release"
    assert kept["metadata"]["namespace"] == "kube-system"
    assert kept["metadata"]["labels"]["app.kubernetes.io/version"] == record.version


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (None, "it has no key release.json"),
        ({"release.json": "{"}, "truncated"),
        ({"release.json": '{"phase": "dreaming"}'}, "Invalid enum value 'dreaming'"),
        ({"release.json": '{"phase": "installed", "colour": "red"}'}, "unknown field `colour`"),
        ({"release.json": '{"phase": "installed", "options": {"hookPath": "usr"}}'}, "'usr' cannot be a hook path"),
        (
            {"release.json": '{"phase": "installed", "options": {"hookPaht": ""}}'},
            "unknown field `hookPaht` - at `$.op",
        ),
        ({"release.json": '{"phase": "installed", "options": {"shim": "mine"}}'}, "at `$.options.shim`"),
        ({"release.json": '{"phase": "installed", "options": {"tolerations": [{"key": 1}]}}'}, "tolerations[0].key"),
    ],
)
def test_what_is_no_record_is_refused(data: Any, why: str) -> None:
    with pytest.raises(Problem) as refused:
        release.decode({"metadata": {"namespace": "gpu", "name": "vgpuctl-release"}, "data": data})
    assert refused.value.what.startswith("ConfigMap gpu/vgpuctl-release is no record")
    assert why in refused.value.why
    assert refused.value.remedy
