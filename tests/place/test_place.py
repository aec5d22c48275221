"""The placement script puts the library in its place wholly or not at all, and says why not."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.place.node import MACHINE, Node

OLD = b"the library that is there " * 100
NEW = b"the library that is to come " * 10_000


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_it_places_the_library_and_the_file_that_preloads_it(node: Node) -> None:
    ran = node.place(NEW)
    assert (ran.code, ran.out, ran.word) == (0, f"{sha256(NEW)}\n", sha256(NEW))
    assert node.library.read_bytes() == NEW
    assert node.library.stat().st_mode & 0o777 == 0o644
    assert (node.hook / "vgpu" / "containers").is_dir()  # the monitor's


def test_the_preloaded_path_is_the_one_in_containers_wherever_the_file_is(node: Node) -> None:
    node.place(NEW)
    assert (node.hook / "ld.so.preload").read_text() == "/usr/local/vgpu/libvgpu.so\n"


def test_of_several_architectures_it_takes_its_own(node: Node) -> None:
    wanted = {**node.offer(OLD, "sparc"), **node.offer(NEW)}
    assert node.run("place", node.environment(wanted)).code == 0
    assert node.library.read_bytes() == NEW


def test_the_same_library_is_left_as_it_is(node: Node) -> None:
    node.place(NEW)
    before = [path.stat() for path in (node.library, node.hook / "ld.so.preload")]
    assert node.place(NEW).word == sha256(NEW)
    after = [path.stat() for path in (node.library, node.hook / "ld.so.preload")]
    assert [(one.st_ino, one.st_mtime_ns) for one in before] == [(one.st_ino, one.st_mtime_ns) for one in after]


def test_it_takes_the_library_of_its_image_where_none_is_given(node: Node) -> None:
    own = node.root / "image.so"
    own.write_bytes(NEW)
    ran = node.run("place", node.environment(None, SOURCE=str(own)))
    assert (ran.code, ran.word) == (0, sha256(NEW))
    assert node.library.read_bytes() == NEW


def test_a_link_in_the_librarys_place_is_replaced_and_not_followed(node: Node) -> None:
    other = node.root / "other.so"
    other.write_bytes(OLD)
    node.hook.mkdir()
    node.library.symlink_to(other)
    assert node.place(NEW).code == 0
    assert (node.library.is_symlink(), other.read_bytes()) == (False, OLD)


def test_an_empty_directory_that_a_runtime_made_in_the_librarys_place_goes(node: Node) -> None:
    node.library.mkdir(parents=True)
    assert node.place(NEW).code == 0
    assert node.library.read_bytes() == NEW


def wrong_hash(node: Node) -> dict[str, str]:
    node.offer(NEW)
    return node.environment({MACHINE: "0" * 64})


def half_a_library(node: Node) -> dict[str, str]:
    wanted = node.offer(NEW)
    packed = node.source / MACHINE / "libvgpu.so.gz"
    packed.write_bytes(packed.read_bytes()[:-20])
    return node.environment(wanted)


def no_source(node: Node) -> dict[str, str]:
    return node.environment({MACHINE: sha256(NEW)})


def no_library_in_the_image(node: Node) -> dict[str, str]:
    return node.environment(None, SOURCE=str(node.root / "none.so"))


def another_architecture(node: Node) -> dict[str, str]:
    return node.environment(node.offer(NEW, "sparc"))


def full_directory(node: Node) -> dict[str, str]:
    (node.library / "somebody's").mkdir(parents=True)
    return node.environment(node.offer(NEW))


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (wrong_hash, f"what was to become {{hook}}/libvgpu.so has the sha256 {sha256(NEW)}, not {'0' * 64}"),
        (half_a_library, "cannot write {hook}/libvgpu.so: "),
        (no_source, f"there is no {{source}}/{MACHINE}/libvgpu.so.gz"),
        (no_library_in_the_image, "there is no library {root}/none.so in this image"),
        (another_architecture, f"there is no library for {MACHINE}, only sparc:{sha256(NEW)}"),
    ],
)
def test_what_cannot_be_placed_is_refused_in_one_line_and_the_old_file_stays(
    node: Node, prepare: Callable[[Node], dict[str, str]], message: str
) -> None:
    node.place(OLD)
    shutil.rmtree(node.source)
    ran = node.run("place", prepare(node))
    assert ran.code == 1
    assert ran.out == f"{ran.word}\n"
    assert ran.word.startswith(message.format(hook=node.hook, source=node.source, root=node.root))
    assert "\n" not in ran.word
    assert node.library.read_bytes() == OLD
    assert node.leftovers() == []


def test_a_directory_with_something_in_it_is_not_replaced(node: Node) -> None:
    ran = node.run("place", full_directory(node))
    assert ran.code == 1
    assert ran.word.startswith(f"{node.library} is a directory: move it away: ")
    assert (node.library / "somebody's").is_dir()
    assert node.leftovers() == []


# A mount of its own, which root has in any case and others may have in a user namespace.
MOUNTED = ["unshare", "--map-root-user", "--mount", "sh", "-c"]


def mounted(node: Node, mount: str) -> list[str]:
    """A command around the script, which gives it a file system of its own to write to, with the old library on it;
    what is on it after the run is copied to `after`."""
    if subprocess.run([*MOUNTED, "mount -t tmpfs none /mnt"], capture_output=True, check=False).returncode:
        pytest.skip("no namespace with a mount of its own may be made here")
    hook, after = node.hook, node.root / "after"
    hook.mkdir(exist_ok=True)
    old = node.root / "old.so"
    old.write_bytes(OLD)
    steps = f"""PATH=/usr/bin:/bin:/usr/sbin:/sbin
        mount -t tmpfs -o size=64k none {hook} && cp {old} {hook}/libvgpu.so && {mount} || exit 99
        PATH={node.shell.path} "$@"; code=$?
        PATH=/usr/bin:/bin; cp -a {hook} {after}; exit $code"""
    return [*MOUNTED, steps, "sh"]


@pytest.mark.parametrize(
    ("mount", "what", "why"),
    [
        ("true", "cannot write {hook}/libvgpu.so: ", "No space left on device"),
        ("mount -o remount,ro {hook}", "cannot write in {hook} (where it is read-only,", "Read-only file system"),
    ],
    ids=["full", "read-only"],
)
def test_a_disk_that_takes_nothing_keeps_the_old_file(node: Node, mount: str, what: str, why: str) -> None:
    around = mounted(node, mount.format(hook=node.hook))
    ran = node.run("place", node.environment(node.offer(os.urandom(200_000))), around)
    assert ran.code == 1
    assert ran.word.startswith(what.format(hook=node.hook))
    assert why in ran.word
    assert ran.out == f"{ran.word}\n"
    node.hook = node.root / "after"
    assert node.library.read_bytes() == OLD
    assert node.leftovers() == []


def hanging(node: Node) -> subprocess.Popen[bytes]:
    """A run that hangs while the library is unpacked."""
    programs = node.root / "programs"
    programs.mkdir()
    (programs / "gunzip").write_text("#!/bin/sh\nprintf half\nexec sleep 60\n")
    (programs / "gunzip").chmod(0o755)
    environment = node.environment(node.offer(NEW), PATH=f"{programs}:{node.shell.path}")
    run = subprocess.Popen(node.command("place"), env=environment, start_new_session=True, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 10
    while not any((node.hook / name).stat().st_size for name in node.leftovers()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return run


def test_a_run_that_is_ended_takes_its_temporary_along(node: Node) -> None:
    node.place(OLD)
    run = hanging(node)
    os.killpg(run.pid, signal.SIGTERM)
    assert run.wait(10) == 1
    assert (node.library.read_bytes(), node.leftovers()) == (OLD, [])


def test_a_killed_runs_temporary_is_removed_when_it_is_old(node: Node) -> None:
    node.place(OLD)
    run = hanging(node)
    os.killpg(run.pid, signal.SIGKILL)
    run.wait(10)
    (left,) = node.leftovers()
    assert node.library.read_bytes() == OLD
    assert node.place(NEW).code == 0
    assert node.leftovers() == [left]  # it may be of one who is at work
    os.utime(node.hook / left, (time.time() - 150,) * 2)
    assert node.place(NEW).code == 0
    assert node.leftovers() == []


def test_many_at_once_do_not_disturb_each_other(node: Node) -> None:
    texts = {sha256(text): text for text in (NEW + bytes([number]) for number in range(12))}
    runs = []
    for number, text in enumerate(texts.values()):
        source = node.root / f"source-{number}"
        node.source = source
        environment = node.environment(node.offer(text))
        runs.append(subprocess.Popen(node.command("place"), env=environment, stdout=subprocess.DEVNULL))
    assert [run.wait(30) for run in runs] == [0] * len(runs)
    assert sha256(node.library.read_bytes()) in texts
    assert node.leftovers() == []


def populate(path: Path) -> None:
    path.mkdir(parents=True)
    (path / "file").write_text("x")


def test_removal_takes_away_what_the_pool_put_there_and_nothing_else(node: Node) -> None:
    node.place(NEW)
    populate(node.hook / "vgpu" / "containers" / "pod_main")
    (node.hook / "vgpu" / "containers" / "link").symlink_to(node.root / "kept")
    populate(node.root / "kept")
    populate(node.locks)
    (node.hook / ".vgpuctl.stale").touch()
    (node.hook / "somebody's").touch()
    ran = node.run("remove", node.environment(None))
    assert (ran.code, ran.word) == (0, "removed")
    assert [path.name for path in node.hook.iterdir()] == ["somebody's"]
    assert not node.locks.exists()
    assert (node.root / "kept" / "file").exists()


def test_removal_takes_its_directory_and_can_be_repeated(node: Node) -> None:
    node.place(NEW)
    for _ in range(2):
        assert node.run("remove", node.environment(None)).code == 0
        assert not node.hook.exists()


def test_removal_says_what_it_cannot_remove(node: Node) -> None:
    around = mounted(node, f"mount -o remount,ro {node.hook}")
    ran = node.run("remove", node.environment(None), around)
    assert ran.code == 1
    assert ran.word.startswith(f"cannot remove {node.hook}/libvgpu.so: ")
    assert "Read-only file system" in ran.word
