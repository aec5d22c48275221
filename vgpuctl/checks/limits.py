"""Area shim, the driver's figures beside the regions' claims: does the limit hold, is the accounting right?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vgpuctl.checks import share
from vgpuctl.checks.check import Check, Evidence, Options, Result, Skip, Status, Where
from vgpuctl.checks.regions import region_files, title
from vgpuctl.model.card import Card
from vgpuctl.model.facts import Facts, Part
from vgpuctl.model.reading import Missing
from vgpuctl.model.region import Region, RegionFile
from vgpuctl.model.region_core import Core
from vgpuctl.model.region_layout import CORE_SUFFIX
from vgpuctl.model.usage import accounting

_MIB = 1 << 20
_SLACK = 8 * _MIB
"""Bytes a process: NVML counts about 4 MiB more than upstream's library does."""
_RECENT = 60.0
"""Seconds since a launch within which the library has said anew which limits are in force."""
_UNLISTED = "NVML does not list every process of a container"


def _shared(facts: Facts) -> Iterator[tuple[RegionFile, Region, int, Card]]:
    """Each card of each region that can be read, where NVML answers for the card and lists its processes.

    Raises Missing when the cards are not known, Skip where there is no region."""
    files = region_files(facts)
    cards = {card.uuid: card for card in facts.cards.need()}
    for file in files:
        region = file.region.value
        for number, uuid in enumerate(region.uuids if region else ()):
            if region and uuid in cards:
                cards[uuid].processes.need()
                yield file, region, number, cards[uuid]


def _limit_held(facts: Facts, options: Options) -> Iterator[Result]:
    shared = list(_shared(facts))
    fine = True
    for file, region, number, card in shared:
        limit, rows = region.limits[number], accounting.inside(region, number, card)
        seen = sum(process.memory or 0 for process, _ in rows)
        if limit is not None and seen > limit + _SLACK * len(rows):
            fine = False
            evidence = [
                Evidence("NVML", f"GPU {card.index} pid {process.pid}: {(process.memory or 0) // _MIB} MiB")
                for process, _ in rows
            ]
            evidence.append(Evidence(file.path, f"limit {limit // _MIB} MiB"))
            summary = f"{seen // _MIB} MiB on GPU {card.index}, the limit is {limit // _MIB} MiB"
            remedy = "restart the container with the present library; see shim-version and the pods' lint"
            yield Result(Status.FAIL, summary, title(file), tuple(evidence), remedy)
    for result in _without_library(facts):
        fine = False
        yield result
    if fine:
        evidence_ = (Evidence("NVML", f"{len(shared)} shares of cards"),)
        yield Result(
            Status.PASS,
            "no container is above its limit, and no process of one is without the library",
            evidence=evidence_,
        )


def _without_library(facts: Facts) -> Iterator[Result]:
    """Processes on a card that belong to a container with a region but do not have the library."""
    limited = {file.pod for file in facts.regions.need() if file.pod}
    if not limited or not (facts.shim.value and facts.shim.value.used):
        return
    programs = {program.pid: program for program in facts.shim.value.programs.need() if program.pod in limited}
    for card in facts.cards.need():
        for process in card.processes.need():
            program = programs.get(process.pid)
            if program is None or program.library.known:
                continue
            if not program.library.absent:
                raise Missing(program.library.reason, program.library.source)
            evidence = (
                Evidence("NVML", f"GPU {card.index} pid {process.pid} {process.name}".rstrip()),
                Evidence(program.library.source, "libvgpu.so is not mapped"),
            )
            summary = "a process of a limited container runs without the library: no limit holds for it"
            remedy = "look for env -i, static or musl programs and CUDA_DISABLE_CONTROL in the pod; restart it"
            yield Result(Status.FAIL, summary, f"pod {program.pod}", evidence, remedy)


def _limiter_armed(facts: Facts, options: Options) -> Iterator[Result]:
    files = region_files(facts)
    limited = [(file, file.region.value, limits) for file in files if (limits := _core_limits(file.region.value))]
    silent, unread = 0, None
    fine = True
    for file, region, limits in limited:
        core = file.core.value
        if core is not None and region is not None:
            for fault, evidence, remedy in _disarmed(file, region, core, limits, facts.now):
                fine = False
                yield Result(Status.WARN, fault, title(file), (evidence, _asked(file, limits)), remedy)
        elif file.core.source and not file.core.absent:
            unread = unread or file.core
        else:
            silent += 1
    if not fine:
        return
    if unread is not None:
        raise Missing(unread.reason, unread.source)
    told = f"{silent} of {len(limited)} containers with a core limit have a library that does not tell (upstream's)"
    if limited and silent == len(limited):
        raise Skip("the library of the containers does not tell whether their core limits hold (upstream's)")
    seen = told if silent else f"{share.count(len(limited), 'container')} with a core limit"
    summary = "every core limit that can be seen is in force" if limited else "no container has a core limit"
    yield Result(Status.PASS, summary, evidence=(Evidence(facts.regions.source, seen),))


