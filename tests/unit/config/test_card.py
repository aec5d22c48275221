"""Which card a user named."""

from __future__ import annotations

import pytest

from vgpuctl.model.annotation import decode_register
from vgpuctl.model.config.filter import Filter
from vgpuctl.model.problem import Problem
from vgpuctl.tasks.card import Node

DIGITS, LETTERS = "GPU-12345678-0000-4000-8000-000000000000", "GPU-1bcdef00-0000-4000-8000-000000000000"
REGISTER = f"{DIGITS},8,1000,NVIDIA-T4,true,hami-core:{LETTERS},8,1000,NVIDIA-T4,true,hami-core:"
NODE = Node("gpu-1", decode_register(REGISTER).cards, Filter(("GPU-out",), (7,)))


@pytest.mark.parametrize(
    ("named", "card"),
    [
        ("0", 0),
        ("1", 1),
        ("12345678", DIGITS),  # a UUID that begins by digits only, and no index that can be
        ("1b", LETTERS),
        (LETTERS, LETTERS),
        ("GPU-o", "GPU-out"),
    ],
)
def test_by_index_uuid_or_how_that_begins(named: str, card: str | int) -> None:
    assert NODE.find(named) == card


@pytest.mark.parametrize(
    ("named", "words"), [("GPU-1", "begins several"), ("9", "no card"), ("²", "no card"), ("x", "no card")]
)
def test_what_is_not_there_or_not_clear_is_told(named: str, words: str) -> None:
    with pytest.raises(Problem, match=words):
        NODE.find(named)
