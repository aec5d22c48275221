"""Measures the core limit on a card of this machine, through the library as `vgpuctl run` puts it in place."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from vgpuctl.model.bench import (
    BUSY,
    IDLE,
    JOBS,
    PROMISE,
    SHORT_KERNEL,
    SIMULATED_PROMISE,
    LimitBench,
    SharingBench,
    arrangement,
    cell_seconds,
    share_cell,
)
from vgpuctl.model.card import Card
from vgpuctl.model.problem import Problem
from vgpuctl.model.quantity import MIB, show_mib
from vgpuctl.sources.driver import NvmlDriver
from vgpuctl.sources.load_program import LoadProgram
from vgpuctl.tasks import run

_WARM_UP = 0.5
_START = 0.3
_MEMORY = 700 * MIB
"""What one load program takes, its context included, on any card."""
_ALONE = 100
_JOB_KERNEL = 1e-3

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Stage:
    """Where it is measured. simulate: the cards of the simulated driver, "" for the real one."""

    card: Card
    simulate: str
    environment: Mapping[str, str]

    @property
    def name(self) -> str:
        return f"card {self.card.index}, {self.card.model}"


def stage(card: str, simulate: str, environment: Mapping[str, str], programs: int) -> Stage:
    """The card of an index or a UUID, the first for "", with room for so many load programs. Raises Problem."""
    cards = _cards(simulate, environment)
    found = run.chosen(cards, card, "--card") if card else cards[0]
    free = found.memory - (found.used.value or 0)
    if free < programs * _MEMORY:
        many = f"{programs} load programs take" if programs > 1 else "the load program takes"
        raise Problem(
            f"card {found.index} ({found.model}) has too little free memory",
            f"{show_mib(free // MIB)} are free, {many} {show_mib(programs * _MEMORY // MIB)}",
            "end a program that uses it, or choose another with --card",
        )
    return Stage(found, simulate, environment)


def disturbers(card: Card) -> tuple[str, ...]:
    """Who uses the card already, as people say it."""
    programs = sorted(card.processes.value or (), key=lambda process: -(process.memory or 0))
    return tuple(
        f"{process.name.rpartition('/')[2] or 'process'} {process.pid}"
        + (f" ({show_mib(process.memory // MIB)})" if process.memory else "")
        for process in programs
    )


def limits(stage: Stage, kernels: Sequence[float], limits: Sequence[int], seconds: float, tell: Tell) -> LimitBench:
    """Every kernel at every limit. kernels and seconds (of a cell, at least): seconds. Raises Problem."""
    cells = []
    with _program(stage) as program:
        promise = SIMULATED_PROMISE if program.simulated else PROMISE
        for kernel in kernels:
            cell = f"dense,{kernel * 1e6:g},{_ALONE},1"
            iterations = program.calibrate(cell)
            period = program.period(cell, iterations)
            for limit in limits:
                lasting = cell_seconds(seconds, kernel, limit)
                row = program.run(f"dense,{kernel * 1e6:g},{limit},{lasting:g}", iterations, lasting + _WARM_UP)
                periods = [period]
                if kernel <= SHORT_KERNEL:
                    period = program.period(cell, iterations)
                    periods.append(period)
                if not row["kernels"]:
                    raise Problem("nothing could be measured", f"no kernel ended in {lasting:g} s at limit {limit}")
                cells.append(share_cell(kernel, limit, periods, row["kernels"], row["span_s"], promise))
                tell(f"{len(cells)} of {len(kernels) * len(limits)} measured")
        return LimitBench(
            source=platform.node(),
            card=stage.card.model,
            uuid=stage.card.uuid,
            simulated=program.simulated,
            cells=tuple(cells),
        )


def sharing(stage: Stage, seconds: float, tell: Tell) -> SharingBench:
    """Jobs that are each busy a part of the time: one after another, then each in a vGPU of the card. seconds: of one
    job alone. Raises Problem."""
    kind = f"job:{BUSY * 1e3:g}:{IDLE * 1e3:g},{_JOB_KERNEL * 1e6:g}"
    vgpu = _ALONE // JOBS
    with ExitStack() as stack:
        jobs = [stack.enter_context(_program(stage, "default")) for _ in range(JOBS)]
        iterations = jobs[0].calibrate(f"{kind},{_ALONE},1")
        period = jobs[0].period(f"{kind},{_ALONE},1", iterations)
        alone = [job.run(f"{kind},{_ALONE},{seconds:g}", iterations, seconds) for job in jobs]
        tell("one after another measured")
        at = time.monotonic() + _START
        for job in jobs:
            job.begin(f"{kind},{vgpu},{seconds:g}", iterations, at)
        together = [job.finish(JOBS * seconds) for job in jobs]
        tell("at once measured")
        spans = [[(row["began_s"], row["ended_s"]) for row in rows] for rows in (alone, together)]
        work = sum(row["kernels"] for row in alone) * period
        return SharingBench(
            source=platform.node(),
            card=stage.card.model,
            uuid=stage.card.uuid,
            simulated=jobs[0].simulated,
            busy=BUSY / (BUSY + IDLE),
            arrangements=(
                arrangement("one after another", spans[0], work),
                arrangement(f"{JOBS} vGPUs with {vgpu} cores each, at once", spans[1], work),
            ),
        )


def _cards(simulate: str, environment: Mapping[str, str]) -> tuple[Card, ...]:
    if simulate:
        return run.cards_here(run.simulated_driver(environment, simulate), simulate, False)
    driver = NvmlDriver()
    try:
        cards = driver.read()[1]
    finally:
        driver.close()
    if not cards.value:
        raise Problem(
            "there is no card to measure here",
            cards.reason or "the driver shows none",
            "try it on a simulated card: --simulate 1xT4-16GB",
        )
    return cards.value


@contextmanager
def _program(stage: Stage, policy: str = "force") -> Iterator[LoadProgram]:
    """A load program in a vGPU of its own, whose limit it sets itself."""
    load = run.part(f"shim/build/{platform.machine()}/bench/share", "the load program")
    card = str(stage.card.index)
    prepared = run.prepare([str(load), "--follow"], None, _ALONE, card, stage.simulate, stage.environment)
    try:
        program = LoadProgram(prepared.command, {**prepared.environment, "GPU_CORE_UTILIZATION_POLICY": policy})
        try:
            yield program
        finally:
            program.close()
    finally:
        prepared.forget()