def _core_limits(region: Region | None) -> list[tuple[str, int]]:
    """The cards with a core limit, and its percent."""
    pairs = zip(region.uuids, region.cores, strict=True) if region else ()
    return [(uuid, cores) for uuid, cores in pairs if cores is not None]


def _asked(file: RegionFile, limits: Sequence[tuple[str, int]]) -> Evidence:
    return Evidence(file.path, ", ".join(f"{uuid}: {cores} %" for uuid, cores in limits))


def _disarmed(
    file: RegionFile, region: Region, core: Core, limits: Sequence[tuple[str, int]], now: float
) -> Iterator[tuple[str, Evidence, str]]:
    """Why limits of a region are not in force: summary, evidence, remedy."""
    place = f"{file.path}{CORE_SUFFIX}"
    if core.policy == "disable":
        evidence = Evidence(place, "policy disable")
        remedy = "take GPU_CORE_UTILIZATION_POLICY=disable out of the pod, and restart it"
        yield "its core limit is switched off", evidence, remedy
        return
    living = {slot.number for slot in region.slots if slot.alive is not False}
    if region.last_kernel is not None and now - region.last_kernel <= _RECENT:
        for uuid, cores in limits:
            record = core.card(uuid)
            if record is not None and record.core_limit != cores:
                said = "none" if record.core_limit is None else f"{record.core_limit} %"
                evidence = Evidence(place, f"{uuid}: in force {said}")
                remedy = "restart the container; if it comes back, the driver gives its library no events (see its log)"
                yield "another core limit is in force than is set", evidence, remedy
    without = [process for process in core.processes if process.slot in living and not process.hooks]
    if without:
        evidence = Evidence(place, f"pid {without[0].pid}: launches without hooks")
        yield "a process launches past the library", evidence, "restart the container"


def _accounting_gap(facts: Facts, options: Options) -> Iterator[Result]:
    shared = list(_shared(facts))
    fine, unlisted = True, None
    for file, region, number, card in shared:
        claimed = region.used(number, stale=False)
        found = accounting.evidence(region, accounting.inside(region, number, card))
        if claimed is None:
            continue  # region-counters tells it
        if found is None:
            unlisted = unlisted or (file if claimed else None)
            continue
        if accounting.differ(claimed, found):
            fine = False
            evidence = (Evidence(file.path, f"{claimed // _MIB} MiB"), Evidence("NVML", f"{found // _MIB} MiB"))
            summary = f"on GPU {card.index} the library counts {claimed // _MIB} MiB, the driver {found // _MIB} MiB"
            yield Result(Status.WARN, summary, title(file), evidence, "restart the container; its library miscounts")
    if not fine:
        return
    if unlisted is not None:
        raise Missing(_UNLISTED, unlisted.path)
    yield Result(
        Status.PASS, "the library and the driver agree", evidence=(Evidence("NVML", f"{len(shared)} shares of cards"),)
    )


_HERE, _PROBE = Where.MACHINE, Where.PROBE
_NEEDS = (Part.REGIONS, Part.CARDS)

CHECKS = (
    Check(
        "limit-held",
        "The driver sees no container above its memory limit, and none of its processes without the library",
        "shim",
        Status.FAIL,
        _NEEDS,
        (_HERE, _PROBE),
        _limit_held,
        also=(Part.SHIM,),
        explain="What a region says is a claim, since the tenant can write it; NVML's memory per process is evidence. "
        "Processes are told apart by the region's slots, and by the pod that their control group names.",
    ),
    Check(
        "limiter-armed",
        "Every core limit that is set is in force",
        "shim",
        Status.WARN,
        (Part.REGIONS,),
        (_HERE, Where.PLUGIN),
        _limiter_armed,
        explain="This project's library says in the companion of the region (<region>.core) which core limit it keeps: "
        "none under GPU_CORE_UTILIZATION_POLICY=disable, and none where the driver gives it no events. Upstream's "
        "library does not tell.",
    ),
    Check(
        "accounting-gap",
        "The library and the driver count the same memory",
        "shim",
        Status.WARN,
        _NEEDS,
        (_HERE, _PROBE),
        _accounting_gap,
        explain="Tells a container whose region is more than 10 % and 256 MiB away from what NVML says of the same "
        "processes: some memory is not counted, or is counted twice.",
    ),
)
