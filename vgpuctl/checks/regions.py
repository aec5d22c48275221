"""Area shim, the regions: the shared file of each container, what it counts, whom it belongs to."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from vgpuctl.checks.check import Check, Evidence, Options, Result, Skip, Status, Where
from vgpuctl.model import region_layout as layout
from vgpuctl.model.change import Bytes, Change, How, Line, Target
from vgpuctl.model.facts import Facts, Part
from vgpuctl.model.reading import Missing, Reading
from vgpuctl.model.region import Region, RegionFile, Slot
from vgpuctl.model.shim import REGIONS, REMOVED

_SHOWN = 5
_MIB = 1 << 20
_ANEW = "end the container, remove the file; the library makes a new one at the next start"


def region_files(facts: Facts) -> tuple[RegionFile, ...]:
    """The region files of this machine. Raises Skip where there are none, Missing where they cannot be seen."""
    if facts.regions.absent or facts.regions.value == ():
        raise Skip("no program has run under the library here")
    return facts.regions.need()


def title(file: RegionFile) -> str:
    """What a region belongs to."""
    return f"pod {file.pod}, container {file.container}" if file.pod else file.container or file.path


def _all_seen(facts: Facts, fine: str, files: Sequence[RegionFile]) -> Result:
    """The passing result; raises Missing when there are regions that could not be seen."""
    if facts.regions.note:
        raise Missing(facts.regions.note, facts.regions.source)
    evidence = Evidence(facts.regions.source, f"{len(files)} region{'' if len(files) == 1 else 's'}")
    return Result(Status.PASS, fine, evidence=(evidence,))


def _region_format(facts: Facts, options: Options) -> Iterator[Result]:
    files = region_files(facts)
    fine, denied = True, None
    for file in files:
        readings: tuple[Reading[object], ...] = (file.region, file.core)  # type: ignore[assignment]
        for reading in readings:
            if reading.known or reading.absent or not reading.source:
                continue
            if reading.denied:
                denied = denied or reading
                continue
            fine = False
            evidence = Evidence(reading.source, reading.reason.removeprefix(f"{reading.source}: "))
            summary = "the shared file cannot be used: its limits do not hold across processes"
            yield Result(Status.FAIL, summary, title(file), (evidence,), _ANEW)
    if denied:
        raise Missing(denied.reason, denied.source)
    if fine:
        yield _all_seen(facts, "every shared file has the format that this vgpuctl and upstream's monitor read", files)


def _readable(facts: Facts) -> Iterator[tuple[RegionFile, Region]]:
    for file in region_files(facts):
        if file.region.value is not None:
            yield file, file.region.value


def _region_counters(facts: Facts, options: Options) -> Iterator[Result]:
    files = region_files(facts)
    sizes = {card.uuid: card.memory for card in facts.cards.value or ()}
    fine = True
    for file, region in _readable(facts):
        faults = list(region.faults)
        for number, uuid in enumerate(region.uuids):
            used, size = region.used(number), sizes.get(uuid)
            if used is not None and size is not None and used > size:
                faults.append(f"{used // _MIB} MiB used of a card with {size // _MIB} MiB ({uuid})")
        if faults:
            fine = False
            evidence = tuple(Evidence(file.path, fault) for fault in faults[:_SHOWN])
            yield Result(Status.FAIL, f"counters cannot be right: {faults[0]}", title(file), evidence, _ANEW)
    if fine:
        if not sizes and not facts.cards.known:
            raise Missing(f"the cards' sizes are not known: {facts.cards.reason}", facts.cards.source)
        yield _all_seen(facts, "what the containers count is possible", files)


def _region_slots(facts: Facts, options: Options) -> Iterator[Result]:
    files = region_files(facts)
    found, waiting, unjudged = False, 0, None
    for file, region in _readable(facts):
        unjudged = unjudged or next((file for slot in region.slots if slot.alive is None), None)
        dead = [slot for slot in region.stale if _held(slot)]
        if not dead:
            continue
        if file.core.known:
            waiting += len(dead)
            continue
        found = True
        held = sum(map(_held, dead)) // _MIB
        evidence = tuple(
            Evidence(file.path, f"slot {slot.number}, pid {slot.pid}: {_held(slot) // _MIB} MiB")
            for slot in dead[:_SHOWN]
        )
        summary = f"{held} MiB are still counted for {_count(len(dead), 'process', 'es')} that are gone"
        remedy = "--fix sets these counters to 0; restarting the container does so too"
        fix = tuple(_clear(file, region, slot) for slot in dead)
        yield Result(Status.WARN, summary, title(file), evidence, remedy, fix)
    if found:
        return
    if unjudged is not None:
        raise Missing("which processes of a container still live cannot be seen from here", unjudged.path)
    note = f"; whoever allocates next clears {_count(waiting, 'slot')} of processes that ended" if waiting else ""
    yield _all_seen(facts, f"no memory is counted for processes that are gone{note}", files)


def _held(slot: Slot) -> int:
    """Bytes that a slot counts, on all cards."""
    return sum(usage.total for usage in slot.used if usage is not None)


def _clear(file: RegionFile, region: Region, slot: Slot) -> Change:
    """Sets the counters of a dead process to 0, if the slot is still its own."""
    base = layout.REGION_FILE_SLOTS.offset + slot.number * layout.REGION_SLOT_SIZE
    used = layout.REGION_SLOT_USED
    guard = [(base + layout.REGION_SLOT_PID.offset, struct.pack(layout.REGION_SLOT_PID.format, slot.pid))]
    total = layout.REGION_USAGE_TOTAL
    for card, usage in enumerate(slot.used):
        if usage is not None:
            place = base + used.offset + card * layout.REGION_USAGE_SIZE + total.offset
            guard.append((place, struct.pack(total.format, usage.total)))
    start, size = base + used.offset, layout.REGION_CARDS * layout.REGION_USAGE_SIZE
    keep = f"{REMOVED}/{file.pod}_{file.container}.slot{slot.number}"
    return Change(
        Target("Host", file.path),
        How.BYTES,
        Bytes(start, bytes(size), tuple(guard), keep),
        before={},
        lines=(Line(f"slot {slot.number} (pid {slot.pid})", f"{_held(slot) // _MIB} MiB", "0 MiB"),),
        undo=f"dd if={keep} of={file.path} bs=8 seek={start // 8} conv=notrunc oflag=nofollow",
        why="its process is gone",
    )


def _region_orphans(facts: Facts, options: Options) -> Iterator[Result]:
    files = [file for file in region_files(facts) if file.pod]
    if not files:
        raise Skip("no container has a region here")
    if facts.scope:
        raise Skip(f"pods are read of {facts.scope} only")
    pods = {pod.metadata.uid for pod in facts.pods.need()}
    folders = {_folder(file): file for file in files}
    gone = {
        folder: file for folder, file in folders.items() if file.pod not in pods and not _may_live(file, surely=True)
    }
    for folder, file in gone.items():
        evidence = (Evidence(folder, "here"), Evidence(facts.pods.source, f"no pod with UID {file.pod}"))
        fix = () if _may_live(file) else _put_aside(folder)
        remedy = f"move {folder} aside"
        yield Result(Status.WARN, "the pod is gone, its directory is left", title(file), evidence, remedy, fix)
    if not gone:
        count = _count(len(folders), "container")
        yield Result(Status.PASS, "no directory is left behind", evidence=(Evidence(facts.regions.source, count),))


def _folder(file: RegionFile) -> str:
    return f"{REGIONS}/{file.pod}_{file.container}"


def _may_live(file: RegionFile, *, surely: bool = False) -> bool:
    """Whether one of its processes may still run; surely: whether one does."""
    slots = file.region.value.slots if file.region.value else ()
    return any(slot.alive if surely else slot.alive is not False for slot in slots)


def _put_aside(folder: str) -> tuple[Change, ...]:
    make = ("mkdir", "-p", "-m", "0700", REMOVED)
    aside = f"{REMOVED}/{folder.rpartition('/')[2]}"
    move = ("mv", "-n", "-T", folder, aside)
    return (
        Change(
            Target("Host", " ".join(make)),
            How.COMMAND,
            make,
            before={},
            undo=f"rmdir {REMOVED}",
            why="directories are put aside there",
        ),
        Change(
            Target("Host", " ".join(move)),
            How.COMMAND,
            move,
            before={},
            lines=(Line("place", folder, aside),),
            undo=f"mv -n -T {aside} {folder}",
            why="its pod is gone",
        ),
    )


def _count(number: int, noun: str, plural: str = "s") -> str:
    return f"{number} {noun}{'' if number == 1 else plural}"


_HERE, _POD, _PROBE = Where.MACHINE, Where.PLUGIN, Where.PROBE

CHECKS = (
    Check(
        "region-format",
        "Each container's shared file has the right size, magic number and version",
        "shim",
        Status.FAIL,
        (Part.REGIONS,),
        (_HERE, _POD),
        _region_format,
        explain="The library keeps a region file for each container, which upstream's monitor reads at fixed offsets. "
        "A file of another version or with other content is not used: each process then has its limit for itself.",
    ),
    Check(
        "region-counters",
        "The memory that containers count is possible",
        "shim",
        Status.FAIL,
        (Part.REGIONS,),
        (_HERE, _POD),
        _region_counters,
        also=(Part.CARDS,),
        explain="A counter above the card's memory, below zero or of an impossible process comes from a crash of an "
        "old library, or from a program that wrote the file itself. Allocations are then refused without need, or "
        "not at all.",
    ),
    Check(
        "region-slots",
        "No memory is counted for processes that are gone",
        "shim",
        Status.WARN,
        (Part.REGIONS,),
        (_HERE, _PROBE),
        _region_slots,
        fixable=True,
        explain="Upstream's library keeps counting what a killed process held, so that its container gets less than "
        "its share. This project's library clears that at the next allocation. A fix sets the counters to 0 if they "
        f"are still the dead process's, and keeps what stood there under {REMOVED}.",
    ),
    Check(
        "region-orphans",
        "No directory is left of a pod that is gone",
        "shim",
        Status.WARN,
        (Part.REGIONS, Part.PODS),
        (_HERE, _POD),
        _region_orphans,
        fixable=True,
        explain=f"The device plugin makes a directory for each container under {REGIONS}; 2 MB each stay when it is "
        f"not removed. A fix moves it to {REMOVED}.",
    ),
)
