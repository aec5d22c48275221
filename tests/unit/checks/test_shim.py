"""The checks of the preloaded library: each where it passes, where it warns or fails, and where the fact is missing."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.unit.checks.test_machine import Case, both, card, host, same
from tests.unit.machines import (
    CAPTURES,
    CONTAINER,
    NOW,
    POD,
    UNREAD,
    absent,
    healthy,
    listed,
    region,
    with_card,
    with_shim,
)
from vgpuctl.checks.check import Check, Options, Outcome, run_checks
from vgpuctl.checks.registry import all_checks
from vgpuctl.model import kube
from vgpuctl.model.card import Process
from vgpuctl.model.change import Change, How
from vgpuctl.model.facts import Facts
from vgpuctl.model.host import Stat
from vgpuctl.model.reading import Reading, known, missing
from vgpuctl.model.region import RegionFile, parse
from vgpuctl.model.region_core import Core, CoreCard, CoreProcess
from vgpuctl.model.shim import LIBRARY, LOCK, LOCKS, MOUNTED, PRELOAD, REGIONS, Locks, Mapped, Program, Shim
from vgpuctl.sources.commands import MachineWriter
from vgpuctl.tasks.apply import Conduct, Group, apply

CHECKS = {check.id: check for check in all_checks() if check.area == "shim"}
MIB = 1 << 20
Changed = Callable[[Facts], Facts]


def shim(**changes: Any) -> Changed:
    return lambda facts: with_shim(facts, **changes)


def file(**changes: Any) -> Changed:
    def change(facts: Facts) -> Facts:
        found = facts.shim.need().file
        return with_shim(facts, file=known(replace(found.need(), **changes), found.source))

    return change


def mode(bits: int) -> Changed:
    return file(stat=Stat("file", bits, inode=77))


def program(library: Reading[Mapped], pid: int = 426) -> Changed:
    return shim(programs=known((Program(pid, POD, library),), "/proc/*/maps"))


def library(inode: int = 77, *, deleted: bool = False) -> Reading[Mapped]:
    return known(Mapped(MOUNTED, inode, deleted), "/proc/426/maps")


def locks(folder: Stat, lock: Stat | None = None) -> Changed:
    return shim(locks=known(Locks(folder, lock or Stat("absent")), LOCKS))


def lock(age: float) -> Changed:
    def change(facts: Facts) -> Facts:
        return locks(Stat("directory", 0o777), Stat("file", modified=NOW - age))(facts)

    return change


def not_here(facts: Facts) -> Facts:
    gone = Shim(used=False, file=absent(LIBRARY), locks=known(Locks(Stat("absent"), Stat("absent")), LOCKS))
    return replace(facts, shim=known(gone, "gpu-1"), regions=absent(REGIONS))


def regions(*found: RegionFile, note: str = "") -> Changed:
    return lambda facts: replace(facts, regions=replace(known(found, REGIONS), note=note))


def broken(reason: str, *, denied: bool = False, ready: bool = True) -> Changed:
    path = f"{CONTAINER}/x.cache"
    reading: Reading[Any] = missing(f"{path}: {reason}", path, denied=denied, absent=not ready)
    return regions(RegionFile(path, reading, pod=POD, container="train"))


def changed(capture: str, **changes: Any) -> RegionFile:
    """A captured region with fields of it changed."""
    found = region(capture)
    return replace(found, region=found.region.map(lambda value: replace(value, **changes)))


def sharing(capture: str, *extra: Process) -> Changed:
    """A capture with the processes that NVML listed then, and some more."""
    processes = known((*listed(capture), *extra), "NVML")
    return both(regions(region(capture)), lambda facts: with_card(facts, processes=processes))


def unjudged() -> RegionFile:
    found = region("killed-8g")
    return replace(found, region=found.region.map(lambda value: value.with_life(lambda slot: None)))


def of_this_library(capture: str) -> RegionFile:
    return replace(region(capture), core=known(Core("0.1.0", "default", (), (), 0), "x.core"))


def pods(*uids: str, scope: str = "") -> Changed:
    found = tuple(kube.Pod(metadata=kube.Metadata(name="p", uid=uid)) for uid in uids)
    return lambda facts: replace(facts, pods=known(found, "/api/v1/pods"), scope=scope)


OURS, OTHER = "5e1f" * 16, "a" * 64


def plugin(wanted: str | None, machine: str = "x86_64", *said: str | None) -> Changed:
    """A DaemonSet of the plugin that places this hash (None: it places nothing), and what its pods said of it, one a
    node: a hash, a fault, None for not yet."""
    env = [kube.EnvVar(name="LIBRARIES", value=f"{machine}:{wanted}" if machine else wanted)] if wanted else []
    init = None if wanted is None else [kube.Container(name="place", env=env)]
    spec = kube.PodSpec(init_containers=init, containers=[kube.Container(name="volcano-device-plugin")])
    labels = kube.Metadata(
        name="volcano-device-plugin", namespace="kube-system", labels={"name": "volcano-device-plugin"}
    )
    item = kube.Workload(metadata=labels, spec=kube.WorkloadSpec(template=kube.PodTemplate(metadata=labels, spec=spec)))
    found = []
    for number, text in enumerate(said, 1):
        ended = kube.ContainerState(message=text or "", exit_code=int(" " in (text or "")))
        waits = {"waiting": kube.ContainerState(reason="PodInitializing")}
        status = kube.ContainerStatus(name="place", state=waits if text is None else {"terminated": ended})
        found.append(
            kube.Pod(
                metadata=kube.Metadata(name=f"p{number}", labels={"name": "volcano-device-plugin"}),
                spec=msgspec.structs.replace(spec, node_name=f"gpu-{number}"),
                status=kube.PodStatus(init_container_statuses=[status]),
            )
        )
    return lambda facts: replace(facts, daemonsets=known((item,), "/apis"), pods=known(tuple(found), "/api/v1/pods"))


def configmaps(name: str, space: str = "kube-system") -> Changed:
    found = (kube.ConfigMap(metadata=kube.ManagedMetadata(name=name, namespace=space)),)
    return lambda facts: replace(facts, configmaps=known(found, "/api/v1/configmaps"))


def no_pods(facts: Facts) -> Facts:
    return replace(facts, pods=UNREAD)


def no_cards(facts: Facts) -> Facts:
    return replace(facts, cards=UNREAD)


def no_regions(facts: Facts) -> Facts:
    return replace(facts, regions=UNREAD)


def armed(core_limit: int | None = 50, *, hooks: bool = True, slot: int = 0) -> Core:
    """What the library says of the region `one-8g-50`."""
    (uuid,) = region("one-8g-50").region.need().uuids
    card = CoreCard(uuid, 8 << 30, core_limit, 0, 0.0, 0.0, 0, 0, None, None, None, None)
    return Core("0.1.0", "force", (card,), (CoreProcess(slot, 426, 1, 1, hooks),), 0)


def limited(core: Core | Reading[Core], *, idle: float | None = 1) -> Changed:
    """The region `one-8g-50` with that companion; idle: seconds since the last launch."""
    file = changed("one-8g-50", last_kernel=None if idle is None else int(NOW - idle))
    return regions(replace(file, core=core if isinstance(core, Reading) else known(core, "x.core")))


def both_libraries(facts: Facts) -> Facts:
    return replace(facts, regions=known((*limited(armed())(facts).regions.need(), region("one-8g-50")), REGIONS))


CASES = [
    Case("shim-file", "ours", same, "pass", "of this vgpuctl"),
    Case("shim-file", "another", file(ours=False), "pass", "not the library of this vgpuctl"),
    Case("shim-file", "nothing to compare with", file(ours=None), "pass", "none to compare"),
    Case("shim-file", "not installed", not_here, "skip"),
    Case("shim-file", "gone", shim(file=absent(LIBRARY)), "fail", "not there"),
    Case("shim-file", "root only", mode(0o700), "fail", "chmod 0755"),
    Case("shim-file", "no ELF file", file(machine=""), "fail", "not an ELF file"),
    Case("shim-file", "of another machine", file(machine="aarch64"), "fail", "built for aarch64"),
    Case("shim-file", "of a newer glibc", file(glibc="2.38"), "fail", "needs glibc 2.38, this machine has 2.36"),
    Case("shim-file", "of this glibc", file(glibc="2.34"), "pass", "needs glibc 2.34 in every container"),
    Case("shim-file", "no symbol versions", file(glibc=""), "pass"),
    Case("shim-file", "no ld.so.preload", shim(preload=absent(PRELOAD)), "fail", "does not name"),
    Case("shim-file", "names another path", shim(preload=known("/opt/libvgpu.so\n", PRELOAD)), "fail", "/opt"),
    Case("shim-file", "names two", shim(preload=known(f"/a.so {MOUNTED}", PRELOAD)), "pass"),
    Case("shim-file", "not readable", shim(file=UNREAD), "unknown"),
    Case("shim-file", "ld.so.preload not readable", shim(preload=UNREAD), "unknown"),
    Case("shim-file", "machine not known", shim(machine=UNREAD), "unknown"),
    Case("shim-file", "glibc not known", both(file(glibc="2.34"), shim(glibc=UNREAD)), "unknown"),
    Case("shim-file", "what the DaemonSet places", plugin(OURS), "pass"),
    Case("shim-file", "another than the DaemonSet places", plugin(OTHER), "warn", "places aaaa"),
    Case("shim-file", "of another architecture", plugin(OTHER, "aarch64"), "pass"),
    Case("shim-file", "DaemonSets not readable", lambda facts: replace(facts, daemonsets=UNREAD), "pass"),
    Case("shim-placed", "everywhere", plugin(OURS, "x86_64", OURS, OURS), "pass", "placed on 2 nodes"),
    Case("shim-placed", "the image's own", plugin("", "", OURS, OTHER), "pass", "the image's own library"),
    Case("shim-placed", "an older one", plugin(OURS, "x86_64", OURS, OTHER), "warn", "Node gpu-2"),
    Case("shim-placed", "refused", plugin(OURS, "x86_64", OURS, "cannot write"), "fail", "exit code 1: cannot write"),
    Case("shim-placed", "says nothing", plugin(OURS, "x86_64", OURS, ""), "unknown", "did not say"),
    Case("shim-placed", "not yet", plugin(OURS, "x86_64", OURS, None), "unknown", "PodInitializing"),
    Case(
        "shim-placed",
        "its ConfigMap is there",
        both(plugin(OURS), configmaps("vgpuctl-shim-x86-64-5e1f5e1f5e")),
        "pass",
    ),
    Case("shim-placed", "its ConfigMap is gone", both(plugin(OURS), configmaps("other")), "fail", "x86-64-5e1f5e1f5e"),
    Case("shim-placed", "ConfigMaps of elsewhere", both(plugin(OURS), configmaps("x", space="a")), "pass"),
    Case("shim-placed", "garbage wanted", plugin("x y:z", "", OURS), "warn"),
    Case("shim-placed", "upstream's manifest", plugin(None), "skip", "places the library"),
    Case("shim-placed", "a namespace only", both(plugin(OURS), pods(scope="namespace a")), "skip", "namespace a"),
    Case("shim-placed", "pods not readable", both(plugin(OURS), no_pods), "unknown"),
    Case("shim-placed", "DaemonSets not readable", lambda facts: replace(facts, daemonsets=UNREAD), "unknown"),
    Case("shim-version", "the present file", same, "pass", "1 process"),
    Case("shim-version", "replaced", program(library(deleted=True)), "warn", "replaced or removed"),
    Case("shim-version", "another inode", program(library(12)), "warn", "inode 12"),
    Case("shim-version", "inode not recorded", both(program(library(12)), file(stat=Stat("file", 0o755))), "pass"),
    Case("shim-version", "a library of its own", program(known(Mapped("/app/libvgpu.so", 5, True), "")), "pass"),
    Case("shim-version", "inside a container", host(container=known("a pod", "/")), "skip", "a pod"),
    Case("shim-version", "not installed", not_here, "skip"),
    Case("shim-version", "processes not seen", shim(programs=UNREAD), "unknown"),
    Case("shim-version", "maps not readable", program(UNREAD), "unknown"),
    Case("vgpulock", "open to all", same, "pass", "0777"),
    Case("vgpulock", "sticky", locks(Stat("directory", 0o1777)), "pass"),
    Case("vgpulock", "root only", locks(Stat("directory", 0o755)), "warn", "mode 0755"),
    Case("vgpulock", "a file", locks(Stat("file", 0o777)), "warn", "not a directory"),
    Case("vgpulock", "not there", locks(Stat("absent")), "warn", "mkdir"),
    Case("vgpulock", "held right now", lock(3), "pass"),
    Case("vgpulock", "left behind", lock(3600), "warn", "since 3600 s"),
    Case("vgpulock", "not installed", not_here, "skip"),
    Case("vgpulock", "age not recorded", locks(Stat("directory", 0o777), Stat("file")), "unknown", "since when"),
    Case("vgpulock", "not readable", shim(locks=UNREAD), "unknown"),
    Case("region-format", "upstream's", same, "pass", "1 region"),
    Case("region-format", "truncated", broken("17 bytes long, 2008953 expected"), "fail", "17 bytes long"),
    Case("region-format", "not begun", broken("not initialised", ready=False), "pass"),
    Case("region-format", "none", regions(), "skip"),
    Case("region-format", "not installed", not_here, "skip"),
    Case("region-format", "not readable", no_regions, "unknown"),
    Case("region-format", "one not readable", broken("Permission denied", denied=True), "unknown", "denied"),
    Case("region-format", "containers not seen", regions(region("nolimit"), note="denied"), "unknown", "denied"),
    Case("region-counters", "possible", same, "pass"),
    Case("region-counters", "garbage", regions(changed("nolimit", faults=("slot 3 has the pid -7",))), "fail", "-7"),
    Case("region-counters", "above the card", card(memory=600 * MIB), "fail", "of a card with 600 MiB"),
    Case("region-counters", "cards not known", no_cards, "unknown", "sizes"),
    Case("region-counters", "not readable", no_regions, "unknown"),
    Case("region-slots", "all live", same, "pass"),
    Case("region-slots", "a dead one", sharing("killed-8g"), "warn", "2682 MiB"),
    Case("region-slots", "this library clears them", regions(of_this_library("killed-8g")), "pass", "1 slot"),
    Case("region-slots", "cannot be told", regions(unjudged()), "unknown", "still live"),
    Case("region-slots", "not readable", no_regions, "unknown"),
    Case("region-orphans", "the pod is there", pods(POD), "pass", "1 container"),
    Case("region-orphans", "gone", both(pods("x"), regions(region("finished"))), "warn", "the pod is gone"),
    Case("region-orphans", "gone, but it runs", pods("x"), "pass"),
    Case("region-orphans", "pods of a namespace only", pods(scope="namespace team-a"), "skip", "team-a"),
    Case("region-orphans", "no container", regions(replace(region("nolimit"), pod="")), "skip"),
    Case("region-orphans", "pods not readable", lambda facts: replace(facts, pods=UNREAD), "unknown"),
    Case("limit-held", "below", same, "pass"),
    Case("limit-held", "above", regions(changed("one-8g-50", limits=(1000 * MIB,))), "fail", "the limit is 1000 MiB"),
    Case("limit-held", "no limit", sharing("nolimit"), "pass"),
    Case("limit-held", "without the library", program(absent("/proc/426/maps")), "fail", "not mapped"),
    Case("limit-held", "another pod's", shim(programs=known((Program(426, "x", absent("")),), "")), "pass"),
    Case("limit-held", "no region", not_here, "skip"),
    Case("limit-held", "cards not known", no_cards, "unknown"),
    Case("limit-held", "processes not listed", card(processes=missing("Insufficient Permissions", "NVML")), "unknown"),
    Case("limit-held", "maps not readable", program(UNREAD), "unknown"),
    Case("limiter-armed", "in force", limited(armed()), "pass", "1 container with a core limit"),
    Case("limiter-armed", "policy disable", limited(replace(armed(), policy="disable")), "warn", "switched off"),
    Case("limiter-armed", "none in force", limited(armed(None)), "warn", "in force none"),
    Case("limiter-armed", "another in force", limited(armed(30)), "warn", "in force 30 %"),
    Case("limiter-armed", "changed while idle", limited(armed(30), idle=3600), "pass"),
    Case("limiter-armed", "before the first launch", limited(armed(30), idle=None), "pass"),
    Case("limiter-armed", "launches past it", limited(armed(hooks=False)), "warn", "launches without hooks"),
    Case("limiter-armed", "of a process that is gone", limited(armed(hooks=False, slot=9)), "pass"),
    Case("limiter-armed", "upstream's library", same, "skip", "does not tell"),
    Case("limiter-armed", "one of two", both_libraries, "pass", "1 of 2 containers"),
    Case("limiter-armed", "no core limit", regions(region("nolimit")), "pass", "no container has a core limit"),
    Case("limiter-armed", "state damaged", limited(missing("x.core: wrong magic", "x.core")), "unknown", "magic"),
    Case("limiter-armed", "not installed", not_here, "skip"),
    Case("limiter-armed", "not readable", no_regions, "unknown"),
    Case("accounting-gap", "rounding", same, "pass"),
    Case("accounting-gap", "much less counted", card(processes=known((Process(426, memory=4096 * MIB),), "")), "warn"),
    Case("accounting-gap", "no region", not_here, "skip"),
    Case("accounting-gap", "cards not known", no_cards, "unknown"),
    Case("accounting-gap", "pids of elsewhere", card(processes=known((), "NVML")), "unknown", "does not list"),
]


def outcomes(case: Case) -> list[Outcome]:
    return list(run_checks([CHECKS[case.check]], case.change(healthy()), Options()))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.check}: {case.name}")
def test_a_check_says_what_is_the_case(case: Case) -> None:
    found = outcomes(case)
    mine = [outcome.result for outcome in found if outcome.result.status.value == case.status]
    assert mine, [outcome.result for outcome in found]
    told = "\n".join(
        f"{result.subject} {result.summary}\n{result.remedy}\n{' '.join(map(str, result.evidence))}" for result in mine
    )
    assert case.words in told
    if case.status in ("warn", "fail"):
        assert all(result.remedy and result.evidence for result in mine)


@pytest.mark.parametrize("check", CHECKS.values(), ids=lambda check: check.id)
def test_each_check_is_tried_well_ill_and_without_its_facts(check: Check) -> None:
    mine = {case.status for case in CASES if case.check == check.id}
    assert "pass" in mine and mine & {"warn", "fail"} and "unknown" in mine
    assert check.explain


def fixes(check: str, change: Changed) -> list[Change]:
    return [fix for outcome in run_checks([CHECKS[check]], change(healthy()), Options()) for fix in outcome.result.fix]


ILL = [case for case in CASES if case.status in ("warn", "fail")]


@pytest.mark.parametrize("case", ILL, ids=lambda case: f"{case.check}: {case.name}")
def test_every_fix_can_be_undone(case: Case) -> None:
    found = fixes(case.check, case.change)
    assert CHECKS[case.check].fixable or not found
    for fix in found:
        assert fix.undo and fix.why and fix.how in (How.COMMAND, How.FILE, How.BYTES)


def test_a_directory_is_not_moved_while_a_process_of_it_may_live() -> None:
    assert fixes("region-orphans", both(pods("x"), regions(unjudged()))) == []
    assert len(fixes("region-orphans", both(pods("x"), regions(region("finished"))))) == 2


class TestMending:
    """The fixes carried out on real files."""

    def carried_out(self, change: Change) -> list[str]:
        outcome = apply(MachineWriter(), [Group([change])], Conduct(say=lambda text: None, yes=True))
        return [problem.what for problem in outcome.problems]

    def at(self, change: Change, path: Path) -> Change:
        return replace(change, target=replace(change.target, name=str(path)))

    def test_ld_so_preload_is_written_and_the_old_text_kept(self, tmp_path: Path) -> None:
        (fix,) = fixes("shim-file", shim(preload=known("/opt/x.so\n", PRELOAD)))
        place = tmp_path / "ld.so.preload"
        place.write_text("/opt/x.so\n")
        assert self.carried_out(self.at(fix, place)) == []
        assert place.read_text() == f"{MOUNTED}\n"
        assert (tmp_path / "ld.so.preload.before").read_text() == "/opt/x.so\n"
        assert fix.undo == f"mv {PRELOAD}.before {PRELOAD}"

    @pytest.mark.parametrize("there", ["changed", "absent", "a link"])
    def test_a_file_that_is_not_what_it_was_is_left_alone(self, there: str, tmp_path: Path) -> None:
        (fix,) = fixes("shim-file", shim(preload=known("/opt/x.so\n", PRELOAD)))
        place, other = tmp_path / "ld.so.preload", tmp_path / "other"
        other.write_text("/opt/x.so\n")
        if there == "changed":
            place.write_text("/opt/y.so\n")
        if there == "a link":
            place.symlink_to(other)
        assert len(self.carried_out(self.at(fix, place))) == 1
        assert other.read_text() == "/opt/x.so\n"
        assert not place.exists() or place.read_text() != f"{MOUNTED}\n"

    def test_a_dead_processs_counters_become_0_and_can_be_put_back(self, tmp_path: Path) -> None:
        place, data, fix = self._region(tmp_path)
        assert self.carried_out(fix) == []
        after = parse(place.read_bytes())
        slots = {slot.pid: slot.used[0] for slot in after.slots}
        assert slots[503] is not None and slots[503].total == 0
        assert slots[502] == {slot.pid: slot.used[0] for slot in parse(data).slots}[502]
        assert sum(one != other for one, other in zip(place.read_bytes(), data, strict=True)) <= 1024
        kept = Path(fix.after.keep).read_bytes()
        start = fix.after.offset
        assert place.read_bytes()[:start] + kept + place.read_bytes()[start + len(kept) :] == data

    @pytest.mark.parametrize("there", ["another process", "a link", "a FIFO", "shorter"])
    def test_a_region_that_is_not_what_it_was_is_left_alone(self, there: str, tmp_path: Path) -> None:
        place, data, fix = self._region(tmp_path)
        if there == "another process":
            changed = bytearray(data)
            changed[fix.after.guard[0][0]] ^= 1
            place.write_bytes(changed)
        elif there == "shorter":
            place.write_bytes(data[:100])
        else:
            place.unlink()
            other = tmp_path / "other"
            other.write_bytes(data)
            if there == "a link":
                place.symlink_to(other)
            else:
                os.mkfifo(place)
        before = (tmp_path / "other").read_bytes() if there in ("a link", "a FIFO") else place.read_bytes()
        assert len(self.carried_out(fix)) == 1
        after = (tmp_path / "other").read_bytes() if there in ("a link", "a FIFO") else place.read_bytes()
        assert after == before

    def _region(self, folder: Path) -> tuple[Path, bytes, Change]:
        (fix,) = fixes("region-slots", sharing("killed-8g"))
        data = gzip.decompress((CAPTURES / "killed-8g.cache.gz").read_bytes())
        place = folder / "killed.cache"
        place.write_bytes(data)
        moved = replace(fix.after, keep=str(folder / "removed" / "slot"))
        return place, data, replace(self.at(fix, place), after=moved)

    def test_a_lock_that_was_left_behind_goes(self) -> None:
        (fix,) = fixes("vgpulock", lock(3600))
        assert (fix.after, fix.undo) == (("rm", LOCK), f"touch {LOCK}")
