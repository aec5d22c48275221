"""Bundles: what they hold, and those that are not to be trusted."""

from __future__ import annotations

import io
import json
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from vgpuctl.model.facts import Part
from vgpuctl.model.problem import Problem
from vgpuctl.sources.bundle import Bundle, members, open_bundle

META = {"made": "2026-05-28T20:00:00Z", "source": "context prod", "missing": {"queues": "no permission to list queues"}}
NODES = {"items": [{"metadata": {"name": "gpu-1"}}, {"metadata": {"name": "gpu-2"}, "status": None}]}
TREE = {
    "meta.json": json.dumps(META),
    "cluster/nodes.json": json.dumps(NODES),
    "cluster/daemonsets.json": json.dumps({"kind": "DaemonSet", "metadata": {"name": "one"}}),
    "cluster/pods.json": json.dumps({"items": [{"metadata": {"name": "p"}, "spec": {"containers": 5}}, 5]}),
    "cluster/version.json": json.dumps({"gitVersion": "v1.31.0"}),
    "cluster/configmaps.json": "garbage",
    "cluster/podgroups.json": json.dumps({"items": None}),
    "logs/scheduler.log": "line\n",
    "nodes/gpu-1/host/proc/sys/kernel/osrelease": "6.1\n",
    "nodes/gpu-1/stat.tsv": "/dev/nvidia0\tc\t666\t0\t0\t195:0\t\n",
}


def directory(path: Path, tree: dict[str, str] = TREE) -> Path:
    for name, text in tree.items():
        place = path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return path


def archive(path: Path, add: Callable[[tarfile.TarFile], object], mode: str = "w:gz") -> Path:
    with tarfile.open(path, mode) as tar:  # type: ignore[call-overload]
        add(tar)
    return path


def member(name: str, data: bytes = b"{}", **fields: object) -> Callable[[tarfile.TarFile], None]:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for field, value in fields.items():
        setattr(info, field, value)
    return lambda tar: tar.addfile(info, io.BytesIO(data))


@pytest.fixture(params=["directory", "archive", "archive with a directory"])
def bundle(request: pytest.FixtureRequest, tmp_path: Path) -> Bundle:
    place = directory(tmp_path / "pool")
    if request.param == "directory":
        return open_bundle(str(place))
    inside = "pool" if request.param != "archive" else "."
    return open_bundle(str(archive(tmp_path / "pool.tar.gz", lambda tar: tar.add(place, inside))))


def test_a_bundle_gives_what_was_recorded(bundle: Bundle) -> None:
    assert bundle.name.endswith(" of context prod")
    assert bundle.now() == 1779998400.0
    assert [node.metadata.name for node in bundle.read(Part.NODES).need()] == ["gpu-1", "gpu-2"]
    assert [item.metadata.name for item in bundle.read(Part.DAEMONSETS).need()] == ["one"]
    assert bundle.read(Part.VERSION).value == "v1.31.0"
    assert bundle.read(Part.LOGS).value == {"scheduler": "line\n"}
    assert bundle.read(Part.PODGROUPS).value == ()
    assert bundle.nodes == ("gpu-1",)
    host = bundle.read(Part.HOST).need()
    assert host.kernel.value == "6.1"
    stat = bundle.files("gpu-1").stat("/dev/nvidia0").need()
    assert (stat.kind, stat.major, stat.minor) == ("char", 195, 0)


def test_what_was_not_recorded_is_missing_with_its_reason(bundle: Bundle) -> None:
    assert bundle.read(Part.QUEUES).reason == "not recorded: no permission to list queues"
    assert "does not hold quotas" in bundle.read(Part.QUOTAS).reason
    assert "does not hold webhooks" in bundle.read(Part.WEBHOOKS).reason


def test_broken_objects_stay_alone(bundle: Bundle) -> None:
    pods = bundle.read(Part.PODS)
    assert [pod.metadata.name for pod in pods.need()] == ["p"]
    assert pods.note.startswith("2 could not be decoded, such as p: ")
    assert "cluster/configmaps.json is not a Kubernetes list" in bundle.read(Part.CONFIGMAPS).reason


@pytest.mark.parametrize("name", ["../evil.json", "/etc/passwd", "cluster/../../evil.json"])
def test_a_member_that_leaves_the_bundle_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(Problem, match="leaves the bundle"):
        open_bundle(str(archive(tmp_path / "b.tar.gz", member(name))))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_links_and_devices_in_an_archive_are_left_out(tmp_path: Path, kind: bytes) -> None:
    path = archive(tmp_path / "b.tar.gz", member("cluster/nodes.json", b"", type=kind, linkname="/etc/passwd"))
    assert not open_bundle(str(path)).read(Part.NODES).known


def test_links_and_fifos_in_a_directory_are_left_out(tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text(json.dumps(NODES))
    place = directory(tmp_path / "pool", {"meta.json": "{}"})
    (place / "cluster").mkdir()
    (place / "cluster" / "nodes.json").symlink_to(secret)
    (place / "logs").symlink_to(tmp_path)
    os.mkfifo(place / "cluster" / "pods.json")
    bundle = open_bundle(str(place))
    assert not any(bundle.read(part).known for part in (Part.NODES, Part.PODS, Part.LOGS))


@pytest.mark.parametrize(("limit", "most"), [("LARGEST", 10), ("TOTAL", 15), ("COUNT", 1)])
@pytest.mark.parametrize("form", ["directory", "archive"])
def test_a_bundle_beyond_the_limits_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, most: int, form: str
) -> None:
    monkeypatch.setattr(members, limit, most)
    place = directory(tmp_path / "pool", {"a": "x" * 11, "b": "x" * 11, "c": "x" * 11})
    if form == "archive":
        place = archive(tmp_path / "b.tar.gz", lambda tar: tar.add(place, "pool"))
    with pytest.raises(Problem, match="too large"):
        open_bundle(str(place))


def test_a_size_that_lies_is_no_harm(tmp_path: Path) -> None:
    info = tarfile.TarInfo("cluster/nodes.json")
    info.size = 1 << 50
    (tmp_path / "b.tar").write_bytes(info.tobuf())
    with pytest.raises(Problem, match="too large"):
        open_bundle(str(tmp_path / "b.tar"))


@pytest.mark.parametrize(
    ("data", "words"),
    [(b"no archive", "neither a directory nor a .tar.gz"), (b"", "neither a directory"), (b"\x1f\x8b\x08cut", "")],
)
def test_what_is_no_bundle_says_so(tmp_path: Path, data: bytes, words: str) -> None:
    path = tmp_path / "b.tar.gz"
    path.write_bytes(data)
    with pytest.raises(Problem) as caught:
        open_bundle(str(path))
    assert words in caught.value.what and str(path) in caught.value.what
    with pytest.raises(Problem, match="does not exist"):
        open_bundle(str(tmp_path / "none"))


def test_an_archive_that_was_cut_off_is_refused(tmp_path: Path) -> None:
    place = directory(tmp_path / "pool", {"a": "x" * 100_000})
    path = archive(tmp_path / "b.tar.gz", lambda tar: tar.add(place, "pool"))
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(Problem, match=r"cannot be read|neither"):
        open_bundle(str(path))


def test_meta_that_is_garbage_is_as_if_absent() -> None:
    assert Bundle("b", {"meta.json": b"[1]"}).name == "bundle b"
    assert Bundle("b", {"meta.json": b'{"made": "yesterday"}'}).now() > 1.7e9
