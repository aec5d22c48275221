"""What `config apply` tells of a text before it writes it."""

from __future__ import annotations

from vgpuctl.model.change import Target
from vgpuctl.model.changes import story
from vgpuctl.model.config.diff import differences
from vgpuctl.model.config.kind import DEVICE
from vgpuctl.tasks.config.texts import Found
from vgpuctl.tasks.config.write import File, change

CARDS = ("A30", "H100", "H200", "B200")


def told(*cards: str) -> str:
    """The preview of a device config with MIG layouts of cards, where there was none."""
    rows = "".join(
        f"    - models: [{card}]\n      allowedGeometries:\n"
        f"        - {{group: a, geometries: [{{name: 1g.6gb, memory: 5952, count: 4}}]}}\n"
        for card in cards
    )
    text = f"nvidia:\n  gpuMemoryFactor: 16\n  knownMigGeometries:\n{rows}"
    place = Target("ConfigMap", "volcano-vgpu-device-config", "kube-system")
    changes = differences(DEVICE, None, text)
    return story(change(File(Found("file", DEVICE, text), None, place, DEVICE.data_key, None, changes)).lines)


def test_a_few_layouts_are_told_each() -> None:
    assert "knownMigGeometries[A30].a none → 4×1g.6gb of 5952 MiB" in told("A30")


def test_many_layouts_do_not_hide_the_factor() -> None:
    found = told(*CARDS)
    assert "gpuMemoryFactor none → 16" in found
    assert "no card can be cut by MIG → MIG layouts of A30, H100, H200 and 1 more" in found
    assert "4 layouts differ: vgpuctl config diff shows each" in found
    assert "5952" not in found
