"""Area shim, the file: the library itself, who still has an older one, the locks."""

from __future__ import annotations

from collections.abc import Iterator

from vgpuctl.checks import share
from vgpuctl.checks.check import Check, Evidence, Options, Result, Skip, Status, Where
from vgpuctl.model import configmaps, kube, pool
from vgpuctl.model.change import Change, How, Line, Target
from vgpuctl.model.facts import Facts, Part
from vgpuctl.model.host import Host, Stat
from vgpuctl.model.install import libraries, placed
from vgpuctl.model.reading import Missing
from vgpuctl.model.shim import LIBRARY, LOCK, LOCKS, MOUNTED, OLDEST_GLIBC, PRELOAD, Program, Shim, ShimFile
from vgpuctl.model.version_number import VersionNumber

_STALE = 60.0
"""Seconds; starting a process under the lock takes far less."""
_SHOWN = 5
_READABLE = 0o444
_PLACE = "mend what it says; the kubelet starts it again by itself"
_INSTALL = "restart the device plugin's pod on this node: it copies the library at its start"


def installed(facts: Facts) -> tuple[Host, Shim]:
    """This machine, where a library is or was used. Raises Skip elsewhere."""
    shim = facts.shim.need()
    if not shim.used:
        raise Skip("no vGPU library is installed here")
    return facts.host.need(), shim


def _shim_file(facts: Facts, options: Options) -> Iterator[Result]:
    host, shim = installed(facts)
    if shim.file.absent:
        summary = "the library is not there: vGPU containers cannot start, or have no limits"
        evidence = Evidence(LIBRARY, "does not exist")
        yield Result(Status.FAIL, summary, host.name, (evidence,), _INSTALL)
        return
    file = shim.file.need()
    faults = [*_of_file(host, shim, file), *_of_preload(host, shim), *_of_daemonset(facts, host, file)]
    yield from faults
    if faults:
        return
    name = (
        "the library of this vgpuctl"
        if file.ours
        else "not the library of this vgpuctl (upstream's, or of another version)"
    )
    if file.ours is None:
        name = "a library; this installation has none to compare it with"
    glibc = f", needs glibc {file.glibc} in every container" if _newer(file.glibc, OLDEST_GLIBC) else ""
    seen = (Evidence(file.path, f"sha256 {file.sha256}"), Evidence(PRELOAD, shim.preload.need().strip()))
    yield Result(Status.PASS, f"{name}, for {file.machine}{glibc}", host.name, seen)


def _of_file(host: Host, shim: Shim, file: ShimFile) -> Iterator[Result]:
    if file.stat.mode & _READABLE != _READABLE:
        mode = f"{file.stat.mode:04o}"
        command = ("chmod", "0755", file.path)
        fix = _command(
            command, Line("mode", mode, "0755"), f"chmod {mode} {file.path}", "let every user's programs load it"
        )
        summary = "programs of other users cannot load it: they run without limits"
        yield Result(Status.FAIL, summary, host.name, (Evidence(file.path, f"mode {mode}"),), " ".join(command), (fix,))
    if not file.machine:
        yield Result(Status.FAIL, "it is not an ELF file", host.name, (Evidence(file.path, "no ELF header"),), _INSTALL)
        return
    wanted = shim.machine.need()
    if file.machine != wanted:
        summary = f"it was built for {file.machine}, this machine is {wanted}: the loader ignores it, no limit holds"
        evidence = (Evidence(file.path, file.machine), Evidence(shim.machine.source, wanted))
        yield Result(Status.FAIL, summary, host.name, evidence, f"install the library for {wanted}")
    if _newer(file.glibc, OLDEST_GLIBC):
        here = shim.glibc.need()
        if _newer(file.glibc, here):
            summary = f"it needs glibc {file.glibc}, this machine has {here}: images like it run without limits"
            evidence = (Evidence(file.path, f"GLIBC_{file.glibc}"), Evidence(shim.glibc.source, here))
            remedy = f"install a library for glibc {OLDEST_GLIBC}, such as this vgpuctl's"
            yield Result(Status.FAIL, summary, host.name, evidence, remedy)


def _of_daemonset(facts: Facts, host: Host, file: ShimFile) -> Iterator[Result]:
    """The file beside what the plugin's pods place here."""
    for item in pool.plugin_daemonsets(facts) if facts.daemonsets.known else ():
        subject, hashes = f"DaemonSet {pool.full_name(item.metadata)}", placed.wanted(item)
        wanted = hashes.get(file.machine)
        if wanted is not None and wanted != file.sha256:
            evidence = (Evidence(file.path, f"sha256 {file.sha256}"), Evidence(subject, f"places {wanted}"))
            summary = "it is not the library that the plugin's DaemonSet places"
            yield Result(Status.WARN, summary, host.name, evidence, _INSTALL)


