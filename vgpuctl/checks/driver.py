"""Area driver: the NVIDIA driver."""

from __future__ import annotations

import re
from collections.abc import Iterator

from vgpuctl.checks.check import Check, Evidence, Options, Result, Skip, Status, Where
from vgpuctl.model.architecture import Architecture, by_device_id
from vgpuctl.model.cuda import Fit, needs, version
from vgpuctl.model.facts import Facts, Part
from vgpuctl.model.reading import Missing

_LEAST = "450.80.02"
_ADVISED = "470"
_BAD = {"570.86": "CUDA programs under a preloaded library can hang at start"}
"""Releases with a known fault, by prefix."""
_MISMATCH = "ersion mismatch"
"""In NVML's words for error 18, `Driver/library version mismatch`."""
_VERSION = re.compile(r"\d+(\.\d+)*")
_UPDATE = "install a newer driver, then restart the node"


def _driver_loaded(facts: Facts, options: Options) -> Result:
    host = facts.host.need()
    if host.driver.value is not None:
        module = host.driver.value
        kind = "the open kernel module" if module.open else "the kernel module"
        text = f"{kind} {module.version}"
        return Result(Status.PASS, text, host.name, (Evidence(host.driver.source, module.version),))
    if host.driver.absent or (host.modules.value is not None and "nvidia" not in host.modules.value):
        remedy = "modprobe nvidia; if there is no such module, install the driver (nouveau must not hold the card)"
        evidence = Evidence(host.driver.source, "does not exist")
        return Result(Status.FAIL, "the NVIDIA kernel module is not loaded", host.name, (evidence,), remedy)
    raise Missing(host.driver.reason, host.driver.source)


def _version_of(facts: Facts) -> tuple[str, str]:
    """The driver's version and where it was read; raises Missing when there is none, or it is not a version."""
    host = facts.host.need()
    driver = facts.driver.value
    if host.driver.value is not None:
        text, source = host.driver.value.version, host.driver.source
    elif driver is not None:
        text, source = driver.version, facts.driver.source
    else:
        raise Missing(host.driver.reason, host.driver.source)
    try:
        version(text)
    except ValueError:
        raise Missing(f"the driver says that its version is {text!r}", source) from None
    return text, source


def _driver_version(facts: Facts, options: Options) -> Result:
    host = facts.host.need()
    text, source = _version_of(facts)
    here = version(text)
    evidence = (Evidence(source, text),)
    if here < version(_LEAST):
        return Result(Status.FAIL, f"driver {text} is older than {_LEAST}", host.name, evidence, _UPDATE)
    for family in _families(facts):
        if family.last_branch is not None and here[0] > family.last_branch:
            summary = f"driver branch {here[0]} does not drive {family.name} cards any more"
            remedy = f"install a driver of branch {family.last_branch} or older"
            return Result(Status.FAIL, summary, host.name, evidence, remedy)
    fault = next((why for prefix, why in _BAD.items() if f"{text}.".startswith(f"{prefix}.")), "")
    if fault:
        return Result(Status.WARN, f"driver {text} has a known fault: {fault}", host.name, evidence, _UPDATE)
    if here < version(_ADVISED):
        summary = f"driver {text} works; {_ADVISED} or newer is advised (async allocation, CUDA 11.4)"
        return Result(Status.WARN, summary, host.name, evidence, _UPDATE)
    ending = {family.last_branch: family for family in _families(facts) if family.last_branch}
    note = f"; {ending[here[0]].name} cards have no newer branch" if here[0] in ending else ""
    return Result(Status.PASS, f"driver {text}{note}", host.name, evidence)


def _families(facts: Facts) -> list[Architecture]:
    """The architectures of this machine's cards: by PCI id, which also shows cards that the driver ignores."""
    host = facts.host.need()
    found = [by_device_id(device.device) for device in host.pci.value or () if device.kind >> 16 == 3]
    found += [card.architecture for card in facts.cards.value or ()]
    return list(dict.fromkeys(family for family in found if family is not None))


