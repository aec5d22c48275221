"""Area runtime: how containers get at the cards."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from vgpuctl.checks.check import Check, Evidence, Options, Result, Skip, Status, Where
from vgpuctl.model.cuda import version
from vgpuctl.model.facts import Facts, Part
from vgpuctl.model.host import Host
from vgpuctl.model.reading import Missing
from vgpuctl.model.runtime import Handler

_LEAST = {"docker": "20.10", "containerd": "1.5", "crio": "1.20"}
_NAMES = {"docker": "Docker", "containerd": "containerd", "crio": "CRI-O", "cri-o": "CRI-O"}
_STATUS = re.compile(r"^(?P<engine>[a-z-]+)://v?(?P<version>\d+\.\d+(?:\.\d+)?)")
_OPERATOR = re.compile(r"gpu-operator(?:-validator)?[^:]*:v?(?P<version>\d+\.\d+)")
_OPERATOR_CHANGE = (25, 10)
_SETUP = "nvidia-ctk runtime configure --runtime={engine} --set-as-default; restart {engine}"


def _container_runtime(facts: Facts, options: Options) -> Iterator[Result]:
    old = 0
    seen = 0
    for node in facts.nodes.value or ():
        match = _STATUS.match(node.status.node_info.container_runtime_version)
        if match:
            seen += 1
            engine = match.group("engine").replace("cri-o", "crio")
            fault = _too_old(engine, match.group("version"))
            if fault:
                old += 1
                evidence = Evidence(f"Node {node.metadata.name}", node.status.node_info.container_runtime_version)
                yield Result(Status.FAIL, fault, node.metadata.name, (evidence,), "upgrade it, node by node")
    if seen and not old:
        yield Result(Status.PASS, f"every node's engine is new enough ({seen} nodes)")
    if facts.host.value is not None:
        yield _engine_here(facts.host.value)
    elif not seen:
        tried = facts.host if facts.host.source else facts.nodes
        tried.need()
        raise Skip("no node tells its container engine")


def _engine_here(host: Host) -> Result:
    engines = host.engines.need()
    if not engines and host.container.value:
        raise Skip(f"inside {host.container.value}, the host's engine cannot be seen")
    if not engines and host.kubelet.known:
        return Result(Status.FAIL, "a kubelet is here, but no container engine", host.name, (), "install containerd")
    if not engines:
        remedy = "install containerd 1.5 or Docker 20.10, or newer"
        evidence = Evidence(host.engines.source, "no containerd, docker or crio")
        return Result(Status.WARN, "no container engine here", host.name, (evidence,), remedy)
    evidence = Evidence(host.engines.source, ", ".join(f"{name} {text}".strip() for name, text in engines.items()))
    faults = [fault for engine, text in engines.items() if text and (fault := _too_old(engine, text))]
    if faults:
        return Result(Status.FAIL, "; ".join(faults), host.name, (evidence,), "upgrade it")
    shown = ", ".join(f"{_NAMES[engine]} {text or '(version not said)'}" for engine, text in engines.items())
    return Result(Status.PASS, shown, host.name, (evidence,))


def _too_old(engine: str, text: str) -> str:
    least = _LEAST.get(engine)
    if least and version(text) < version(least):
        return f"{_NAMES[engine]} {text} is older than {least}"
    return ""


def _engines(host: Host) -> list[tuple[str, str, tuple[Handler, ...], str, bool]]:
    """Each configured engine: its name, default handler, handlers, where that was read, and whether it does CDI."""
    found: list[tuple[str, str, tuple[Handler, ...], str, bool]] = []
    if host.containerd.value:
        config = host.containerd.value
        cdi = (
            config.cdi
            if config.cdi is not None
            else version((host.engines.value or {}).get("containerd") or "0") >= (2,)
        )
        found.append(("containerd", config.default, config.handlers, host.containerd.source, cdi))
    if host.docker.value:
        found.append(("docker", host.docker.value.default, host.docker.value.handlers, host.docker.source, False))
    if host.crio.value:
        found.append(("crio", host.crio.value.default, host.crio.value.handlers, host.crio.source, True))
    return found


def _configured(host: Host) -> list[tuple[str, str, tuple[Handler, ...], str, bool]]:
    """As `_engines`; raises Skip where no engine is, Missing where its configuration could not be read."""
    engines = _engines(host)
    if engines:
        return engines
    unread = [reading for reading in (host.containerd, host.docker, host.crio) if not reading.absent]
    if unread:
        raise Missing(unread[0].reason, unread[0].source)
    if host.container.value:
        raise Skip(f"inside {host.container.value}, the host's engine cannot be seen")
    if not host.engines.value:
        raise Skip("no container engine here")
    return [(engine, "runc", (), f"no configuration of {engine}", False) for engine in host.engines.value]


def _nvidia_runtime(facts: Facts, options: Options) -> Result:
    host = facts.host.need()
    engines = _configured(host)
    used = [engine for engine in engines if engine[0] != "docker"] if host.kubelet.known else engines
    classes = {found.handler: found.metadata.name for found in facts.runtimeclasses.value or ()}
    evidence = tuple(
        Evidence(source, f"default {default}; {_listed(handlers)}") for _, default, handlers, source, _ in engines
    )
    for engine, default, handlers, _, cdi in used or engines:
        nvidia = {handler.name for handler in handlers if handler.nvidia}
        if default in nvidia:
            return Result(
                Status.PASS, f"{_NAMES[engine]} runs containers by `{default}` by default", host.name, evidence
            )
        named = [name for name in nvidia if name in classes]
        if named:
            summary = f"RuntimeClass {classes[named[0]]} leads to `{named[0]}`: vGPU pods and the plugin must name it"
            return Result(Status.PASS, summary, host.name, evidence)
        if cdi and host.cdi.value:
            return Result(Status.PASS, f"{_NAMES[engine]} hands out cards by CDI", host.name, evidence)
        if nvidia:
            name = min(nvidia)
            summary = f"`{name}` is configured but not the default, so only pods with a RuntimeClass for it see a card"
            remedy = f"{_SETUP.format(engine=engine)}; or make a RuntimeClass with handler {name}"
            return Result(Status.WARN, summary, host.name, evidence, remedy)
    engine = (used or engines)[0][0]
    summary = f"{_NAMES[engine]} does not know the NVIDIA runtime: containers get no card"
    return Result(Status.FAIL, summary, host.name, evidence, _SETUP.format(engine=engine))


def _listed(handlers: Iterable[Handler]) -> str:
    return ", ".join(f"{handler.name} = {handler.binary or 'runc'}" for handler in handlers) or "no handlers"


def _toolkit_envvar(facts: Facts, options: Options) -> Result:
    host = facts.host.need()
    toolkit = host.toolkit
    if toolkit.value is None:
        if toolkit.absent:
            raise Skip("NVIDIA's container toolkit has no configuration here")
        raise Missing(toolkit.reason, toolkit.source)
    key = "accept-nvidia-visible-devices-envvar-when-unprivileged"
    evidence = (Evidence(toolkit.source, f"{key} = {str(toolkit.value.envvar).lower()}"),)
    if not toolkit.value.envvar:
        remedy = f"set {key} = true in {toolkit.value.path}; restart the container engine"
        summary = "containers may not ask for cards by NVIDIA_VISIBLE_DEVICES, which is how the plugin gives them"
        return Result(Status.FAIL, summary, host.name, evidence, remedy)
    return Result(Status.PASS, "containers may ask for cards by NVIDIA_VISIBLE_DEVICES", host.name, evidence)


def _cgroup_driver(facts: Facts, options: Options) -> Result:
    host = facts.host.need()
    kubelet = host.kubelet
    if kubelet.value is None:
        if kubelet.absent:
            raise Skip("no kubelet here")
        raise Missing(kubelet.reason, kubelet.source)
    drivers = _cgroup_drivers(host)
    if not drivers:
        _configured(host)
        raise Skip("the engine's configuration names no cgroup driver")
    evidence = [Evidence(source, f"{name}: {driver}") for name, driver, source in drivers]
    if not kubelet.value.cgroup:
        summary = "the kubelet's configuration names no cgroup driver"
        if len({driver for _, driver, _ in drivers}) > 1:
            return Result(Status.FAIL, "the engine's handlers differ", host.name, tuple(evidence), "make them the same")
        return Result(Status.PASS, f"{summary}; the engine uses {drivers[0][1]}", host.name, tuple(evidence))
    evidence.insert(0, Evidence(kubelet.value.source, f"kubelet: {kubelet.value.cgroup}"))
    wrong = [(name, driver) for name, driver, _ in drivers if driver != kubelet.value.cgroup]
    if wrong:
        name, driver = wrong[0]
        summary = f"the kubelet uses {kubelet.value.cgroup}, {name} {driver}"
        remedy = f"set cgroupDriver: {driver} in {kubelet.value.config}, or change {name}; restart both and the plugin"
        return Result(Status.FAIL, summary, host.name, tuple(evidence), remedy)
    silent = [handler.name for handler in _silent(host)]
    if silent and kubelet.value.cgroup == "systemd":
        summary = f"containerd's handler {silent[0]} does not say SystemdCgroup, so it uses cgroupfs"
        remedy = f"set SystemdCgroup = true in the options of {silent[0]}; restart containerd and the plugin"
        return Result(Status.WARN, summary, host.name, tuple(evidence), remedy)
    return Result(Status.PASS, f"{kubelet.value.cgroup} everywhere", host.name, tuple(evidence))


def _silent(host: Host) -> list[Handler]:
    """NVIDIA handlers of containerd without a cgroup driver; containerd's default is cgroupfs."""
    handlers = host.containerd.value.handlers if host.containerd.value else ()
    return [handler for handler in handlers if handler.nvidia and handler.systemd is None]


