"""Area host: the machine itself."""

from __future__ import annotations

from collections.abc import Iterator

from vgpuctl.checks.check import Check, Evidence, Options, Result, Status, Where
from vgpuctl.model.architecture import by_device_id
from vgpuctl.model.change import Change, How, Line, Target
from vgpuctl.model.facts import Facts, Part
from vgpuctl.model.host import Host, Stat
from vgpuctl.model.reading import Missing

_GIB = 1 << 30
_LEAST_SPACE = 512 << 20
"""Bytes: room for some 250 region files of 2 MB."""
_LEAST_INODES = 2_000
_UNIFIED = ("GB10", "Orin", "Xavier", "Thor", "Tegra")
_CONTAINER_LABELS = ("container_file_t", "container_ro_file_t", "svirt_sandbox_file_t")


def _gpu_present(facts: Facts, options: Options) -> Result:
    host = facts.host.need()
    present = host.has_gpu
    listed = facts.cards.value or ()
    if present is None and not listed:
        raise Missing(host.pci.reason, host.pci.source)
    if not present and not listed:
        evidence = Evidence(host.pci.source, "no PCI device of vendor 10de and class 03")
        return Result(Status.FAIL, "no NVIDIA GPU in this machine", host.name, (evidence,), "run doctor on a GPU node")
    devices = [device for device in host.pci.value or () if device.kind >> 16 == 3]
    names = [card.model for card in host.cards.value or listed]
    if not names:
        families = (by_device_id(device.device) for device in devices)
        names = [f"{family.name} GPU" if family else "GPU" for family in families]
    kinds = [f"{names.count(name)} × {name}" for name in dict.fromkeys(names)]
    evidence = Evidence(host.pci.source, ", ".join(device.address for device in devices) or "no PCI device is shown")
    return Result(Status.PASS, ", ".join(kinds) or "an NVIDIA GPU", host.name, (evidence,))


def _device_nodes(facts: Facts, options: Options) -> Result:
    host = facts.host.need()
    nodes = host.nodes.need()
    minors = [card.minor for card in host.cards.value or () if card.minor is not None and not card.excluded]
    wanted = ["/dev/nvidiactl", *(f"/dev/nvidia{minor}" for minor in minors)]
    majors = host.majors.value or {}
    major = majors.get("nvidia", majors.get("nvidia-frontend"))
    faults = []
    for path in wanted:
        fault = _node_fault(nodes.get(path), major)
        if fault:
            faults.append(Evidence(path, fault))
    if faults:
        remedy = "nvidia-modprobe -c 0 makes the nodes; `nvidia-smi` run as root does so too"
        return Result(
            Status.FAIL, f"{len(faults)} of {len(wanted)} device nodes are wrong", host.name, (*faults,), remedy
        )
    evidence = Evidence(host.nodes.source, ", ".join(wanted))
    unlinked = _unlinked(host, [nodes[path] for path in wanted])
    if unlinked:
        remedy = "nvidia-ctk system create-dev-char-symlinks --create-all (also as a udev rule)"
        summary = "/dev/char has no links to them: a systemctl daemon-reload takes the cards from running containers"
        return Result(Status.WARN, summary, host.name, (evidence, Evidence("/dev/char", unlinked)), remedy)
    return Result(Status.PASS, f"{len(wanted)} device nodes", host.name, (evidence,))


def _node_fault(stat: Stat | None, major: int | None) -> str:
    if stat is None or not stat.exists:
        return "does not exist"
    if stat.kind != "char":
        return f"is a {stat.kind}, not a character device"
    if major is not None and stat.major != major:
        return f"has major {stat.major}, the driver has {major}"
    if stat.mode & 0o006 != 0o006:
        return f"has mode {stat.mode:04o}: only root can use it"
    return ""


def _unlinked(host: Host, stats: list[Stat]) -> str:
    """The missing /dev/char links, where containers run under systemd cgroups that need them."""
    links = host.links.value
    if links is None or not (host.engines.value or host.kubelet.known):
        return ""
    absent = [f"{stat.major}:{stat.minor}" for stat in stats if f"{stat.major}:{stat.minor}" not in links]
    return f"no {', '.join(absent)}" if absent else ""