def _driver_match(facts: Facts, options: Options) -> Result:
    host = facts.host.need()
    module = host.driver.need().version
    remedy = "restart the node (or unload and load the nvidia modules) so that the kernel runs what is installed"
    evidence = [Evidence(host.driver.source, module)]
    driver = facts.driver.value
    if driver is None:
        if _MISMATCH in facts.driver.reason:
            evidence.append(Evidence("NVML", facts.driver.reason))
            summary = f"the loaded kernel module is {module}, the installed libraries are of another version"
            return Result(Status.FAIL, summary, host.name, tuple(evidence), remedy)
        raise Missing(facts.driver.reason, facts.driver.source)
    evidence.append(Evidence("NVML", driver.version))
    library = driver.library.value
    if library is not None:
        evidence.append(Evidence(library.path, library.version or f"CUDA {library.cuda}"))
    versions = {"NVML": driver.version, "libcuda": library.version if library else ""}
    wrong = [f"{name} is {found}" for name, found in versions.items() if found and found != module]
    if wrong:
        summary = f"the loaded kernel module is {module}, {' and '.join(wrong)}"
        return Result(Status.FAIL, summary, host.name, tuple(evidence), remedy)
    if library is None:
        if driver.library.absent and not host.container.value:
            evidence.append(Evidence("libcuda.so.1", "does not exist"))
            summary = "libcuda is not installed: no CUDA program can run"
            return Result(Status.FAIL, summary, host.name, tuple(evidence), "install the driver's compute libraries")
        if not driver.library.absent and _nvml_asked(facts):
            raise Missing(driver.library.reason, driver.library.source)
    if library and not library.version and driver.cuda.known and library.cuda != driver.cuda.value:
        summary = f"libcuda offers CUDA {library.cuda}, the driver {driver.cuda.value}"
        return Result(Status.FAIL, summary, host.name, tuple(evidence), remedy)
    parts = "kernel module, NVML and libcuda" if library else "kernel module and NVML"
    return Result(Status.PASS, f"{parts} are all {module}", host.name, tuple(evidence))


def _cuda_driver(facts: Facts, options: Options) -> Result:
    host = facts.host.need()
    text, source = _version_of(facts)
    offered = facts.driver.value.cuda.value if facts.driver.value else None
    if offered and not _VERSION.fullmatch(offered):
        offered = None
    evidence = [Evidence(source, text)]
    if offered:
        evidence.append(Evidence("NVML", f"CUDA {offered}"))
    if not options.cuda:
        newest = f"CUDA up to {offered}" if offered else f"driver {text}"
        return Result(Status.PASS, f"{newest}; `--cuda 11.4` asks about one toolkit", host.name, tuple(evidence))
    answer = needs(options.cuda, text, offered or "")
    if answer.fit is Fit.NATIVE:
        return Result(Status.PASS, f"CUDA {options.cuda} runs on driver {text}", host.name, tuple(evidence))
    want = f"driver {answer.native}" if answer.native else "a newer driver"
    if answer.fit is Fit.MINOR:
        summary = (
            f"CUDA {options.cuda} runs on driver {text} by minor-version compatibility only: code shipped as PTX and "
            f"features of newer drivers do not work"
        )
        return Result(Status.WARN, summary, host.name, tuple(evidence), f"install {want} or newer")
    least = f" (at least {answer.least})" if answer.least and answer.least != answer.native else ""
    summary = f"CUDA {options.cuda} does not run on driver {text}"
    remedy = f"install {want} or newer{least}, or use an image with an older CUDA"
    return Result(Status.FAIL, summary, host.name, tuple(evidence), remedy)


def _nvml_usable(facts: Facts, options: Options) -> Iterator[Result]:
    name = facts.host.value.name if facts.host.value else ""
    if facts.driver.value is None:
        evidence = Evidence(facts.driver.source, facts.driver.reason)
        remedy = "run nvidia-smi; look at the kernel log (dmesg | grep -i -e nvrm -e xid)"
        if facts.driver.denied or facts.driver.reason == "not loaded" or not _nvml_asked(facts):
            raise Missing(facts.driver.reason, facts.driver.source)
        yield Result(Status.FAIL, "NVML does not answer", name, (evidence,), remedy)
        return
    broken = [card for card in facts.driver.value.broken if not card.unified]
    for card in broken:
        summary = f"GPU {card.index} does not answer{f' ({card.name})' if card.name else ''}"
        remedy = "look for Xid errors in the kernel log; drain the node, reset the card (nvidia-smi -r) or restart"
        yield Result(Status.FAIL, summary, f"GPU {card.index}", (Evidence("NVML", card.reason),), remedy)
    cards = facts.cards.need()
    if not broken:
        count = "1 card answers" if len(cards) == 1 else f"{len(cards)} cards answer"
        shown = tuple(Evidence("NVML", f"GPU {card.index} {card.model} {card.uuid}") for card in cards)
        yield Result(Status.PASS, count, name, shown)


def _nvml_asked(facts: Facts) -> bool:
    return facts.driver.source == "NVML"