def _cgroup_drivers(host: Host) -> list[tuple[str, str, str]]:
    """(component, cgroup driver, source) of the engine and its handlers, where they are said."""
    found: list[tuple[str, str, str]] = []
    if host.containerd.value:
        for handler in host.containerd.value.handlers:
            if handler.systemd is not None:
                driver = "systemd" if handler.systemd else "cgroupfs"
                found.append((f"containerd's handler {handler.name}", driver, host.containerd.source))
    if host.crio.value:
        found.append(("CRI-O", host.crio.value.cgroup, host.crio.source))
    if host.docker.value and host.docker.value.cgroup and not found:
        found.append(("Docker", host.docker.value.cgroup, host.docker.source))
    return found


def _operator_hook(facts: Facts, options: Options) -> Result:
    for workload in facts.daemonsets.need():
        spec = workload.spec.template.spec
        for container in (*spec.containers, *(spec.init_containers or ())):
            match = _OPERATOR.search(container.image)
            if match is None:
                continue
            evidence = (Evidence(f"DaemonSet {workload.metadata.namespace}/{workload.metadata.name}", container.image),)
            if version(match.group("version")) >= _OPERATOR_CHANGE:
                summary = (
                    f"GPU Operator {match.group('version')} hands out cards by CDI, which bypasses the plugin's way"
                )
                remedy = "set cdi.enabled=false in the ClusterPolicy, or keep the operator below 25.10 on vGPU nodes"
                return Result(Status.WARN, summary, evidence=evidence, remedy=remedy)
            return Result(Status.PASS, f"GPU Operator {match.group('version')}", evidence=evidence)
    raise Skip("no GPU Operator in this cluster")


