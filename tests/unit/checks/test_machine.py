"""The checks of a machine: each where it passes, where it warns or fails, and where the fact is missing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import pytest

from tests.unit.machines import GIB, UNREAD, UUID, absent, healthy, with_card, with_driver, with_host
from vgpuctl.checks.check import Options, Outcome, run_checks
from vgpuctl.checks.registry import all_checks
from vgpuctl.model import kube, proc
from vgpuctl.model.card import BrokenCard, Library
from vgpuctl.model.cdi import CdiSpec
from vgpuctl.model.facts import Facts
from vgpuctl.model.host import FabricManager, PciDevice, Security, Space, Stat
from vgpuctl.model.reading import known, missing
from vgpuctl.model.runtime import Containerd, Crio, Docker, Handler, Kubelet, Toolkit

AREAS = ("host", "driver", "runtime")
CHECKS = {check.id: check for check in all_checks() if check.area in AREAS}
NVIDIA = Handler("nvidia", "/usr/bin/nvidia-container-runtime", True)
MODULE = "/proc/driver/nvidia/version"


class Case(NamedTuple):
    """One row: the check, what is the case, how the healthy facts differ, the wanted status, words of the result."""

    check: str
    name: str
    change: Callable[[Facts], Facts]
    status: str
    words: str = ""
    cuda: str = ""


def host(**changes: object) -> Callable[[Facts], Facts]:
    return lambda facts: with_host(facts, **changes)


def card(**changes: object) -> Callable[[Facts], Facts]:
    return lambda facts: with_card(facts, **changes)


def driver(**changes: object) -> Callable[[Facts], Facts]:
    return lambda facts: with_driver(facts, **changes)


def same(facts: Facts) -> Facts:
    return facts


def no_driver(reason: str) -> Callable[[Facts], Facts]:
    return lambda facts: replace(facts, driver=missing(reason, "NVML"), cards=missing(reason, "NVML"))


def no_cards(facts: Facts) -> Facts:
    return replace(facts, cards=UNREAD)


def loaded(version: str) -> object:
    return known(proc.ModuleVersion(version), MODULE)


def nodes(**changes: object) -> Callable[[Facts], Facts]:
    """The device nodes, some replaced (by name, `_` for `-`), None removes one."""

    def change(facts: Facts) -> Facts:
        found = dict(facts.host.need().nodes.need())
        for name, stat in changes.items():
            path = f"/dev/{name.replace('_', '-')}"
            found.pop(path, None)
            if isinstance(stat, Stat):
                found[path] = stat
        return with_host(facts, nodes=known(found, "/dev"))

    return change


def containerd(default: str, *handlers: Handler, **changes: object) -> object:
    path = "/etc/containerd/config.toml"
    return known(replace(Containerd((path,), 2, default, handlers), **changes), path)


def kubelet(cgroup: str) -> object:
    path = "/var/lib/kubelet/config.yaml"
    return known(Kubelet("kubelet", "/var/lib/kubelet", path, cgroup, path), path)


def spec(**changes: object) -> object:
    base = CdiSpec("/etc/cdi/nvidia.yaml", "0.5.0", "nvidia.com/gpu", (UUID, "all"), ())
    return known((replace(base, **changes),), "/etc/cdi")


def fabric(switches: bool, manager: object, state: str = "") -> Callable[[Facts], Facts]:
    def change(facts: Facts) -> Facts:
        if switches:
            facts = nodes(nvidia_nvswitch0=Stat("char", 0o666, 0, 0, 239, 0))(facts)
        facts = with_card(facts, fabric=known(state, "NVML")) if state else facts
        return with_host(facts, fabric_manager=manager)

    return change


def cluster(
    *, runtime: str = "", handler: str = "", images: tuple[str, ...] = (), mode: str = ""
) -> Callable[[Facts], Facts]:
    def change(facts: Facts) -> Facts:
        register = f"{UUID},10,143771,NVIDIA-NVIDIA H200,true,{mode}:" if mode else ""
        metadata = kube.Metadata(name="gpu-1", annotations={"volcano.sh/node-vgpu-register": register})
        info = kube.NodeInfo(container_runtime_version=runtime)
        node = kube.Node(metadata=metadata, status=kube.NodeStatus(node_info=info))
        classes = (kube.RuntimeClass(metadata=kube.Metadata(name="gpu"), handler=handler),) if handler else ()
        containers = [kube.Container(name="main", image=image) for image in images]
        template = kube.PodTemplate(spec=kube.PodSpec(containers=containers))
        workload = kube.Workload(metadata=kube.Metadata(name="ds"), spec=kube.WorkloadSpec(template=template))
        return replace(
            facts,
            nodes=known((node,), "/api/v1/nodes"),
            runtimeclasses=known(classes, "/apis/node.k8s.io/v1/runtimeclasses"),
            daemonsets=known((workload,) if images else (), "/apis/apps/v1/daemonsets"),
        )

    return change


def both(*changes: Callable[[Facts], Facts]) -> Callable[[Facts], Facts]:
    def change(facts: Facts) -> Facts:
        for one in changes:
            facts = one(facts)
        return facts

    return change


SYS = "/sys/bus/pci/devices"
CASES = [
    Case("gpu-present", "an H200", same, "pass", "H200"),
    Case(
        "gpu-present",
        "only NVML shows it",
        host(pci=known((), SYS), cards=known((), ""), nodes=known({}, "/dev"), driver=absent(MODULE)),
        "pass",
        "H200",
    ),
    Case(
        "gpu-present",
        "a device without a driver",
        both(
            no_cards,
            host(cards=absent("/proc/driver"), pci=known((PciDevice("0000:01:00.0", 0x10DE, 0x1EB8, 0x030200),), SYS)),
        ),
        "pass",
        "Turing",
    ),
    Case(
        "gpu-present",
        "none by any sign",
        both(
            no_cards,
            host(pci=known((), SYS), cards=absent("/proc/driver"), nodes=known({}, "/dev"), driver=absent(MODULE)),
        ),
        "fail",
        "no NVIDIA GPU",
    ),
    Case(
        "gpu-present",
        "nothing readable",
        both(no_cards, host(pci=UNREAD, cards=UNREAD, nodes=UNREAD, driver=UNREAD)),
        "unknown",
        "permission denied",
    ),
    Case("device-nodes", "all there", same, "pass"),
    Case("device-nodes", "one missing", nodes(nvidia0=None), "fail", "/dev/nvidia0: does not exist"),
    Case("device-nodes", "a stale major", nodes(nvidia0=Stat("char", 0o666, 0, 0, 194, 0)), "fail", "major 194"),
    Case("device-nodes", "root only", nodes(nvidiactl=Stat("char", 0o600, 0, 0, 195, 255)), "fail", "0600"),
    Case("device-nodes", "a file in its place", nodes(nvidiactl=Stat("file", 0o666)), "fail", "not a character device"),
    Case("device-nodes", "no links in /dev/char", host(links=known({}, "/dev/char")), "warn", "195:0"),
    Case("device-nodes", "/dev not readable", host(nodes=UNREAD), "unknown", "permission denied"),
    Case("nvidia-uvm", "loaded", same, "pass", "238"),
    Case(
        "nvidia-uvm",
        "not loaded",
        both(
            nodes(nvidia_uvm=None, nvidia_uvm_tools=None),
            host(
                modules=known(proc.Modules(frozenset({"nvidia"})), "/proc/modules"), majors=known({"nvidia": 195}, "")
            ),
        ),
        "fail",
        "modprobe nvidia-uvm",
    ),
    Case("nvidia-uvm", "node missing", nodes(nvidia_uvm=None), "fail", "/dev/nvidia-uvm: does not exist"),
    Case(
        "nvidia-uvm", "node of another major", nodes(nvidia_uvm=Stat("char", 0o666, 0, 0, 237, 0)), "fail", "major 237"
    ),
    Case("nvidia-uvm", "not readable", host(modules=UNREAD, majors=UNREAD), "unknown", "permission denied"),
    Case("unified-memory", "a card with memory", same, "pass"),
    Case(
        "unified-memory",
        "GB10",
        driver(broken=(BrokenCard(0, "NVML: Not Supported (error 3)", "GPU-1", True),)),
        "fail",
        "GPU 0",
    ),
    Case("unified-memory", "no NVML", no_driver("NVML: Unknown Error (error 999)"), "unknown", "999"),
    Case("wsl", "Linux", same, "pass"),
    Case("wsl", "WSL 2", host(kernel=known("5.15.167.4-microsoft-standard-WSL2", "")), "warn", "WSL"),
    Case("wsl", "not readable", host(kernel=UNREAD), "unknown"),
    Case("security-labels", "SELinux off", same, "pass"),
    Case(
        "security-labels",
        "labels of the host",
        host(
            security=known(
                Security("enforcing", False, Stat("file", 0o644, label="system_u:object_r:usr_t:s0")), "/sys/fs/selinux"
            )
        ),
        "warn",
        "usr_t",
    ),
    Case(
        "security-labels",
        "container labels",
        host(
            security=known(
                Security("enforcing", False, Stat("file", 0o644, label="system_u:object_r:container_file_t:s0")),
                "/sys/fs/selinux",
            )
        ),
        "pass",
    ),
    Case("security-labels", "not readable", host(security=UNREAD), "unknown"),
    Case("disk-space", "room", same, "pass", "200.0 GiB"),
    Case("disk-space", "full", host(spaces=known({"/usr/local/vgpu": Space(GIB, 1 << 20)}, "")), "warn", "1 MiB free"),
    Case(
        "disk-space",
        "no inodes",
        host(spaces=known({"/tmp": Space(GIB * 9, GIB * 8, 1000, 3)}, "")),
        "warn",
        "3 inodes",
    ),
    Case("disk-space", "/tmp not sticky", host(tmp=known(Stat("directory", 0o777), "/tmp")), "warn", "0777"),
    Case("disk-space", "not readable", host(spaces=UNREAD), "unknown"),
    Case("driver-loaded", "loaded", same, "pass", "open kernel module 580.159.04"),
    Case("driver-loaded", "not loaded", host(driver=absent(MODULE)), "fail", "not loaded"),
    Case("driver-loaded", "not readable", host(driver=UNREAD), "unknown", "permission denied"),
    Case("driver-version", "580", same, "pass"),
    Case("driver-version", "older than 450.80.02", host(driver=loaded("450.51.06")), "fail", "older than 450.80.02"),
    Case("driver-version", "450.80.02 itself", host(driver=loaded("450.80.02")), "warn", "470"),
    Case("driver-version", "a known-bad release", host(driver=loaded("570.86.15")), "warn", "hang"),
    Case("driver-version", "570.860 is not 570.86", host(driver=loaded("570.860.1")), "pass"),
    Case(
        "driver-version",
        "590 with a V100",
        host(driver=loaded("590.44.01"), pci=known((PciDevice("0000:01:00.0", 0x10DE, 0x1DB6, 0x030200),), SYS)),
        "fail",
        "Volta",
    ),
    Case(
        "driver-version",
        "580 with a V100",
        host(pci=known((PciDevice("0000:01:00.0", 0x10DE, 0x1DB6, 0x030200),), SYS)),
        "pass",
        "no newer branch",
    ),
    Case(
        "driver-version",
        "495 with a K80",
        host(driver=loaded("495.29.05"), pci=known((PciDevice("0000:01:00.0", 0x10DE, 0x102D, 0x030200),), SYS)),
        "fail",
        "branch 470",
    ),
    Case("driver-version", "no version", both(no_driver("NVML: x"), host(driver=UNREAD)), "unknown"),
    Case("driver-match", "one version", same, "pass", "are all 580.159.04"),
    Case("driver-match", "older module", host(driver=loaded("580.95.05")), "fail", "580.95.05, NVML is 580.159.04"),
    Case(
        "driver-match",
        "older libcuda",
        driver(library=known(Library("/lib/libcuda.so.570.1.2", "570.1.2"), "")),
        "fail",
        "libcuda is 570.1.2",
    ),
    Case(
        "driver-match",
        "libcuda of another CUDA",
        driver(library=known(Library("/lib/libcuda.so.1", "", "12.8"), "")),
        "fail",
        "CUDA 12.8",
    ),
    Case("driver-match", "no libcuda", driver(library=absent("libcuda.so.1")), "fail", "not installed"),
    Case(
        "driver-match",
        "NVML refuses",
        no_driver("NVML: Driver/library version mismatch (error 18)"),
        "fail",
        "580.159.04",
    ),
    Case("driver-match", "NVML silent", no_driver("NVML did not answer in 10 s"), "unknown", "10 s"),
    Case("driver-match", "no module version", host(driver=UNREAD), "unknown"),
    Case("cuda-driver", "nothing asked", same, "pass", "13.0"),
    Case("cuda-driver", "11.4", same, "pass", "CUDA 11.4 runs", "11.4"),
    Case("cuda-driver", "13.9 on 580", same, "warn", "minor-version", "13.9"),
    Case(
        "cuda-driver",
        "11.4 on 460",
        both(no_driver("x"), host(driver=loaded("460.32.03"))),
        "warn",
        "470.57.02",
        "11.4",
    ),
    Case(
        "cuda-driver",
        "11.4 on 450.51",
        both(no_driver("x"), host(driver=loaded("450.51.06"))),
        "fail",
        "450.80.02",
        "11.4",
    ),
    Case(
        "cuda-driver", "12.4 on 470", both(no_driver("x"), host(driver=loaded("470.82.01"))), "fail", "550.54", "12.4"
    ),
    Case("cuda-driver", "no version", both(no_driver("NVML: x"), host(driver=UNREAD)), "unknown", "", "11.4"),
    Case("nvml-usable", "answers", same, "pass", "1 card answers"),
    Case(
        "nvml-usable",
        "a dead card",
        driver(broken=(BrokenCard(3, "NVML: GPU is lost (error 15)", "GPU-3"),)),
        "fail",
        "GPU 3 does not answer (GPU-3)",
    ),
    Case("nvml-usable", "hangs", no_driver("NVML did not answer in 10 s: the driver hangs"), "fail", "hangs"),
    Case(
        "nvml-usable",
        "not asked",
        lambda facts: replace(facts, driver=missing("no nvidia-smi -q -x is recorded", "/c")),
        "unknown",
        "recorded",
    ),
    Case("ecc-xid", "well", same, "pass", "no uncorrected error"),
    Case("ecc-xid", "uncorrected", card(uncorrected=known(3, "NVML")), "warn", "3 uncorrected"),
    Case("ecc-xid", "remap failed", card(remap_failed=known(True, "NVML")), "warn", "replaced"),
    Case("ecc-xid", "too hot", card(throttled=known(("temperature (hardware)",), "NVML")), "warn", "temperature"),
    Case("ecc-xid", "power cap is normal", card(throttled=known(("power cap",), "NVML")), "pass"),
    Case(
        "ecc-xid",
        "fell off the bus",
        host(xids=known(("NVRM: Xid (PCI:0000:06:00): 79, pid=1",), "dmesg")),
        "warn",
        "79",
    ),
    Case("ecc-xid", "a program's fault", host(xids=known(("NVRM: Xid (PCI:0000:06:00): 31, pid=1",), "dmesg")), "pass"),
    Case("ecc-xid", "no kernel log", host(xids=UNREAD), "pass", "could not be read"),
    Case("ecc-xid", "no cards", no_cards, "unknown"),
    Case("persistence-mode", "on", same, "pass"),
    Case("persistence-mode", "off", card(persistence=known(False, "NVML")), "warn", "nvidia-smi -pm 1"),
    Case("persistence-mode", "not said", card(persistence=UNREAD), "unknown"),
    Case("mig-mode", "off", same, "pass", "MIG is off"),
    Case("mig-mode", "pending", card(mig_pending=known(True, "NVML")), "fail", "after a reset"),
    Case("mig-mode", "pool wants mig", cluster(mode="mig"), "fail", "mode mig"),
    Case(
        "mig-mode",
        "pool wants none",
        both(cluster(mode="hami-core"), card(mig=known(True, ""), mig_pending=known(True, ""))),
        "fail",
        "mode hami-core",
    ),
    Case("mig-mode", "pool agrees", cluster(mode="hami-core"), "pass"),
    Case("mig-mode", "no cards", no_cards, "unknown"),
    Case("fabric-manager", "no NVSwitch", same, "skip", "no NVSwitch"),
    Case(
        "fabric-manager", "runs", fabric(True, known(FabricManager(True, "580.159.04", "active"), "systemctl")), "pass"
    ),
    Case(
        "fabric-manager",
        "stopped",
        fabric(True, known(FabricManager(False, "", "inactive"), "systemctl")),
        "fail",
        "802",
    ),
    Case(
        "fabric-manager",
        "another version",
        fabric(True, known(FabricManager(True, "590.48.01", "x"), "systemctl")),
        "fail",
        "590.48.01",
    ),
    Case("fabric-manager", "no systemctl, fabric joined", fabric(True, absent("systemctl"), "completed"), "pass"),
    Case(
        "fabric-manager",
        "virtual machine, not joined",
        fabric(False, absent("systemctl"), "in progress"),
        "fail",
        "joined",
    ),
    Case("fabric-manager", "no systemctl", fabric(True, absent("systemctl")), "unknown", "systemctl"),
    Case("container-runtime", "new enough", same, "pass", "containerd 1.7.24"),
    Case(
        "container-runtime", "old Docker", host(engines=known({"docker": "19.03.15"}, "")), "fail", "older than 20.10"
    ),
    Case("container-runtime", "none on a node", host(engines=known({}, "")), "fail", "kubelet"),
    Case(
        "container-runtime",
        "none on a bare machine",
        host(engines=known({}, ""), kubelet=absent("/k")),
        "warn",
        "install",
    ),
    Case(
        "container-runtime",
        "inside a container",
        host(engines=known({}, ""), kubelet=absent("/k"), container=known("a pod", "/")),
        "skip",
        "a pod",
    ),
    Case("container-runtime", "old on a node of the cluster", cluster(runtime="containerd://1.4.13"), "fail", "1.4.13"),
    Case("container-runtime", "not readable", host(engines=UNREAD), "unknown"),
    Case("nvidia-runtime", "the default", same, "pass"),
    Case("nvidia-runtime", "unknown to containerd", host(containerd=containerd("runc")), "fail", "nvidia-ctk"),
    Case(
        "nvidia-runtime",
        "not the default",
        host(containerd=containerd("runc", NVIDIA), cdi=known((), "")),
        "warn",
        "RuntimeClass",
    ),
    Case(
        "nvidia-runtime",
        "by RuntimeClass",
        both(host(containerd=containerd("runc", NVIDIA)), cluster(handler="nvidia")),
        "pass",
        "RuntimeClass gpu",
    ),
    Case("nvidia-runtime", "by CDI", host(containerd=containerd("runc", cdi=True)), "pass", "CDI"),
    Case(
        "nvidia-runtime",
        "Docker",
        host(
            containerd=absent("/c"),
            kubelet=absent("/k"),
            docker=known(Docker("/etc/docker/daemon.json", "nvidia", (NVIDIA,)), "/etc/docker/daemon.json"),
        ),
        "pass",
        "Docker",
    ),
    Case(
        "nvidia-runtime",
        "Docker beside a kubelet that uses containerd",
        host(containerd=containerd("runc"), docker=known(Docker("/etc/docker/daemon.json", "nvidia", (NVIDIA,)), "")),
        "fail",
        "containerd",
    ),
    Case("nvidia-runtime", "no configuration at all", host(containerd=absent("/c")), "fail", "does not know"),
    Case("nvidia-runtime", "no engine", host(containerd=absent("/c"), engines=known({}, "")), "skip"),
    Case("nvidia-runtime", "not readable", host(containerd=UNREAD), "unknown"),
    Case("toolkit-envvar", "accepted", same, "pass"),
    Case("toolkit-envvar", "refused", host(toolkit=known(Toolkit("/t", False), "/t")), "fail", "= true"),
    Case("toolkit-envvar", "no toolkit", host(toolkit=absent("/t")), "skip"),
    Case("toolkit-envvar", "not readable", host(toolkit=UNREAD), "unknown"),
    Case("cgroup-driver", "the same", same, "pass", "systemd everywhere"),
    Case("cgroup-driver", "kubelet differs", host(kubelet=kubelet("cgroupfs")), "fail", "cgroupDriver: systemd"),
    Case(
        "cgroup-driver",
        "handler says nothing",
        host(containerd=containerd("nvidia", replace(NVIDIA, systemd=None), Handler("runc", "", True))),
        "warn",
        "SystemdCgroup",
    ),
    Case(
        "cgroup-driver",
        "CRI-O differs",
        host(containerd=absent("/c"), crio=known(Crio(("/c",), cgroup="cgroupfs"), "/c")),
        "fail",
        "CRI-O cgroupfs",
    ),
    Case("cgroup-driver", "kubelet says nothing", host(kubelet=kubelet("")), "pass", "names no cgroup driver"),
    Case("cgroup-driver", "no kubelet", host(kubelet=absent("/k")), "skip"),
    Case("cgroup-driver", "not readable", host(kubelet=UNREAD), "unknown"),
    Case("operator-hook", "no operator", cluster(images=("registry.example/app:1",)), "skip"),
    Case(
        "operator-hook",
        "25.10",
        cluster(images=("nvcr.io/nvidia/cloud-native/gpu-operator-validator:v25.10.0",)),
        "warn",
        "25.10",
    ),
    Case("operator-hook", "25.3", cluster(images=("nvcr.io/nvidia/gpu-operator:v25.3.1",)), "pass", "25.3"),
    Case("operator-hook", "no permission", lambda facts: replace(facts, daemonsets=UNREAD), "unknown"),
    Case("cdi-spec", "fits", same, "pass"),
    Case(
        "cdi-spec", "of another driver", host(cdi=spec(paths=("/usr/lib/libcuda.so.550.90.07",))), "fail", "550.90.07"
    ),
    Case("cdi-spec", "paths are gone", host(cdi=spec(absent=("/usr/lib/libEGL_nvidia.so.0",))), "fail", "libEGL"),
    Case(
        "cdi-spec",
        "no UUIDs, CDI in use",
        host(cdi=spec(devices=("0", "all")), toolkit=known(Toolkit("/t", mode="cdi"), "/t")),
        "fail",
        UUID,
    ),
    Case("cdi-spec", "no UUIDs, mode auto", host(cdi=spec(devices=("0", "all"))), "warn", UUID),
    Case(
        "cdi-spec",
        "no UUIDs, not used",
        host(cdi=spec(devices=("0", "all")), toolkit=known(Toolkit("/t", mode="legacy"), "")),
        "pass",
    ),
    Case("cdi-spec", "too new for the engine", host(cdi=spec(version="0.8.0")), "fail", "0.8.0"),
    Case("cdi-spec", "none", host(cdi=known((), "/etc/cdi")), "skip"),
    Case("cdi-spec", "not readable", host(cdi=UNREAD), "unknown"),
]


def outcomes(case: Case) -> list[Outcome]:
    return list(run_checks([CHECKS[case.check]], case.change(healthy()), Options(cuda=case.cuda)))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.check}: {case.name}")
def test_a_check_says_what_is_the_case(case: Case) -> None:
    found = outcomes(case)
    statuses = {outcome.result.status.value for outcome in found}
    assert case.status in statuses, [outcome.result for outcome in found]
    told = "\n".join(
        f"{result.subject} {result.summary}\n{result.remedy}\n"
        + "\n".join(f"{evidence.source}: {evidence.text}" for evidence in result.evidence)
        for result in (outcome.result for outcome in found if outcome.result.status.value == case.status)
    )
    assert case.words in told
    if case.status in ("warn", "fail"):
        bad = [outcome.result for outcome in found if outcome.result.status.value == case.status]
        assert all(result.remedy for result in bad), "says what to do"


@pytest.mark.parametrize("check", CHECKS.values(), ids=lambda check: check.id)
def test_each_check_is_tried_well_ill_and_without_its_facts(check: object) -> None:
    mine = {case.status for case in CASES if case.check == check.id}  # type: ignore[attr-defined]
    assert mine & {"pass", "skip"} and mine & {"warn", "fail"} and "unknown" in mine


def test_a_healthy_node_has_nothing_but_passes_and_skips() -> None:
    found = run_checks(list(CHECKS.values()), cluster(runtime="containerd://1.7.24")(healthy()), Options())
    assert {outcome.result.status.value for outcome in found} == {"pass", "skip"}


def test_worst_is_the_worst_that_a_check_gives() -> None:
    rank = ["pass", "skip", "warn", "unknown", "fail"]
    for case in CASES:
        worst = CHECKS[case.check].worst.value
        for outcome in outcomes(case):
            status = outcome.result.status.value
            assert status == "unknown" or rank.index(status) <= rank.index(worst), case