def _of_preload(host: Host, shim: Shim) -> Iterator[Result]:
    text = shim.preload.value
    if text is None and not shim.preload.absent:
        raise Missing(shim.preload.reason, shim.preload.source)
    if text is not None and MOUNTED in text.replace(":", " ").split():
        return
    wanted = f"{MOUNTED}\n"
    shown = None if text is None else text.strip() or "(empty)"
    fix = Change(
        Target("Host", PRELOAD),
        How.FILE,
        wanted,
        before=text,
        lines=(Line("text", shown, MOUNTED),),
        undo=f"rm {PRELOAD}" if text is None else f"mv {PRELOAD}.before {PRELOAD}",
        why="containers load what this file names",
    )
    summary = f"ld.so.preload does not name {MOUNTED}: containers run without limits"
    evidence = Evidence(PRELOAD, "does not exist" if shown is None else shown)
    yield Result(Status.FAIL, summary, host.name, (evidence,), f"echo {MOUNTED} > {PRELOAD}", (fix,))


def _shim_placed(facts: Facts, options: Options) -> Iterator[Result]:
    sets = [item for item in pool.plugin_daemonsets(facts) if placed.places(item.spec.template.spec)]
    if not sets:
        raise Skip("no DaemonSet of vgpuctl places the library")
    share.everything(facts)
    for item in sets:
        yield from _of_configmaps(facts, item)
    hashes = {digest for item in sets for digest in placed.wanted(item).values()}
    fine, waiting = 0, None
    for pod in pool.plugin_pods(facts):
        reading = placed.sha256(pod)
        subject, evidence = f"Node {pod.spec.node_name}", (Evidence(reading.source, reading.value or reading.reason),)
        if placed.failure(pod):
            yield Result(Status.FAIL, "the library could not be placed", subject, evidence, _PLACE)
        elif reading.value is None:
            waiting = waiting or reading
        elif hashes and reading.value not in hashes:
            yield Result(Status.WARN, "it has another library than the DaemonSet places", subject, evidence, _INSTALL)
        else:
            fine += 1
    if waiting:
        raise Missing(waiting.reason, waiting.source)
    if fine:
        told = Evidence("init containers", ", ".join(sorted(hashes)) or "the image's own library")
        yield Result(Status.PASS, f"placed on {share.count(fine, 'node')}", evidence=(told,))


def _of_configmaps(facts: Facts, item: kube.Workload) -> Iterator[Result]:
    """The ConfigMaps that hold the library, in the namespaces of which all are read."""
    space = item.metadata.namespace
    if space not in configmaps.PLUGIN_NAMESPACES:
        return
    there = {found.metadata.name for found in facts.configmaps.value or () if found.metadata.namespace == space}
    gone = [name for pair in placed.wanted(item).items() if (name := libraries.name(*pair)) not in there]
    if gone and there and not facts.configmaps.note:
        subject = f"DaemonSet {pool.full_name(item.metadata)}"
        evidence = (Evidence("ConfigMaps", f"{share.some(gone)} not in {space}"),)
        summary = "the ConfigMap that holds its library is gone: on a new node the plugin cannot start"
        yield Result(Status.FAIL, summary, subject, evidence, "vgpuctl status; vgpuctl upgrade makes it anew")


def _newer(one: str, other: str) -> bool:
    return bool(one) and VersionNumber(one) > VersionNumber(other)


def _command(command: tuple[str, ...], line: Line, undo: str, why: str) -> Change:
    target = Target("Host", " ".join(command))
    return Change(target, How.COMMAND, command, line.before, (line,), undo=undo, why=why)


def _shim_version(facts: Facts, options: Options) -> Result:
    host, shim = installed(facts)
    if host.container.value:
        raise Skip(f"{host.container.value} does not show the processes of the host")
    programs = shim.programs.need()
    unread = [program for program in programs if not program.library.known and not program.library.absent]
    having = [program for program in programs if program.library.value and program.library.value.path == MOUNTED]
    inode = shim.file.value.stat.inode if shim.file.value else 0
    old = [program for program in having if _is_old(program, inode)]
    if old:
        pods = {program.pod for program in old}
        summary = f"{_count(len(old), 'process', 'es')} of {_count(len(pods), 'pod')} run on an older library"
        evidence = tuple(
            Evidence(f"/proc/{program.pid}/maps", f"{_how_old(program)}, pod {program.pod}") for program in old[:_SHOWN]
        )
        return Result(Status.WARN, summary, host.name, evidence, "restart these pods when it suits their owners")
    if unread and not having:
        raise Missing(unread[0].library.reason, unread[0].library.source)
    note = f"; {len(unread)} could not be looked at" if unread else ""
    summary = f"{_count(len(having), 'process', 'es')} of pods on this file{note}"
    return Result(
        Status.PASS, summary, host.name, (Evidence(shim.programs.source, _count(len(programs), "process", "es")),)
    )


def _is_old(program: Program, inode: int) -> bool:
    library = program.library.need()
    return library.deleted or bool(inode and library.inode != inode)