_HERE, _PROBE, _API = Where.MACHINE, Where.PROBE, Where.API

CHECKS = (
    Check(
        "container-runtime",
        "Docker is 20.10, containerd 1.5, or newer",
        "runtime",
        Status.FAIL,
        (),
        (_HERE, _PROBE, _API),
        _container_runtime,
        also=(Part.HOST, Part.NODES),
        explain="Read from the engine's own --version on a machine, from the node's status in a cluster.",
    ),
    Check(
        "nvidia-runtime",
        "Containers get the NVIDIA runtime: by default, by RuntimeClass or by CDI",
        "runtime",
        Status.FAIL,
        (Part.HOST,),
        (_HERE, _PROBE, _API),
        _nvidia_runtime,
        also=(Part.RUNTIMECLASSES,),
        after=("gpu-present",),
        explain="Reads containerd's configuration (versions 1 to 3, imports, k3s and rke2), Docker's daemon.json and "
        "CRI-O's. Where runc is the default, the plugin itself finds no NVML.",
    ),
    Check(
        "toolkit-envvar",
        "Unprivileged containers may name cards by NVIDIA_VISIBLE_DEVICES",
        "runtime",
        Status.FAIL,
        (Part.HOST,),
        (_HERE, _PROBE),
        _toolkit_envvar,
        after=("gpu-present",),
        explain="The plugin hands out cards through this variable. Hardening guides switch it off; then vGPU "
        "containers start without a card.",
    ),
    Check(
        "cgroup-driver",
        "Kubelet and container engine use the same cgroup driver",
        "runtime",
        Status.FAIL,
        (Part.HOST,),
        (_HERE, _PROBE),
        _cgroup_driver,
        explain="With different drivers pods start late, or lose their devices when systemd reloads.",
    ),
    Check(
        "operator-hook",
        "The GPU Operator leaves the plugin's way of handing out cards alone",
        "runtime",
        Status.WARN,
        (Part.DAEMONSETS,),
        (_API,),
        _operator_hook,
        explain="From 25.10 on the operator enables CDI by default, and containers that name cards by variable break.",
    ),
)
