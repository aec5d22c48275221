"""A machine read through its files: engines' configurations, the kubelet, CDI, what is absent or unreadable."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.unit.machines import TEXTS, UUID
from tests.unit.recording import FILES, stats
from vgpuctl.checks.check import Options
from vgpuctl.checks.registry import all_checks
from vgpuctl.model import proc, smi
from vgpuctl.model.facts import Part
from vgpuctl.model.host import ABSENT, Host, Stat
from vgpuctl.model.reading import Reading
from vgpuctl.model.runtime import Containerd, Handler
from vgpuctl.sources.files import LocalFiles
from vgpuctl.sources.host import fabric_manager, read_host
from vgpuctl.sources.machine import Machine
from vgpuctl.sources.recorded import RecordedFiles, stats_from_tsv
from vgpuctl.tasks.doctor import diagnose

CONFIG = "/etc/containerd/config.toml"
NVIDIA = "/usr/bin/nvidia-container-runtime"
CRI = 'version = 2\n[plugins."io.containerd.grpc.v1.cri".containerd]\n'


def host(files: dict[str, str], **found: Stat) -> Host:
    return read_host(RecordedFiles({path: text.encode() for path, text in files.items()}, found, "gpu-1"))


def captured() -> Host:
    return read_host(RecordedFiles({p: t.encode() for p, t in FILES.items()}, stats_from_tsv(stats()), "gpu-1"))


class TestCaptured:
    """The texts of the real node."""

    def test_driver_and_card(self) -> None:
        found = captured()
        assert found.driver.need() == proc.ModuleVersion("580.159.04", open=True)
        (card,) = found.cards.need()
        assert (card.model, card.uuid, card.bus, card.minor) == ("NVIDIA H200", UUID, "0000:00:06.0", 0)
        assert found.has_gpu is True

    def test_uvm_state(self) -> None:
        found = captured()
        assert "nvidia-uvm" in found.modules.need()
        assert found.majors.need()["nvidia-uvm"] == 238

    def test_device_nodes(self) -> None:
        nodes = captured().nodes.need()
        assert nodes["/dev/nvidia0"] == Stat("char", 0o666, 0, 0, 195, 0)
        assert nodes["/dev/nvidiactl"].minor == 255
        assert (nodes["/dev/nvidia-uvm"].major, nodes["/dev/nvidia-uvm-tools"].minor) == (238, 1)
        assert nodes["/dev/nvidia-caps/nvidia-cap1"].mode == 0o400
        assert captured().links.need()["195:0"].endswith("/nvidia0")

    def test_nvidia_smi_in_each_form_says_the_same(self) -> None:
        driver, cards = smi.xml(TEXTS["nvidia-smi -q -x"])
        assert (driver.version, driver.cuda.value) == ("580.159.04", "13.0")
        for form in ("nvidia-smi", "nvidia-smi -q"):
            assert smi.versions(TEXTS[form]) == {"Driver Version": "580.159.04", "CUDA Version": "13.0"}
        (row,) = smi.csv(TEXTS["nvidia-smi --query-gpu=driver_version,memory.total --format=csv"])
        assert row == {"driver_version": "580.159.04", "memory.total": "143771 MiB"}
        assert smi.uuids(TEXTS["nvidia-smi -L"]) == {UUID: "NVIDIA H200"}
        (card,) = cards
        assert (card.uuid, card.memory, card.minor.value) == (UUID, 143771 << 20, 0)
        assert (card.persistence.value, card.mig.value, card.ecc.value) == (True, False, True)
        assert card.architecture is not None and card.architecture.name == "Hopper"


CONTAINERD = {
    "version 1": (
        f"""
        [plugins.cri]
        systemd_cgroup = true
        [plugins.cri.containerd]
        default_runtime_name = "nvidia"
        [plugins.cri.containerd.runtimes.nvidia.options]
        BinaryName = "{NVIDIA}"
        """,
        Containerd((CONFIG,), 1, "nvidia", (Handler("nvidia", NVIDIA, True),)),
    ),
    "version 1, the oldest form": (
        f"""
        [plugins.cri.containerd.default_runtime]
        runtime_engine = "{NVIDIA}"
        """,
        Containerd((CONFIG,), 1, "default_runtime", (Handler("default_runtime", NVIDIA, None),)),
    ),
    "version 2": (
        f"""
        version = 2
        [plugins."io.containerd.grpc.v1.cri"]
        enable_cdi = true
        [plugins."io.containerd.grpc.v1.cri".containerd]
        default_runtime_name = "runc"
        [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia.options]
        BinaryName = "{NVIDIA}"
        SystemdCgroup = false
        """,
        Containerd((CONFIG,), 2, "runc", (Handler("nvidia", NVIDIA, False),), True),
    ),
    "version 3": (
        f"""
        version = 3
        [plugins."io.containerd.cri.v1.runtime".containerd]
        default_runtime_name = "nvidia"
        [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.nvidia.options]
        BinaryName = "{NVIDIA}"
        SystemdCgroup = true
        """,
        Containerd((CONFIG,), 3, "nvidia", (Handler("nvidia", NVIDIA, True),)),
    ),
    "values of wrong types": (
        'version = "2"\nplugins = 3\n',
        Containerd((CONFIG,), 1, "runc", ()),
    ),
}


@pytest.mark.parametrize("name", CONTAINERD)
def test_containerd_in_each_version(name: str) -> None:
    text, wanted = CONTAINERD[name]
    assert host({CONFIG: text}).containerd.need() == wanted


class TestContainerd:
    def test_imports_are_laid_over_it_in_order(self) -> None:
        base = 'version = 2\nimports = ["/etc/containerd/conf.d/*.toml", "more.toml"]\n'
        cri = '[plugins."io.containerd.grpc.v1.cri".containerd'
        found = host(
            {
                CONFIG: base + cri + ']\ndefault_runtime_name = "runc"\n',
                "/etc/containerd/conf.d/99-nvidia.toml": cri
                + f'.runtimes.nvidia.options]\nBinaryName = "{NVIDIA}"\n{cri}]\ndefault_runtime_name = "nvidia"\n',
                "/etc/containerd/more.toml": "[grpc]\naddress = 'x'\n",
                "/etc/containerd/conf.d/not-this.txt": "nonsense",
            }
        ).containerd.need()
        assert (found.default, [handler.binary for handler in found.handlers]) == ("nvidia", [NVIDIA])
        assert found.paths == (CONFIG, "/etc/containerd/conf.d/99-nvidia.toml", "/etc/containerd/more.toml")

    @pytest.mark.parametrize("kind", ["k3s", "rke2"])
    def test_k3s_and_rke2_have_their_own_file_and_templates(self, kind: str) -> None:
        folder = f"/var/lib/rancher/{kind}/agent/etc/containerd"
        found = host(
            {
                f"{folder}/config.toml": CONTAINERD["version 3"][0],
                f"{folder}/config-v3.toml.tmpl": '{{ template "base" . }}\n',
                "/proc/77/cmdline": f"/usr/local/bin/{kind}\0server\0",
            }
        )
        containerd = found.containerd.need()
        assert containerd.default == "nvidia" and containerd.templates == (f"{folder}/config-v3.toml.tmpl",)
        assert found.kubelet.need().kind == kind

    def test_the_file_that_it_was_started_with_wins(self) -> None:
        found = host(
            {
                CONFIG: f'{CRI}default_runtime_name = "wrong"\n',
                "/opt/c.toml": f'{CRI}default_runtime_name = "right"\n',
                "/proc/9/cmdline": "/usr/bin/containerd\0--config\0/opt/c.toml\0",
            }
        )
        assert found.containerd.need().default == "right"

    @pytest.mark.parametrize("text", ["[", "= 1", '{{ template "base" . }}', "\x00", "a = 1\na = 2"])
    def test_a_broken_file_says_so(self, text: str) -> None:
        reading = host({CONFIG: text}).containerd
        assert not reading.known and not reading.absent and CONFIG in reading.reason


class TestOthers:
    def test_docker(self) -> None:
        text = f"""{{"default-runtime": "nvidia", "runtimes": {{"nvidia": {{"path": "{NVIDIA}"}}}},
                  "exec-opts": ["native.cgroupdriver=systemd"]}}"""
        found = host({"/etc/docker/daemon.json": text}).docker.need()
        assert (found.default, found.handlers[0].nvidia, found.cgroup) == ("nvidia", True, "systemd")

    @pytest.mark.parametrize("text", ["", "[]", "{", '{"runtimes": [}'])
    def test_a_broken_daemon_json_says_so(self, text: str) -> None:
        reading = host({"/etc/docker/daemon.json": text}).docker
        assert not reading.known and not reading.absent

    def test_crio_with_drop_ins(self) -> None:
        found = host(
            {
                "/etc/crio/crio.conf": '[crio.runtime]\ncgroup_manager = "cgroupfs"\n',
                "/etc/crio/crio.conf.d/99.conf": f'[crio.runtime]\ndefault_runtime = "nvidia"\n'
                f'[crio.runtime.runtimes.nvidia]\nruntime_path = "{NVIDIA}"\n',
            }
        ).crio.need()
        assert (found.default, found.cgroup, found.handlers[0].nvidia) == ("nvidia", "cgroupfs", True)

    @pytest.mark.parametrize(
        ("line", "root", "cgroup"),
        [
            ("/usr/bin/kubelet", "/var/lib/kubelet", "systemd"),
            ("/usr/bin/kubelet --cgroup-driver=cgroupfs", "/var/lib/kubelet", "cgroupfs"),
            ("/usr/bin/kubelet --root-dir /data/kubelet/", "/data/kubelet", "systemd"),
            ("/usr/local/bin/k3s agent --kubelet-arg=cgroup-driver=cgroupfs", "/var/lib/kubelet", "cgroupfs"),
        ],
    )
    def test_the_kubelets_command_line_beats_its_file(self, line: str, root: str, cgroup: str) -> None:
        files = {
            "/proc/42/cmdline": line.replace(" ", "\0") + "\0",
            "/var/lib/kubelet/config.yaml": "cgroupDriver: systemd\n",
        }
        found = host(files).kubelet.need()
        assert (found.root, found.cgroup) == (root, cgroup)

    def test_cdi_in_yaml_and_json_with_what_is_gone(self) -> None:
        text = """
        cdiVersion: 0.5.0
        kind: nvidia.com/gpu
        devices: [{name: all, containerEdits: {deviceNodes: [{path: /dev/nvidia0}]}}]
        containerEdits:
          mounts: [{hostPath: /lib/libcuda.so.580.159.04, containerPath: /x}]
          hooks: [{path: /usr/bin/nvidia-ctk}]
        """
        files = {
            "/etc/cdi/nvidia.yaml": text,
            "/var/run/cdi/other.json": '{"cdiVersion": "0.3.0", "kind": "vendor.com/nic"}',
        }
        recorded = RecordedFiles(
            {path: data.encode() for path, data in files.items()}, {"/lib/libcuda.so.580.159.04": ABSENT}, "gpu-1"
        )
        first, second = read_host(recorded).cdi.need()
        assert first.drivers == ("580.159.04",) and first.absent == ("/lib/libcuda.so.580.159.04",)
        assert first.devices == ("all",) and "/usr/bin/nvidia-ctk" in first.paths
        assert second.kind == "vendor.com/nic"

    @pytest.mark.parametrize("text", ["[1]", "a: [", "kind: [nvidia.com/gpu]"])
    def test_a_broken_cdi_file_says_so(self, text: str) -> None:
        reading = host({"/etc/cdi/nvidia.yaml": text}).cdi
        assert "/etc/cdi/nvidia.yaml" in reading.reason

    def test_engines_say_their_versions(self) -> None:
        found = host(
            {
                "/commands/containerd-version.txt": "containerd containerd.io 1.6.33 d2d58213f83a\n",
                "/commands/docker-version.txt": "Docker version 26.1.3, build b72abbb\n",
            }
        )
        assert found.engines.need() == {"containerd": "1.6.33", "docker": "26.1.3"}

    @pytest.mark.parametrize(
        ("text", "active", "version"),
        [
            ("   Active: active (running) since Tue", True, ""),
            (
                "Active: failed\n interface version 590.48.01 don't match with driver version 580.1.2",
                False,
                "590.48.01",
            ),
            ("Unit nvidia-fabricmanager.service could not be found.", False, ""),
        ],
    )
    def test_the_fabric_manager(self, text: str, active: bool, version: str) -> None:
        found = fabric_manager(text)
        assert (found.active, found.version) == (active, version) and found.text in text


@given(
    st.dictionaries(
        st.sampled_from([*FILES, CONFIG, "/etc/docker/daemon.json", "/etc/cdi/a.yaml"]), st.binary(max_size=300)
    )
)
def test_whatever_the_files_hold_every_field_is_a_reading(files: dict[str, bytes]) -> None:
    found = read_host(RecordedFiles(files, {}, "gpu-1"))
    for field in fields(Host):
        value = getattr(found, field.name)
        assert field.name == "name" or isinstance(value, Reading)
        assert field.name == "name" or value.known or value.reason


@given(
    st.dictionaries(
        st.sampled_from([*FILES, CONFIG, "/etc/docker/daemon.json", "/etc/cdi/a.yaml", "/sys/module/nvidia/version"]),
        st.one_of(st.binary(max_size=40), st.sampled_from(sorted(FILES.values())).map(str.encode)),
    )
)
@example({"/sys/module/nvidia/version": b"not a version"})
def test_whatever_the_files_hold_doctor_has_a_result(files: dict[str, bytes]) -> None:
    whole = {path: text.encode() for path, text in FILES.items()} | files
    machine = Machine.recorded(RecordedFiles(whole, stats_from_tsv(stats()), "gpu-1"), 0.0)
    found = diagnose([machine], all_checks(), Options(cuda="12.4"))
    assert {outcome.check.id for outcome in found.outcomes} == {check.id for check in all_checks()}


def test_this_machine_can_be_read() -> None:
    found = read_host(LocalFiles())
    assert found.name and found.kernel.known and found.spaces.known


def test_a_root_elsewhere_is_read_without_asking_the_driver(tmp_path: Path) -> None:
    for path, text in FILES.items():
        place = tmp_path / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    machine = Machine.local(str(tmp_path))
    assert machine.read(Part.HOST).need().driver.need().version == "580.159.04"
    assert machine.read(Part.CARDS).need()[0].uuid == UUID, "from the recorded nvidia-smi -q -x"
    assert machine.read(Part.REGIONS).absent