def _fabric_manager(facts: Facts, options: Options) -> Result:
    host = facts.host.need()
    nodes = host.nodes.need()
    cards = facts.cards.value or ()
    states = {card.index: card.fabric.value for card in cards if card.fabric.value not in (None, "not supported")}
    switches = sorted(path for path in nodes if path.startswith("/dev/nvidia-nvswitch") and path[-1].isdigit())
    if not switches and not states:
        raise Skip("no NVSwitch here")
    evidence = [Evidence(host.nodes.source, f"{len(switches)} NVSwitches")] if switches else []
    evidence += [Evidence("NVML", f"GPU {index}: fabric {state}") for index, state in states.items()]
    ready = bool(states) and all(state == "completed" for state in states.values())
    manager = host.fabric_manager.value
    if not switches or (manager is None and ready):
        return _fabric_state(host.name, ready, evidence)
    if manager is None:
        raise Missing(host.fabric_manager.reason, host.fabric_manager.source)
    module = host.driver.value.version if host.driver.value else ""
    evidence.append(Evidence(host.fabric_manager.source, manager.text))
    package = f"nvidia-fabricmanager of exactly {module}" if module else "nvidia-fabricmanager of the driver's version"
    remedy = f"install {package} and hold the package; systemctl restart nvidia-fabricmanager"
    if manager.version and module and manager.version != module:
        evidence.append(Evidence(host.driver.source, module))
        summary = f"the fabric manager is {manager.version}, the driver {module}: every CUDA program fails (error 802)"
        return Result(Status.FAIL, summary, host.name, tuple(evidence), remedy)
    if not manager.active:
        summary = "the fabric manager does not run: every CUDA program fails with error 802"
        return Result(Status.FAIL, summary, host.name, tuple(evidence), remedy)
    return Result(Status.PASS, "the fabric manager runs", host.name, tuple(evidence))


def _fabric_state(name: str, ready: bool, evidence: list[Evidence]) -> Result:
    if ready:
        return Result(Status.PASS, "every card has joined the NVLink fabric", name, tuple(evidence))
    remedy = "look at the fabric manager (on the hypervisor where this is a virtual machine)"
    return Result(Status.FAIL, "a card has not joined the NVLink fabric", name, tuple(evidence), remedy)


_HERE, _POD, _PROBE, _API = Where.MACHINE, Where.PLUGIN, Where.PROBE, Where.API
_AFTER = ("gpu-present",)
_LOADED = (*_AFTER, "driver-loaded")

CHECKS = (
    Check(
        "driver-loaded",
        "The NVIDIA kernel module is loaded",
        "driver",
        Status.FAIL,
        (Part.HOST,),
        (_HERE, _POD, _PROBE),
        _driver_loaded,
        after=_AFTER,
        explain="/proc/driver/nvidia/version exists exactly while the module is loaded.",
    ),
    Check(
        "driver-version",
        f"The driver is {_LEAST} or newer, has no known fault, and drives these cards",
        "driver",
        Status.FAIL,
        (Part.HOST,),
        (_HERE, _POD),
        _driver_version,
        also=(Part.DRIVER, Part.CARDS),
        after=_LOADED,
        explain=f"Older drivers lack calls that the library needs; {_ADVISED} or newer is advised. Branch 470 was the "
        "last for Kepler, 580 the last for Maxwell, Pascal and Volta.",
    ),
    Check(
        "driver-match",
        "Kernel module, NVML and libcuda are of one version",
        "driver",
        Status.FAIL,
        (Part.HOST, Part.DRIVER),
        (_HERE, _POD),
        _driver_match,
        after=_LOADED,
        explain="After an unattended upgrade the libraries are new and the loaded module is old: nvidia-smi says "
        "`Driver/library version mismatch`, the plugin stays Ready and offers no card.",
    ),
    Check(
        "cuda-driver",
        "The wanted CUDA toolkit runs on this driver",
        "driver",
        Status.FAIL,
        (Part.HOST,),
        (_HERE, _POD, _API),
        _cuda_driver,
        also=(Part.DRIVER,),
        after=_LOADED,
        explain="From CUDA 11 on a toolkit also runs on older drivers of its major version (11.x from 450.80.02, 12.x "
        "from 525.60.13, 13.x from 580.65.06), without features that need a newer one.",
    ),
    Check(
        "nvml-usable",
        "NVML starts and every card answers",
        "driver",
        Status.FAIL,
        (Part.DRIVER,),
        (_HERE, _POD),
        _nvml_usable,
        also=(Part.HOST, Part.CARDS),
        after=_LOADED,
        explain="The plugin, the scheduler's view and top all rest on NVML. It is asked in a process of its own, so a "
        "driver that hangs is reported within seconds.",
    ),
    Check(
        "fabric-manager",
        "On machines with NVSwitch the fabric manager runs, with the driver's version",
        "driver",
        Status.FAIL,
        (Part.HOST,),
        (_HERE, _PROBE),
        _fabric_manager,
        also=(Part.CARDS,),
        after=_AFTER,
        explain="Without it nvidia-smi lists all cards while every CUDA program fails with error 802, system not yet "
        "initialized.",
    ),
)
