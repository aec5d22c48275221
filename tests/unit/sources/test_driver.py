"""The driver through NVML: drivers that hang, crash or lose a card, and the simulated one where it is built."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from vgpuctl.model.facts import Part
from vgpuctl.sources.driver import NvmlDriver
from vgpuctl.sources.machine import Machine

SOURCE = Path(__file__).parent / "nvml" / "broken.c"
SIMULATED = Path(__file__).parents[3] / "shim" / "build" / "fake"
GIB = 1 << 30


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an NVML that goes wrong as BROKEN says."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    folder = tmp_path_factory.mktemp("nvml")
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-Wall", "-Werror", "-o", str(folder / "libnvidia-ml.so.1"), str(SOURCE)],
        check=True,
    )
    return folder


@pytest.fixture
def driver_of(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., NvmlDriver]]:
    made: list[NvmlDriver] = []

    def make(folder: Path, deadline: float = 10.0, **environment: str) -> NvmlDriver:
        monkeypatch.setenv("LD_LIBRARY_PATH", str(folder))
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        made.append(NvmlDriver(deadline))
        return made[-1]

    yield make
    for driver in made:
        driver.close()


Make = Callable[..., NvmlDriver]


class TestBroken:
    def test_a_machine_without_a_driver(self, driver_of: Make, tmp_path: Path) -> None:
        driver, cards = driver_of(tmp_path).read()
        if driver.known:
            pytest.skip("this machine has a driver")
        assert driver.absent and cards.absent
        assert "not found" in driver.reason.lower()

    @pytest.mark.parametrize("mode", ["hang-init", "hang-card"])
    def test_a_driver_that_hangs_is_given_up_in_time(self, mode: str, broken: Path, driver_of: Make) -> None:
        began = time.monotonic()
        driver, cards = driver_of(broken, 1.5, BROKEN=mode).read()
        assert time.monotonic() - began < 4
        assert "did not answer in 1.5 s" in driver.reason and "did not answer" in cards.reason

    def test_a_driver_that_crashes(self, broken: Path, driver_of: Make) -> None:
        assert "SIGABRT" in driver_of(broken, BROKEN="crash").read()[0].reason

    def test_a_driver_of_another_version_than_the_module(self, broken: Path, driver_of: Make) -> None:
        assert "version mismatch" in driver_of(broken, BROKEN="mismatch").read()[0].reason

    def test_a_module_that_is_not_loaded(self, broken: Path, driver_of: Make) -> None:
        assert driver_of(broken, BROKEN="absent").read()[0].absent

    def test_a_lost_card_is_named_and_the_others_answer(self, broken: Path, driver_of: Make) -> None:
        driver, cards = driver_of(broken, BROKEN="lost").read()
        (lost,) = driver.need().broken
        assert (lost.index, lost.unified) == (1, False) and "GPU is lost" in lost.reason
        assert [card.index for card in cards.need()] == [0]

    def test_a_card_without_memory_of_its_own(self, broken: Path, driver_of: Make) -> None:
        (card,) = driver_of(broken, BROKEN="unified").read()[0].need().broken
        assert card.unified and card.name.endswith("2")

    def test_what_a_card_does_not_offer_is_missing_with_the_reason(self, broken: Path, driver_of: Make) -> None:
        driver, cards = driver_of(broken).read()
        assert driver.need().version == "580.159.04"
        card = cards.need()[0]
        assert (card.memory, card.used.value) == (24 * GIB, GIB)
        for reading in (card.busy, card.mig, card.persistence, card.processes, card.ecc, card.minor):
            assert not reading.known and "NVML" in reading.reason

    def test_the_child_is_started_anew_after_it_was_killed(self, broken: Path, driver_of: Make) -> None:
        driver = driver_of(broken)
        assert driver.read()[0].known
        assert driver._child is not None
        os.kill(driver._child.process.pid, signal.SIGKILL)
        assert "SIGKILL" in driver.read()[0].reason
        assert driver.read()[0].known

    def test_the_child_ends_with_us(self, broken: Path, driver_of: Make) -> None:
        driver = driver_of(broken)
        driver.read()
        assert driver._child is not None
        process = driver._child.process
        driver.close()
        assert process.poll() is not None


@pytest.mark.skipif(
    not (SIMULATED / "libnvidia-ml.so.1").exists(), reason="the simulated driver is not built: make shim"
)
class TestSimulated:
    def test_cards_are_what_they_are(self, driver_of: Make) -> None:
        driver, cards = driver_of(SIMULATED, VGPUCTL_FAKE_GPUS="2xT4-16GB,1xH100-80GB").read()
        assert (driver.need().version, driver.need().cuda.value) == ("580.159.04", "13.0")
        found = cards.need()
        assert [card.architecture.name if card.architecture else "" for card in found] == ["Turing", "Turing", "Hopper"]
        assert len({card.uuid for card in found}) == 3
        assert [card.minor.value for card in found] == [0, 1, 2]

    def test_an_old_driver_answers_what_it_knew(self, driver_of: Make) -> None:
        driver, cards = driver_of(SIMULATED / "450.80.02", VGPUCTL_FAKE_GPUS="1xT4-16GB").read()
        assert driver.need().version == "450.80.02"
        assert len(cards.need()) == 1

    def test_libcuda_is_loaded_without_a_context(self, driver_of: Make) -> None:
        library = driver_of(SIMULATED).library().need()
        assert library.cuda == "13.0" and Path(library.path).name.startswith("libcuda.so")

    def test_a_machine_has_both(self, driver_of: Make) -> None:
        machine = Machine.local(deadline=60)
        driver_of(SIMULATED)
        assert machine.read(Part.DRIVER).need().library.known
        assert len(machine.read(Part.CARDS).need()) == 1
        machine.close()
