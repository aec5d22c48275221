"""Reading what monitors answer: both families of names, figures that cannot be true, text that is no metrics."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vgpuctl.sources.metrics import scrape

DATA = Path(__file__).parent.parent / "data" / "metrics"
UUID = "GPU-323aa46d-f624-52e2-c270-378e3209d25c"
NOW = 1_800_000_000.0
VOLCANO = (DATA / "volcano.prom").read_text()
HAMI = (DATA / "hami-2.9.prom").read_text()


def line(name: str, value: str, pod: str = "p-0") -> str:
    return f'{name}{{ctrname="c",deviceuuid="{UUID}",podname="{pod}",podnamespace="ai",vdeviceid="0"}} {value}\n'


@pytest.mark.parametrize("text", [VOLCANO, HAMI, VOLCANO.replace("\n", "\r\n")], ids=["volcano", "hami 2.9", "crlf"])
def test_both_families_mean_the_same(text: str) -> None:
    answer = scrape(text, "gpu-1", NOW)
    (card,), (vgpu,) = answer.cards, answer.vgpus
    assert (card.uuid, card.memory_used, card.busy) == (UUID, 2396913664, pytest.approx(0.66))
    assert (vgpu.namespace, vgpu.pod, vgpu.container, vgpu.uuid) == ("ai", "p-0", "train", UUID)
    assert (vgpu.memory_used, vgpu.memory_limit) == (1738539008, 8589934592)
    assert vgpu.cores_used == pytest.approx(0.62)
    assert vgpu.last_kernel == NOW - 3
    assert vgpu.throttled is None
    assert answer.reason == ""


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-1", "1.8446744073709552e+19"])
def test_a_figure_that_cannot_be_true_is_unknown_with_a_reason(value: str) -> None:
    (vgpu,) = scrape(line("vGPU_device_memory_usage_in_bytes", value), "n", NOW).vgpus
    assert vgpu.memory_used is None
    assert "vGPU_device_memory_usage_in_bytes" in vgpu.reason


def test_utilisation_above_one_card_is_bounded_and_says_so() -> None:
    (vgpu,) = scrape(line("Device_utilization_desc_of_container", "134"), "n", NOW).vgpus
    assert vgpu.cores_used == 1.0
    assert "134%" in vgpu.reason


def test_no_limit_is_not_a_limit_of_nothing() -> None:
    (vgpu,) = scrape(line("vGPU_device_memory_limit_in_bytes", "0"), "n", NOW).vgpus
    assert vgpu.memory_limit is None


def test_a_container_that_never_launched_a_kernel() -> None:
    (vgpu,) = scrape(line("Device_last_kernel_of_container", f"{NOW}"), "n", NOW).vgpus
    assert vgpu.last_kernel == 0.0


def test_garbage_between_metrics_costs_only_itself() -> None:
    good = line("vGPU_device_memory_usage_in_bytes", "5")
    bad = 'vGPU_device_memory_usage_in_bytes{ctrname="x 5\n<html>\n' + good.replace("} 5", "} five") + "\x00\n"
    (vgpu,) = scrape(bad + good + bad, "n", NOW).vgpus
    assert vgpu.memory_used == 5


@pytest.mark.parametrize("text", ["", "<html>404</html>", "go_goroutines 7\n"])
def test_an_answer_without_known_metrics_says_so(text: str) -> None:
    answer = scrape(text, "n", NOW)
    assert answer.vgpus == ()
    assert "no metric" in answer.reason


@given(
    st.text() | st.from_regex(r"vGPU_device_memory_usage_in_bytes\{[^\n]{0,80}\} [0-9a-zA-Z.+-]{0,12}", fullmatch=True)
)
def test_any_text_is_survived(text: str) -> None:
    for vgpu in scrape(text, "n", NOW).vgpus:
        assert vgpu.memory_used is None or vgpu.memory_used >= 0
