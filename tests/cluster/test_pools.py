"""The pools are what they say, before any API server sees them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

import pytest

from . import generate
from .generate import Size
from .pool import Object, read

Card = tuple[int, int]  # memory units, slots


def cards(objects: Sequence[Object]) -> dict[str, Card]:
    found: dict[str, Card] = {}
    for item in objects:
        if item["kind"] != "Node":
            continue
        register = item["metadata"]["annotations"]["volcano.sh/node-vgpu-register"]
        own = {}
        for card in register.split(":")[:-1]:
            name, count, memory, _, _, _ = card.split(",")
            own[name] = int(memory), int(count)
        allocatable = item["status"]["allocatable"]
        assert int(allocatable["volcano.sh/vgpu-memory"]) == sum(memory for memory, _ in own.values())
        assert int(allocatable["volcano.sh/vgpu-number"]) == sum(slots for _, slots in own.values())
        assert int(allocatable["volcano.sh/vgpu-cores"]) == 100 * len(own)
        found |= own
    return found


def allocations(objects: Sequence[Object]) -> list[tuple[str, int, int]]:
    found = []
    for item in objects:
        if item["kind"] != "Pod" or item["status"]["phase"] == "Succeeded":
            continue
        annotations = item["metadata"].get("annotations", {})
        for container in annotations.get("volcano.sh/vgpu-ids-new", "").split(";"):
            for device in container.split(":")[:-1]:
                card, _, memory, cores = device.split(",")
                found.append((card, int(memory), int(cores)))
    return found


def assert_fits(objects: Sequence[Object]) -> None:
    pool, memory, cores, slots = cards(objects), Counter[str](), Counter[str](), Counter[str]()
    for card, units, percent in allocations(objects):
        memory[card] += units
        cores[card] += percent
        slots[card] += 1
    assert set(memory) <= set(pool)
    for card, (units, count) in pool.items():
        assert memory[card] <= units
        assert cores[card] <= 100
        assert slots[card] <= count


def test_the_company_fits_its_cards() -> None:
    objects = read("company.yaml")
    assert len(cards(objects)) == 32
    assert len(allocations(objects)) == 31
    assert_fits(objects)


def test_a_generated_pool_has_its_size_and_fits_its_cards() -> None:
    objects = [value for _, value in generate.entries(Size(3, 2, 4))]
    kinds = Counter(item["kind"] for item in objects)
    assert (kinds["Node"], kinds["Pod"], kinds["PodGroup"]) == (3, 24, 6)
    assert len(cards(objects)) == 6
    assert len(allocations(objects)) == 24
    assert_fits(objects)


def test_a_generated_pool_is_the_same_each_time() -> None:
    assert list(generate.entries(Size(2, 2, 2))) == list(generate.entries(Size(2, 2, 2)))
    assert len({name for name, _ in generate.entries(Size(2, 2, 2))}) == len(list(generate.entries(Size(2, 2, 2))))


def test_generated_pods_have_the_size_of_real_ones() -> None:
    for name, value in generate.entries(Size(1, 2, 2)):
        if name.startswith("/registry/pods/"):
            assert 4_000 < len(json.dumps(value, separators=(",", ":"))) < 6_000


@pytest.mark.parametrize("text", ["", "10x8", "10x8x0", "axbxc", "1x2x3x4"])
def test_a_size_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        Size.parse(text)