def _nvidia_uvm(facts: Facts, options: Options) -> Result:
    host = facts.host.need()
    modules, majors = host.modules, host.majors
    if modules.value is None and majors.value is None:
        raise Missing(modules.reason, modules.source)
    major = (majors.value or {}).get("nvidia-uvm")
    loaded = major is not None or (modules.value is not None and "nvidia-uvm" in modules.value)
    nodes = host.nodes.need()
    faults = [] if loaded else [Evidence(modules.source, "nvidia_uvm is not loaded")]
    for path in ("/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"):
        fault = _node_fault(nodes.get(path), major)
        if fault:
            faults.append(Evidence(path, fault))
    if not faults:
        text = f"major {major}" if major is not None else "present"
        return Result(
            Status.PASS, "loaded, and its device nodes are there", host.name, (Evidence("/dev/nvidia-uvm", text),)
        )
    summary = "CUDA cannot start in containers: nvidia-uvm is not ready"
    if host.container.value:
        return Result(Status.FAIL, summary, host.name, (*faults,), "on the host: nvidia-modprobe -u -c=0")
    fix = () if loaded else (_command(("modprobe", "nvidia-uvm"), "load the module", "modprobe -r nvidia-uvm"),)
    nodes_fix = _command(("nvidia-modprobe", "-u", "-c=0"), "make the device nodes", "rm /dev/nvidia-uvm*")
    remedy = "modprobe nvidia-uvm; nvidia-modprobe -u -c=0 (and at every start: a udev rule or nvidia-persistenced)"
    return Result(Status.FAIL, summary, host.name, (*faults,), remedy, (*fix, nodes_fix))


def _command(arguments: tuple[str, ...], why: str, undo: str) -> Change:
    shown = " ".join(arguments)
    return Change(Target("Host", shown), How.COMMAND, arguments, lines=(Line("run", None, shown),), undo=undo, why=why)


def _unified_memory(facts: Facts, options: Options) -> Iterator[Result]:
    driver = facts.driver.need()
    cards = facts.cards.value or ()
    names = [(f"GPU {card.index}", card.reason) for card in driver.broken if card.unified]
    names += [(f"GPU {card.index}", card.model) for card in cards if any(word in card.model for word in _UNIFIED)]
    for name, text in names:
        yield Result(
            Status.FAIL,
            "shares its memory with the CPU, so it cannot be divided by memory",
            name,
            (Evidence("NVML", text),),
            "use this node for whole-card work, outside the vGPU pool",
        )
    if not names:
        yield Result(
            Status.PASS, "every card has memory of its own", evidence=(Evidence("NVML", f"{len(cards)} cards"),)
        )


def _wsl(facts: Facts, options: Options) -> Result:
    host = facts.host.need()
    kernel = host.kernel.need()
    evidence = (Evidence(host.kernel.source, kernel),)
    if "microsoft" in kernel.lower():
        remedy = "use a Linux machine for the pool; under WSL NVML lists no processes and limits are not enforced"
        return Result(Status.WARN, "this is WSL, where vGPUs are not supported", host.name, evidence, remedy)
    return Result(Status.PASS, "a Linux kernel of its own", host.name, evidence)


def _security_labels(facts: Facts, options: Options) -> Result:
    host = facts.host.need()
    security = host.security.need()
    evidence = (Evidence(host.security.source, f"SELinux {security.selinux}"),)
    if security.selinux != "enforcing":
        note = "; AppArmor is on, its default profile does not hinder the library" if security.apparmor else ""
        return Result(Status.PASS, f"SELinux is not enforced{note}", host.name, evidence)
    places = (("/usr/local/vgpu/libvgpu.so", security.library), ("/usr/local/vgpu/vgpu/containers", security.regions))
    wrong = [
        (path, stat) for path, stat in places if stat.exists and not any(t in stat.label for t in _CONTAINER_LABELS)
    ]
    if wrong:
        found = tuple(Evidence(path, stat.label or "no label") for path, stat in wrong)
        remedy = "chcon -R -t container_file_t /usr/local/vgpu (semanage fcontext to keep it)"
        return Result(Status.WARN, "SELinux keeps containers from the library", host.name, (*evidence, *found), remedy)
    installed = any(stat.exists for _, stat in places)
    return Result(
        Status.PASS, "labels are right" if installed else "the library is not installed here yet", host.name, evidence
    )


