"""Several cards: each has its own limit, whatever the program's choice and order of devices."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable

import pytest
import region
from machine import MIB, OUT_OF_MEMORY, Machine, run

LIMITS_MIB = (1024, 2048, 3072)
LIMITS = {f"CUDA_DEVICE_MEMORY_LIMIT_{i}": f"{mib}m" for i, mib in enumerate(LIMITS_MIB)}


@pytest.fixture
def machine(machine_of: Callable[..., Machine]) -> Machine:
    """Three cards; by speed, CUDA's own order, the last comes first."""
    return machine_of(gpus="1xT4-16GB,1xP40-24GB,1xA100-40GB")


@functools.cache
def uuids_of(driver: str, gpus: str) -> list[str]:
    text = "import pynvml as n; n.nvmlInit()\n"
    text += "for i in range(3): print(n.nvmlDeviceGetUUID(n.nvmlDeviceGetHandleByIndex(i)))"
    pytest.importorskip("pynvml")
    env = {"LD_LIBRARY_PATH": driver, "VGPUCTL_FAKE_GPUS": gpus}
    return run(sys.executable, "-c", text, env=env).stdout.split()


def uuids(machine: Machine) -> list[str]:
    return uuids_of(machine.env["LD_LIBRARY_PATH"], machine.gpus)


def card_of(machine: Machine, uuid_hex: str) -> int:
    return [u.removeprefix("GPU-").replace("-", "") for u in uuids(machine)].index(uuid_hex)


@pytest.mark.parametrize(
    ("visible", "order", "cards"),
    [
        (None, None, [2, 0, 1]),  # by speed
        (None, "PCI_BUS_ID", [0, 1, 2]),
        ("1", "PCI_BUS_ID", [1]),
        ("2,0", "PCI_BUS_ID", [2, 0]),
        ("0", None, [2]),
        ("{1}", None, [1]),
        ("{2},{0}", None, [2, 0]),
        ("{1},1", "PCI_BUS_ID", []),  # twice the same: none
        ("1,-1,0", "PCI_BUS_ID", [1]),
        ("2,9,1", "PCI_BUS_ID", [2]),
    ],
)
def test_a_device_s_limit_is_the_limit_of_its_card(
    machine: Machine, visible: str | None, order: str | None, cards: list[int]
) -> None:
    env = dict(LIMITS)
    if visible is not None:
        env["CUDA_VISIBLE_DEVICES"] = visible.format(*uuids(machine))
    if order:
        env["CUDA_DEVICE_ORDER"] = order
    container = machine.container(**env)
    if not cards:
        assert container.actor().do("init") == 100
        return
    actor = container.actor().start()
    assert actor.ok("count") == [str(len(cards))]
    for device, card in enumerate(cards):
        actor.ok("retain", device)
        assert card_of(machine, actor.ok("uuid", device)[0]) == card
        assert actor.info()[1] == LIMITS_MIB[card] * MIB
        assert actor.ok("total", device) == [str(LIMITS_MIB[card] * MIB)]
        assert actor.do("take", "linear", LIMITS_MIB[card] * MIB) == OUT_OF_MEMORY
        actor.ok("take", "linear", 300 * MIB)
        assert machine.used(card)[actor.pid] > 300 * MIB
    seen = region.read(container.region)
    assert seen.device_num == 3
    for card in cards:
        assert seen.limit[seen.uuids.index(uuids(machine)[card])] == LIMITS_MIB[card] * MIB


def test_limits_follow_the_order_in_which_the_container_was_given_its_cards(machine: Machine) -> None:
    """NVIDIA_VISIBLE_DEVICES lists UUIDs: limit i is of the i-th one."""
    names = uuids(machine)
    given = [names[2], names[0]]
    container = machine.container(
        NVIDIA_VISIBLE_DEVICES=",".join(given),
        CUDA_DEVICE_MEMORY_LIMIT_0="3g",
        CUDA_DEVICE_MEMORY_LIMIT_1="1g",
        CUDA_DEVICE_ORDER="PCI_BUS_ID",
    )
    actor = container.actor().start(0)
    assert actor.ok("total", 2) == [str(3072 * MIB)]
    assert actor.ok("total", 0) == [str(1024 * MIB)]


def test_a_free_counts_for_the_card_of_the_allocation(machine: Machine) -> None:
    """Taken on one card, freed while another is current."""
    container = machine.container(CUDA_DEVICE_ORDER="PCI_BUS_ID", **LIMITS)
    actor = container.actor().start(0)
    before = actor.info()
    for way in ("linear", "async", "vmm", "array", "graph"):
        actor.ok("retain", 0)
        actor.ok("take", way, 64 * MIB)
        actor.ok("retain", 1)
        untouched = actor.info()
        actor.ok("give-all")
        actor.do("trim", 0)
        assert actor.info() == untouched
    actor.ok("retain", 0)
    actor.ok("sync")
    assert actor.info() == before


def test_two_processes_on_two_cards_do_not_meet(machine: Machine) -> None:
    container = machine.container(CUDA_DEVICE_ORDER="PCI_BUS_ID", **LIMITS)
    a, b = container.actor().start(0), container.actor().start(1)
    assert a.do("fill", "linear", 64 * MIB) == OUT_OF_MEMORY
    b.ok("take", "linear", 1800 * MIB)


def test_a_mig_device_has_its_own_limit(machine_of: Callable[..., Machine]) -> None:
    machine = machine_of(gpus="1xA100-80GB:mig=1g.10gb+2g.20gb")
    actor = machine.container(CUDA_DEVICE_MEMORY_LIMIT_0="5g").actor().start()
    assert actor.info()[1] == 5 * 1024 * MIB
    assert actor.do("take", "linear", 6 * 1024 * MIB) == OUT_OF_MEMORY
    actor.ok("take", "linear", 3 * 1024 * MIB)


def test_sixteen_cards(machine_of: Callable[..., Machine]) -> None:
    machine = machine_of(gpus="16xH100-80GB")
    limits = {f"CUDA_DEVICE_MEMORY_LIMIT_{i}": f"{i + 1}g" for i in range(16)}
    actor = machine.container(**limits).actor().start()
    assert [actor.ok("total", i) for i in range(16)] == [[str((i + 1) << 30)] for i in range(16)]
