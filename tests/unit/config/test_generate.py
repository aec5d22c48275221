"""What config generate writes breaks no rule, for every profile, every target and every set of cards."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from vgpuctl.model.config.factor import SAFE_ENTRIES
from vgpuctl.model.config.generate import generated, kinds_for, plan, profiles, text
from vgpuctl.model.config.kind import KINDS
from vgpuctl.model.config.validate import validate
from vgpuctl.model.context import Context, PoolNode, gpu_list
from vgpuctl.model.finding import Finding

POOLS: dict[str, Context] = {
    "unknown": Context(),
    "empty": Context(nodes=()),
    "one laptop card": Context(nodes=gpu_list("1xT1000-4GB")),
    "eight H100": Context(nodes=gpu_list("8xH100-80GB")),
    "mixed": Context(nodes=gpu_list("8xH100-80GB,4xV100-32GB,2xT4-16GB,8xA100-40GB")),
    "H200": Context(nodes=gpu_list("8xH200-141GB")),
    "B200": Context(nodes=gpu_list("8xB200-180GB")),
    "A30": Context(nodes=gpu_list("4xA30-24GB")),
    "real names": Context(
        nodes=(
            PoolNode("n1", 8, "NVIDIA A100 80GB PCIe", 81920, "mig"),
            PoolNode("n2", 8, "NVIDIA H100 80GB HBM3", 81559, "mig"),
            PoolNode("n3", 1, "NVIDIA GH200 480GB", 97871, "mig"),
            PoolNode("n4", 4, "NVIDIA H100 NVL", 95830, "mig"),
            PoolNode("n5", 2, "NVIDIA GeForce RTX 4090", 24564, "hami-core"),
            PoolNode("n6", 2, "NVIDIA RTX PRO 6000 Blackwell Server Edition", 97887, "hami-core"),
            PoolNode("n7", 1, "NVIDIA A100-SXM4-40GB", 40960, "mig"),
        )
    ),
    "cards of two kinds in a node": Context(
        nodes=(PoolNode("n1", 4, "NVIDIA A30", 24576), PoolNode("n1", 4, "NVIDIA A100-SXM4-80GB", 81920))
    ),
    "a factor that works": Context(nodes=gpu_list("8xH100-80GB"), factor=100),
    "a factor that does not": Context(nodes=gpu_list("8xH100-80GB"), factor=1),
    "a scheduler elsewhere": Context(scheduler_namespace="volcano", scheduler_configmap="v-scheduler-configmap"),
    "a plugin elsewhere": Context(plugin_namespace="gpu"),
}


def findings(written: str, context: Context) -> list[Finding]:
    return validate(written, "-", context).findings


@pytest.mark.parametrize("profile", profiles())
@pytest.mark.parametrize("target", [*KINDS, "all"])
@pytest.mark.parametrize("context", POOLS.values(), ids=POOLS.keys())
@pytest.mark.parametrize("named", [True, False])
def test_it_passes_its_own_validation(profile: str, target: str, context: Context, named: bool) -> None:
    chosen = plan(profile, context, named=named)
    assert findings(text(chosen, kinds_for(target)), context) == []


@pytest.mark.parametrize("context", POOLS.values(), ids=POOLS.keys())
def test_the_objects_are_those_of_the_text(context: Context) -> None:
    chosen = plan("training", context, named=True)
    assert list(yaml.safe_load_all(text(chosen, kinds_for("all")))) == generated(chosen, kinds_for("all")).items


@given(
    st.lists(st.tuples(st.sampled_from(["n1", "n2", "n3"]), st.integers(1, 16), st.integers(1024, 300_000)), min_size=1)
)
def test_the_factor_is_the_smallest_that_the_kubelet_takes(cards: list[tuple[str, int, int]]) -> None:
    context = Context(nodes=tuple(PoolNode(name, count, "X", memory) for name, count, memory in cards))
    factor = plan("training", context, named=False).factor

    def most(value: int) -> int:
        names = {name for name, _, _ in cards}
        return max(sum(memory // value * count for n, count, memory in cards if n == name) for name in names)

    assert most(factor) <= SAFE_ENTRIES
    assert factor == 1 or most(factor - 1) > SAFE_ENTRIES


@pytest.mark.parametrize(("cards", "factor"), [("8xH100-80GB", 11), ("8xH200-141GB", 20), ("2xT4-16GB", 1)])
def test_known_factors(cards: str, factor: int) -> None:
    assert plan("inference", Context(nodes=gpu_list(cards)), named=False).factor == factor


def test_a_factor_that_works_is_kept_since_another_one_changes_every_request() -> None:
    assert plan("training", POOLS["a factor that works"], named=True).factor == 100
    assert plan("training", POOLS["a factor that does not"], named=True).factor == 11


def test_a_policy_has_a_weight_and_a_profile_its_split() -> None:
    for name, split in (("training", 4), ("inference", 8), ("development", 10)):
        written = text(plan(name, Context(), named=False), kinds_for("all"))
        assert f"deviceSplitCount: {split}\n" in written
        assert "deviceshare.SchedulePolicy: " in written
        assert "deviceshare.ScheduleWeight: 10\n" in written


def test_every_value_of_the_device_config_has_its_reason() -> None:
    written = text(plan("training", Context(), named=False), kinds_for("device-config")).splitlines()
    for key in ("deviceSplitCount", "deviceCoreScaling", "gpuMemoryFactor", "knownMigGeometries"):
        (index,) = [number for number, line in enumerate(written) if line.strip().startswith(f"{key}:")]
        assert written[index - 1].strip().startswith("#")


def test_names_from_outside_cannot_leave_a_comment_or_a_string() -> None:
    evil = PoolNode('n1\nnvidia: {"', 8, 'A100-80GB"]\n  evil: [\u2028', 81920, "mig")
    context = Context(nodes=(evil,))
    written = text(plan("training", context, named=True), kinds_for("all"))
    assert len(list(yaml.safe_load_all(written))) == 3
    assert findings(written, Context()) == []
