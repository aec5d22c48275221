"""The port to a machine's files: bounded, inside the root, never waiting."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from vgpuctl.model.host import ABSENT, Stat
from vgpuctl.sources.files import LocalFiles, read_regular
from vgpuctl.sources.recorded import RecordedFiles, stats_from_tsv, tree


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root with a file, links of each kind, and things that are no files."""
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "conf").write_bytes(b"key = 1 \xff\n")
    (tmp_path / "link").symlink_to("/etc/conf")
    (tmp_path / "relative").symlink_to("etc/conf")
    (tmp_path / "folder").symlink_to("/etc")
    (tmp_path / "up").symlink_to("../../../../../../etc/conf")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "dangling").symlink_to("/nowhere")
    os.mkfifo(tmp_path / "fifo")
    return tmp_path


@pytest.mark.parametrize("path", ["/etc/conf", "/link", "/relative", "/folder/conf", "/up", "/etc/../etc/conf"])
def test_links_are_followed_inside_the_root(path: str, root: Path) -> None:
    reading = LocalFiles(str(root)).read(path)
    assert reading.value == "key = 1 \ufffd\n"
    assert reading.source == f"{root}{path}"


@pytest.mark.parametrize(
    ("path", "reason", "absent"),
    [
        ("/none", "No such file", True),
        ("/etc/conf/x", "Not a directory", True),
        ("/dangling", "No such file", True),
        ("/loop", "Too many levels", False),
        ("/fifo", "is a FIFO", False),
        ("/etc", "is a directory", False),
    ],
)
def test_what_cannot_be_read_says_why_at_once(path: str, reason: str, absent: bool, root: Path) -> None:
    began = time.monotonic()
    reading = LocalFiles(str(root)).read(path)
    assert time.monotonic() - began < 1
    assert reason in reading.reason and reading.absent is absent


def test_a_large_file_is_not_taken(root: Path) -> None:
    (root / "big").write_bytes(b"x" * 2000)
    assert "larger than 1000 bytes" in LocalFiles(str(root)).read("/big", 1000).reason
    assert LocalFiles(str(root)).read("/big", 2000).known


def test_an_endless_device_is_not_opened() -> None:
    with pytest.raises(OSError, match="is a device"):
        read_regular("/dev/zero", 10)


def test_stat_says_absent_and_does_not_follow_unless_asked(root: Path) -> None:
    files = LocalFiles(str(root))
    assert files.stat("/none").value == ABSENT
    assert files.stat("/link").need().kind == "link"
    assert files.stat("/link").need().target == "/etc/conf"
    assert files.stat("/link", follow=True).need().kind == "file"
    assert files.stat("/dangling", follow=True).value == ABSENT
    assert files.stat("/fifo").need().kind == "fifo"


def test_list_real_and_space(root: Path) -> None:
    files = LocalFiles(str(root))
    assert files.list("/folder").value == ("conf",)
    assert files.list("/none").absent
    assert files.real("/folder/conf").value == "/etc/conf"
    assert files.space("/etc").need().total > 0


class TestCommand:
    def test_a_root_elsewhere_runs_nothing(self, root: Path) -> None:
        assert LocalFiles(str(root)).command("touch", ("touch", str(root / "made"))).absent
        assert not (root / "made").exists()

    def test_a_recorded_one_is_read(self, root: Path) -> None:
        (root / "commands").mkdir()
        (root / "commands" / "hello.txt").write_text("hi")
        assert LocalFiles(str(root)).command("hello", ("hello",)).value == "hi"

    def test_here_it_runs(self) -> None:
        assert LocalFiles().command("echo", ("echo", "hi")).value == "hi\n"
        assert LocalFiles().command("none", ("no-such-program-here",)).absent

    def test_one_that_does_not_end_is_given_up(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("vgpuctl.sources.files._SECONDS", 0.2)
        assert "did not answer" in LocalFiles().command("sleep", ("sleep", "30")).reason


class TestRecorded:
    files = RecordedFiles(
        {"/data/kubelet/config.yaml": b"a: 1", "/etc/x/y": b""},
        {
            "/var/lib/kubelet": Stat("link", target="/data/kubelet"),
            "/dev/nvidia0": Stat("char", 0o666, major=195),
            "/gone": ABSENT,
            "/loop": Stat("link", target="loop"),
        },
        "gpu-1",
    )

    def test_links_are_followed(self) -> None:
        assert self.files.read("/var/lib/kubelet/config.yaml").value == "a: 1"
        assert self.files.real("/var/lib/kubelet").value == "/data/kubelet"

    def test_what_is_not_recorded_is_missing_and_never_absent(self) -> None:
        for reading in (self.files.read("/other"), self.files.stat("/other"), self.files.list("/other")):
            assert not reading.known and not reading.absent and "not recorded" in reading.reason

    def test_what_is_recorded_as_absent_is(self) -> None:
        assert self.files.read("/gone").absent
        assert self.files.stat("/gone").value == ABSENT

    def test_lists_hold_files_links_and_devices(self) -> None:
        assert self.files.list("/dev").value == ("nvidia0",)
        assert self.files.list("/etc").value == ("x",)
        assert "gone" not in self.files.list("/").need()

    def test_a_loop_of_links_ends(self) -> None:
        assert not self.files.read("/loop").known

    def test_stat_tsv(self) -> None:
        text = (
            "/dev/nvidia0\tc\t666\t0\t0\t195:0\n/l\tl\t777\t0\t0\t\t/t\n/n\tabsent\nrelative\td\n/bad\tc\tzz\n/odd\tq\n"
        )
        assert stats_from_tsv(text) == {
            "/dev/nvidia0": Stat("char", 0o666, 0, 0, 195, 0),
            "/l": Stat("link", 0o777, target="/t"),
            "/n": ABSENT,
        }

    def test_a_tree_is_taken_without_links_and_fifos(self, root: Path) -> None:
        assert dict(tree(root)) == {"/etc/conf": b"key = 1 \xff\n"}