def _how_old(program: Program) -> str:
    library = program.library.need()
    return "its file was replaced or removed" if library.deleted else f"inode {library.inode} is not the present file's"


def _count(number: int, noun: str, plural: str = "s") -> str:
    return f"{number} {noun}{'' if number == 1 else plural}"


def _vgpulock(facts: Facts, options: Options) -> Iterator[Result]:
    host = facts.host.need()
    shim = facts.shim.need()
    locks = shim.locks.need()
    if not locks.folder.exists:
        if not shim.used:
            raise Skip("no vGPU library is installed here")
        remedy = f"mkdir -m 1777 {LOCKS}"
        command = ("mkdir", "-m", "1777", LOCKS)
        fix = _command(command, Line("directory", None, "mode 1777"), f"rmdir {LOCKS}", "containers mount it")
        yield Result(Status.WARN, "it is not there", host.name, (Evidence(LOCKS, "does not exist"),), remedy, (fix,))
        return
    faults = [*_of_folder(host, locks.folder), *_of_lock(facts, host, locks.lock)]
    yield from faults
    if not faults:
        evidence = Evidence(LOCKS, f"mode {locks.folder.mode:04o}")
        yield Result(Status.PASS, "every container can use it, and no lock is left behind", host.name, (evidence,))


def _of_folder(host: Host, folder: Stat) -> Iterator[Result]:
    if folder.kind != "directory":
        evidence = Evidence(LOCKS, f"a {folder.kind}")
        yield Result(Status.WARN, "it is not a directory", host.name, (evidence,), f"remove it; mkdir -m 1777 {LOCKS}")
    elif folder.mode & 0o777 != 0o777:
        mode = f"{folder.mode:04o}"
        fix = _command(
            ("chmod", "1777", LOCKS),
            Line("mode", mode, "1777"),
            f"chmod {mode} {LOCKS}",
            "containers of any user lock here",
        )
        summary = "containers that do not run as its owner cannot lock there"
        yield Result(Status.WARN, summary, host.name, (Evidence(LOCKS, f"mode {mode}"),), f"chmod 1777 {LOCKS}", (fix,))


def _of_lock(facts: Facts, host: Host, lock: Stat) -> Iterator[Result]:
    if not lock.exists:
        return
    read = facts.shim.at
    if not lock.modified or read is None:
        raise Missing("since when the lock is held was not recorded", LOCK)
    age = read - lock.modified
    if age > _STALE:
        fix = _command(("rm", LOCK), Line("lock", f"{age:.0f} s old", None), f"touch {LOCK}", "its process is gone")
        summary = f"a lock is left behind since {age:.0f} s: every new CUDA process waits for it"
        yield Result(Status.WARN, summary, host.name, (Evidence(LOCK, f"{age:.0f} s old"),), f"rm {LOCK}", (fix,))


_HERE, _POD, _PROBE = Where.MACHINE, Where.PLUGIN, Where.PROBE
_NEEDS = (Part.HOST, Part.SHIM)

CHECKS = (
    Check(
        "shim-file",
        "The library is there, readable, fits the machine, and ld.so.preload names it",
        "shim",
        Status.FAIL,
        _NEEDS,
        (_HERE, _POD),
        _shim_file,
        also=(Part.DAEMONSETS,),
        fixable=True,
        explain=f"The device plugin mounts {LIBRARY} and {PRELOAD} into each vGPU container. A library that the loader "
        "cannot use (unreadable, another architecture, a newer glibc than the image's) is ignored with a message on "
        f"standard error, and the container runs without limits. A library for glibc {OLDEST_GLIBC} fits every "
        "image of the last ten years; musl images ignore ld.so.preload.",
    ),
    Check(
        "shim-placed",
        "Every node has the library that the plugin's DaemonSet places",
        "shim",
        Status.FAIL,
        (Part.DAEMONSETS, Part.PODS),
        (Where.API,),
        _shim_placed,
        also=(Part.CONFIGMAPS,),
        explain="vgpuctl's DaemonSet has an init container that checks the library and renames it into its place; its "
        "last word is the sha256 of what lies there then. A node whose pod is older than the DaemonSet has an older "
        "library.",
    ),
    Check(
        "shim-version",
        "No running container is on an older library",
        "shim",
        Status.WARN,
        _NEEDS,
        (_HERE, _PROBE),
        _shim_version,
        explain="A process keeps the file that it has mapped when the name gets a new one. It goes on working, but has "
        "the old file's faults until its pod is restarted.",
    ),
    Check(
        "vgpulock",
        "The containers' lock directory is usable, and no lock is left behind",
        "shim",
        Status.WARN,
        _NEEDS,
        (_HERE, _POD),
        _vgpulock,
        fixable=True,
        explain=f"All vGPU containers of a node share {LOCKS}. Upstream's library makes {LOCK} while a process starts; "
        "one that was killed then leaves it, and each later process waits for it (`unified_lock locked, waiting 1 "
        "second...`).",
    ),
)
