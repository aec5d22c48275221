"""The join of one machine: the driver's processes, the claims of region files, and both side by side."""

from __future__ import annotations

import gzip
from dataclasses import replace

import pytest

from tests.unit.machines import CAPTURED, CAPTURES
from tests.unit.usage.pools import GIB, NOW, UUID
from vgpuctl.model.card import BrokenCard, Card, Driver, Process
from vgpuctl.model.facts import Facts
from vgpuctl.model.host import Host
from vgpuctl.model.reading import Missing, known, missing
from vgpuctl.model.region import Region, RegionFile, Slot, Usage, parse
from vgpuctl.model.region_core import Core, CoreCard
from vgpuctl.model.usage.arrange import arrange
from vgpuctl.model.usage.machine import machine
from vgpuctl.model.usage.row import Row

MIB = 1 << 20


def card(*processes: Process, index: int = 0, uuid: str = UUID) -> Card:
    return Card(
        index=index,
        uuid=uuid,
        model="NVIDIA H200",
        memory=140 * GIB,
        used=known(9 * GIB, "NVML"),
        busy=known(0.6, "NVML"),
        processes=known(processes, "NVML"),
    )


def region(*slots: Slot, limit: int | None = 8 * GIB, cores: int | None = 50, last: int | None = int(NOW)) -> Region:
    return Region((UUID,), (limit,), (cores,), slots, priority=1, last_kernel=last)


def slot(pid: int, used: int = 4 * GIB, host_pid: int = 0, alive: bool | None = None, busy: int = 20) -> Slot:
    return Slot(0, pid, host_pid, (Usage(0, used, used),), (None,), (busy,), alive)


def facts(*cards: Card, inside: tuple[Region, ...] = (), **parts: object) -> Facts:
    files = tuple(RegionFile(f"/r/{n}", known(item, "r"), pod="uid", container="main") for n, item in enumerate(inside))
    filled = Facts(
        source="this node",
        now=NOW,
        host=known(Host("gpu-1"), "host"),
        cards=known(cards, "NVML"),
        regions=known(files, "regions"),
    )
    return replace(filled, **parts)  # type: ignore[arg-type]


def rows(found: Facts) -> list[tuple[str, object]]:
    return [(row.level, row.pid or row.container or row.card or row.node) for row in arrange(machine(found)).rows]


def only(found: Facts) -> Row:
    (row,) = machine(found).vgpus
    return row


def test_a_process_outside_every_region_is_a_row_of_its_card() -> None:
    job = Process(426, memory=1662 * MIB, busy=0.62, name="python")
    found = arrange(machine(facts(card(job)))).rows
    assert [row.level for row in found] == ["node", "card", "process"]
    node, gpu, process = found
    assert (node.node, node.memory_used, node.memory_total, node.busy) == ("gpu-1", 9 * GIB, 140 * GIB, 0.6)
    assert (gpu.memory_used, gpu.busy, gpu.processes, gpu.vgpus) == (9 * GIB, 0.6, 1, 0)
    assert (process.pid, process.process, process.memory_used, process.cores_used) == (426, "python", 1662 * MIB, 0.62)


@pytest.mark.parametrize("held", [slot(7, host_pid=426), slot(426)], ids=["by the host's pid", "by the same pid"])
def test_a_process_in_a_region_stands_below_its_vgpu(held: Slot) -> None:
    found = facts(card(Process(426, memory=1662 * MIB, busy=0.62)), inside=(region(held),))
    assert rows(found) == [("node", "gpu-1"), ("card", "gpu-1"), ("vgpu", "main"), ("process", 426)]


def test_the_drivers_figure_is_shown_and_a_gap_to_the_claim_told() -> None:
    row = only(facts(card(Process(426, memory=3 * GIB, busy=0.62)), inside=(region(slot(426, used=1 * GIB)),)))
    assert (row.memory_used, row.memory_limit, row.cores_used, row.cores_limit) == (3 * GIB, 8 * GIB, 0.62, 0.5)
    assert row.reason == "the region claims 1024 MiB, the driver says 3072 MiB"


def test_without_the_drivers_figure_the_claim_stands() -> None:
    row = only(facts(card(), inside=(region(slot(7)),)))
    assert (row.memory_used, row.cores_used, row.processes, row.state) == (4 * GIB, 0.2, 1, "active")


def test_slots_of_dead_processes_do_not_count() -> None:
    row = only(facts(card(), inside=(region(slot(7), slot(8, alive=False)),)))
    assert (row.memory_used, row.processes) == (4 * GIB, 1)
    assert "1 slots of dead processes" in row.reason