def _disk_space(facts: Facts, options: Options) -> Result:
    host = facts.host.need()
    spaces = host.spaces.need()
    faults = []
    for path, space in spaces.items():
        if space.free < _LEAST_SPACE:
            faults.append(Evidence(path, f"{space.free / (1 << 20):.0f} MiB free of {space.total / _GIB:.0f} GiB"))
        if space.inodes and space.inodes_free < _LEAST_INODES:
            faults.append(Evidence(path, f"{space.inodes_free} inodes free of {space.inodes}"))
    tmp = host.tmp.value
    if tmp and tmp.mode & 0o1777 != 0o1777:
        faults.append(Evidence("/tmp", f"mode {tmp.mode:04o}, not 1777"))
    if faults:
        remedy = "free space where /usr/local/vgpu lies; chmod 1777 /tmp"
        return Result(Status.WARN, "region files or locks may not be written", host.name, (*faults,), remedy)
    least = min(spaces.values(), key=lambda space: space.free)
    evidence = tuple(Evidence(path, f"{space.free / _GIB:.1f} GiB free") for path, space in spaces.items())
    return Result(Status.PASS, f"at least {least.free / _GIB:.1f} GiB free", host.name, evidence)


_HERE, _POD, _PROBE = Where.MACHINE, Where.PLUGIN, Where.PROBE
_AFTER = ("gpu-present",)

CHECKS = (
    Check(
        "gpu-present",
        "An NVIDIA GPU is in the machine",
        "host",
        Status.FAIL,
        (Part.HOST,),
        (_HERE, _POD, _PROBE),
        _gpu_present,
        also=(Part.CARDS,),
        explain="Looks for PCI devices of NVIDIA's vendor id and display class, the driver's list and device nodes. "
        "Without a card the other checks of a machine say nothing.",
    ),
    Check(
        "device-nodes",
        "Device nodes exist, with the driver's major number and for everybody",
        "host",
        Status.FAIL,
        (Part.HOST,),
        (_HERE, _PROBE),
        _device_nodes,
        after=_AFTER,
        explain="Programs open /dev/nvidiactl and /dev/nvidia<minor>. With systemd cgroups the links in /dev/char "
        "matter too: without them `systemctl daemon-reload` takes the cards from running containers, which then say "
        "`Failed to initialize NVML: Unknown Error`.",
    ),
    Check(
        "nvidia-uvm",
        "nvidia-uvm is loaded and its device nodes are there",
        "host",
        Status.FAIL,
        (Part.HOST,),
        (_HERE, _POD, _PROBE),
        _nvidia_uvm,
        fixable=True,
        after=_AFTER,
        explain="CUDA needs the module nvidia-uvm and its device nodes; nothing loads it at start unless a CUDA "
        "program ran on the host. Without it cuInit fails inside containers while nvidia-smi works.",
    ),
    Check(
        "unified-memory",
        "Cards have memory of their own",
        "host",
        Status.FAIL,
        (Part.DRIVER,),
        (_HERE, _POD),
        _unified_memory,
        also=(Part.CARDS,),
        after=_AFTER,
        explain="GB10, Jetson and other integrated GPUs share the CPU's memory; NVML gives no size, so fractions of it "
        "cannot be handed out.",
    ),
    Check(
        "wsl",
        "The machine is not Windows Subsystem for Linux",
        "host",
        Status.WARN,
        (Part.HOST,),
        (_HERE,),
        _wsl,
        after=_AFTER,
        explain="Under WSL the driver belongs to Windows; process lists and device nodes are missing.",
    ),
    Check(
        "security-labels",
        "SELinux lets containers read the library and write regions",
        "host",
        Status.WARN,
        (Part.HOST,),
        (_HERE, _PROBE),
        _security_labels,
        after=_AFTER,
        explain="With SELinux enforcing, a library without a container label cannot be loaded inside containers: the "
        "loader ignores it and the limits do not hold.",
    ),
    Check(
        "disk-space",
        "There is room for region files, and /tmp is writable and sticky",
        "host",
        Status.WARN,
        (Part.HOST,),
        (_HERE, _PROBE),
        _disk_space,
        after=_AFTER,
        explain="Each vGPU container has a region file of 2 MB on the node, and locks under /tmp/vgpulock.",
    ),
)