@pytest.mark.parametrize(
    ("held", "state"),
    [
        (region(slot(7, used=9 * GIB)), "over"),
        (region(slot(7, used=9 * GIB), limit=None), "active"),
        (region(slot(7), last=int(NOW) - 61), "idle"),
        (region(last=None), "idle"),
    ],
)
def test_states(held: Region, state: str) -> None:
    assert only(facts(card(), inside=(held,))).state == state


def test_a_region_that_cannot_be_read_is_a_row_with_the_reason() -> None:
    broken = RegionFile("/r/x.cache", missing("12 bytes long"), pod="uid", container="main")
    row = only(facts(card(), regions=known((broken,), "regions")))
    assert row.reason == "/r/x.cache: 12 bytes long"
    assert row.memory_used is None


def test_a_card_that_does_not_answer_is_a_row_with_the_reason() -> None:
    driver = Driver("580.159.04", broken=(BrokenCard(1, "GPU is lost"),))
    held = machine(facts(card(), driver=known(driver, "NVML")))
    lost = next(row for row in held.cards.values() if row.card == 1)
    assert (lost.state, lost.reason, lost.memory_total) == ("unhealthy", "GPU is lost", None)
    assert arrange(held).rows[0].memory_total is None, "a sum without it would be too small"


def test_without_driver_and_regions_there_is_nothing_to_show() -> None:
    with pytest.raises(Missing, match="no driver"):
        machine(facts(cards=missing("no driver"), regions=missing("no directory")))


def test_regions_are_shown_without_a_driver() -> None:
    row = only(facts(cards=missing("no driver"), regions=known((RegionFile("/r", known(region(slot(7)), "r")),), "r")))
    assert (row.memory_used, row.card) == (4 * GIB, None)


def companion(throttled: float, *, created: int = int(NOW) - 100, uuid: str = UUID) -> Core:
    """A `.core` file that counted so many seconds of launches held back."""
    held = CoreCard(uuid, None, 50, 0, 0.0, throttled, 0, 0, None, None, None, None)
    return Core("0.1.0", "force", (held,), (), 0, created)


@pytest.mark.parametrize(
    ("now", "before", "share"),
    [
        (companion(25), None, 0.25),
        (companion(25), (companion(24), NOW - 2), 0.5),
        (companion(25), (companion(25), NOW - 2), 0.0),
        (companion(25), (companion(10), NOW - 2), 1.0),
        (companion(25), (companion(26), NOW - 2), 0.0),
        (companion(25), (companion(24), NOW), None),
        (companion(25), (companion(24, created=5), NOW - 2), 0.25),
        (companion(25), (companion(24, uuid="GPU-other"), NOW - 2), 0.25),
        (companion(25, created=0), None, None),
        (companion(25, created=int(NOW) + 9), None, None),
        (companion(25, uuid="GPU-other"), None, None),
        (None, (companion(24), NOW - 2), None),
    ],
)
def test_how_much_was_held_back(now: Core | None, before: tuple[Core, float] | None, share: float | None) -> None:
    """Since the last look, at first since the library made its file; several threads together are no more than all."""
    file = RegionFile("/r", known(region(slot(7)), "r"), known(now, "c", NOW) if now else missing("none"))
    if before:
        file = replace(file, before=known(before[0], "c", before[1]))
    assert only(facts(card(), regions=known((file,), "r"))).throttled == share


@pytest.mark.parametrize("name", ["one-8g-50", "two-16g-30", "killed-8g", "nolimit"])
def test_a_captured_node_shows_what_the_driver_said_of_each_process(name: str) -> None:
    truth = CAPTURED["regions"][name]
    live = {row["pid"]: row["bytes"] for row in truth["nvml_processes"]}
    captured = parse(gzip.decompress((CAPTURES / f"{name}.cache.gz").read_bytes()))
    captured = captured.with_life(lambda found: found.pid in live)
    busy = {row["pid"]: row["sm"] / 100 for row in truth["nvml_process_util"]}
    processes = tuple(Process(pid, memory=size, busy=busy.get(pid)) for pid, size in live.items())
    gpu = card(*processes, uuid=captured.uuids[0])
    held = machine(facts(gpu, regions=known((RegionFile("/r", known(captured, "r")),), "r")))
    (row,) = held.vgpus
    assert row.memory_used == sum(live.values())
    assert row.cores_used == pytest.approx(sum(busy.values()))
    assert row.processes == len(live)
    assert {p.pid: p.memory_used for p in held.processes[row.key]} == live
